"""Checks of one machine and its line: the port, its permissions, its users, and the answering device."""

import os
import pwd
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from bridge.link import Timers
from bridge.ports import find_holders, find_ports
from common.language import Text, duration, tr
from common.language.reasons import (
    CLOCK_AHEAD,
    CLOCK_AHEAD_OF_BOX,
    OTHER_MACHINE,
    PAIR_NOT_COMPARED,
    SPARE_OF_OTHER_TAXPAYER,
)
from daemon.core.clock import DAY, drift_seconds, machine_millis
from daemon.core.machine.state import PortReading, Silence, same_machine
from daemon.core.report.machine_info import ALERT_DAYS, WARN_DAYS, last_contact
from daemon.doctor import wording
from daemon.doctor.service import MachineHealth, Service
from daemon.doctor.wording import Check, CheckResult
from daemon.machines.inspect_port import inspect
from daemon.owner import as_owner
from daemon.settings import Machine, Settings

DRIFT_WARN, DRIFT_FAIL = 120, 3600
"""Seconds; beyond an hour the ledger uses the machine's time (core.clock)."""
SWAPPED = Text("cables swapped? otherwise nim in [[machine]]; after the machine was replaced: sudo mcfd setup --force")
SET_CLOCK = Text("set the clock; if the time is right: sudo mcfd time accept")
REMEDIES = {
    PAIR_NOT_COMPARED.code: Text("connect the other machine of the pair"),
    SPARE_OF_OTHER_TAXPAYER.code: Text("correct spare_for in [[machine]]"),
    CLOCK_AHEAD.code: SET_CLOCK,
    CLOCK_AHEAD_OF_BOX.code: SET_CLOCK,
}
"""Where there is nothing to settle."""
UNSTABLE = re.compile(r"/dev/tty(USB|ACM)\d+")
"""Names in /dev that may change."""


def daemon_user(settings: Settings) -> str:
    """For root the owner of the ledger's folder."""
    with as_owner(settings.storage.path.parent):
        uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def may_use(folder: Path, file: Path) -> bool:
    """Whether the owner of the ledger's folder may read and write that file, as the kernel says."""
    with as_owner(folder):
        return os.access(file, os.R_OK | os.W_OK, effective_ids=True)


async def check_line(
    settings: Settings, machine: Machine, service: Service, now: int, *, is_box_right: bool
) -> list[CheckResult]:
    """`is_box_right`: the box's clock is synchronised."""
    nim = machine.nim
    if not machine.enabled:
        return [Check("machine", nim).ok("switched off in the configuration")]
    if machine.spare_for and (waiting := check_spare(machine, service.machine(nim))):
        return [waiting]
    found = [check_port(machine), *check_permissions(machine, settings)]
    health = service.machine(nim)
    if health is None and service.running:
        unknown = Check("machine", nim).fail("the daemon that runs does not know it yet", "sudo systemctl restart mcfd")
        return [*found, unknown]
    if health is None:
        found += check_holders(machine, settings.storage.path)
        return [*found, *_judge(machine, await _look(machine), now, is_box_right=is_box_right)]
    holders = [] if health.connected else check_holders(machine, settings.storage.path)
    if others := [finding for finding in holders if finding.state != "ok"]:
        return [*found, *others]  # the daemon cannot have the line, whatever else it reports
    return [*found, *_judge_health(health, is_box_right=is_box_right)]


def check_spare(machine: Machine, health: MachineHealth | None) -> CheckResult | None:
    """For a spare that replaces no machine and is not connected (in a cupboard?). None: check it as any machine."""
    if health is None or health.connected or health.stands_for or health.attention:
        return None
    return Check("spare", machine.nim).warn(
        "the spare of {first} is not connected",
        "it may lie in the cupboard; connect it once a month, to see that it works and reaches the tax server",
        first=machine.spare_for,
    )


def check_port(machine: Machine) -> CheckResult:
    nim, port = machine.nim, machine.port
    if port.is_network:
        return Check("port", nim).ok("{port}: over the network", port=port)
    try:
        mode = port.path.stat().st_mode
    except OSError:
        there = ", ".join(str(found.stable) for found in find_ports()) or tr("none")
        return Check("port", nim).fail(
            "{port} does not exist",
            "plug in the cable, switch the machine on; ports of this box: {ports}; if the name has changed: port "
            "in [[machine]]",
            port=port,
            ports=there,
        )
    if not stat.S_ISCHR(mode):
        return Check("port", nim).fail(
            "{port} is not a serial port",
            "correct port in [[machine]]; mcfd machine ports shows those of the box",
            port=port,
        )
    if UNSTABLE.fullmatch(str(port)):
        return Check("port", nim).warn(
            Text("{port} may change its name when it is next plugged in", port=port),
            'port = "{port}" in [[machine]]',
            port=_stable(port.path),
        )
    return Check("port", nim).ok("{port} is there", port=port)


def check_permissions(machine: Machine, settings: Settings) -> Iterator[CheckResult]:
    port = machine.port.path
    if machine.port.is_network:
        return
    try:
        mode = stat.filemode(port.stat().st_mode)
    except OSError:
        return  # reported by `check_port`
    user = daemon_user(settings)
    if may_use(settings.storage.path.parent, port):
        yield Check("permissions", machine.nim).ok("{user} may open {port}", user=user, port=machine.port)
    else:
        yield Check("permissions", machine.nim).fail(
            "{user} may not open {port} ({mode})",
            "sudo usermod -aG dialout {user}, then plug the cable in again and sudo systemctl restart mcfd",
            user=user,
            port=machine.port,
            mode=mode,
        )


def check_holders(machine: Machine, ledger: Path) -> Iterator[CheckResult]:
    """For a line without our daemon; the daemon, found by its open ledger, does not count: it may try the port now."""
    if machine.port.is_network or not machine.port.path.exists():
        return
    ours = {holder.pid for holder in find_holders(ledger)}
    holders = [holder for holder in find_holders(machine.port.path) if holder.pid not in ours]
    if holders:
        names = ", ".join(map(str, holders))
        yield Check("line", machine.nim).fail(
            "held by {names}",
            "stop that program: only one application may speak to the machine (ModemManager: sudo apt purge "
            "modemmanager)",
            names=names,
        )
    else:
        yield Check("line", machine.nim).ok("no other program on the line")


# -- without a running daemon: our own reading -------------------------------------------------------------------------


async def _look(machine: Machine) -> PortReading | Silence:
    return await inspect(machine.port, machine.baudrate, Timers(tries=machine.tries, first_byte=machine.reply_timeout))


def _judge(machine: Machine, found: PortReading | Silence, now: int, *, is_box_right: bool) -> Iterator[CheckResult]:
    nim = machine.nim
    if isinstance(found, Silence):
        if found.why in ("silent", "stranger"):
            what, todo = wording.ANSWERS[found.why]
            yield Check("machine", nim).fail(what(port=machine.port), todo)
        elif found.why != "busy" or machine.port.is_network:  # for a tty, `check_holders` reports it
            yield Check("machine", nim).fail(found.reason, "see the points above")
        return
    state = found.state
    if not same_machine(nim, state.nim):
        yield Check("nim", nim).fail("the machine on this line is {found}, not {nim}", SWAPPED, found=state.nim)
        return
    figures = {"tc": state.counters.tc, "fvc": state.counters.fvc, "frc": state.counters.frc}
    yield Check("machine", nim).ok(Text("{nim} answers: TC {tc}  FVC {fvc}  FRC {frc}", nim=state.nim, **figures))
    yield check_clock(nim, drift_seconds(now, state.time), is_box_right=is_box_right)
    contact = machine_millis(found.link.last_contact)
    days = None if contact is None else max(0, (now - contact) // DAY)
    yield check_tax_server(nim, days, found.link.documents - found.link.acknowledged, found.link.error)


# -- with a running daemon: its report ---------------------------------------------------------------------------------


def _judge_health(health: MachineHealth, *, is_box_right: bool) -> Iterator[CheckResult]:
    nim = health.nim
    if health.replaced_by:
        yield Check("spare", nim).warn(
            "its spare {spare} certifies in its place",
            "once it is repaired: sudo mcfd machine take-back {nim} --reason …",
            spare=health.replaced_by,
        )
    if health.test_mode:
        yield Check("test_mode", nim).fail(
            "the machine works in test mode (its codes begin with TESTFACT): what it certifies has no fiscal value",
            "have it activated by the tax authority; only for trials: test_mode = true in its [[machine]]",
        )
    if health.attention and (health.attention_code in REMEDIES or not health.test_mode):
        todo = REMEDIES.get(health.attention_code, "sudo mcfd machine settle {nim}")
        yield Check("machine", nim).fail(Text(health.attention), todo)
    elif health.connected:
        yield Check("machine", nim).ok("answers the daemon; {waiting} waiting", waiting=health.waiting)
    elif health.last_error_code == OTHER_MACHINE.code:
        yield Check("nim", nim).fail(Text(health.last_error), SWAPPED)
    else:
        yield Check("machine", nim).fail(
            "does not answer the daemon: {why}",
            "machine switched on? cable in at both ends? otherwise unplug and plug in again, then mcfd doctor",
            why=health.last_error,
        )
    if health.connected:
        yield check_clock(nim, health.clock_drift, is_box_right=is_box_right)
        if health.tax_server_waiting is not None:
            yield check_tax_server(nim, health.tax_server_days, health.tax_server_waiting, "")


# -- for both ----------------------------------------------------------------------------------------------------------


def check_clock(nim: str, drift: int | None, *, is_box_right: bool = False) -> CheckResult:
    if drift is None:
        return Check("clock", nim).warn("the machine's time cannot be read", "have the machine set by its supplier")
    summary = Text("{time} off the box's clock", time=duration(drift))
    if abs(drift) <= DRIFT_WARN:
        return Check("clock", nim).ok(summary)
    judge = Check("clock", nim).fail if abs(drift) > DRIFT_FAIL else Check("clock", nim).warn
    if is_box_right:
        todo = Text("the box's clock is synchronised: have the machine's set by its supplier")
    else:
        todo = Text(
            "look which of the two is wrong; the machine's: have it set by its supplier; the box's: sudo timedatectl set-ntp true, or "
            "without internet: sudo timedatectl set-time 'YYYY-MM-DD hh:mm'"
        )
    return judge(summary, todo)


def check_tax_server(nim: str, days: int | None, waiting: int, error: str) -> CheckResult:
    summary = Text("{contact}; {waiting} to be sent", contact=last_contact(days), waiting=waiting)
    if error:
        summary = Text(f"{tr(summary)} ({error})")
    if days is None or days >= WARN_DAYS:
        return Check("tax_server", nim).warn(
            summary,
            "connect the machine to the internet (its SIM, its network cable): after {limit} days without "
            "contact it may block itself",
            limit=ALERT_DAYS,
        )
    return Check("tax_server", nim).ok(summary)


def _stable(port: Path) -> str:
    return next((str(found.stable) for found in find_ports() if found.path == port), "/dev/serial/by-id/…")
