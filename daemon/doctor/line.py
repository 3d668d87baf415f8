"""One machine and the line to it: the port, who may use it, who does, and what answers there."""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bridge.holders import find_holders
from bridge.link import Timers
from bridge.ports import find_ports
from daemon.core.clock import DAY, drift_seconds, machine_millis
from daemon.core.machine_info import ALERT_DAYS
from daemon.core.settlement import same_machine
from daemon.doctor import wording
from daemon.doctor.finding import Finding, fail, ok, warn
from daemon.doctor.service import MachineHealth, Service
from daemon.machines.look import look
from daemon.machines.reading import Reading, Silence
from daemon.settings import Machine, Settings

DRIFT_WARN, DRIFT_FAIL = 120, 3600
"""Seconds; beyond an hour the ledger takes the machine's time for its own (core.clock)."""
UNSTABLE = re.compile(r"/dev/tty(USB|ACM)\d+")
WRONG_MACHINE = re.compile(r"the machine on this line is (?P<found>\S+), not ")
"""As `daemon.machines.line` says it."""


@dataclass(frozen=True)
class User:
    """Whom the daemon runs as: the owner of the ledger's folder, when asked by root."""

    name: str
    uid: int
    groups: frozenset[int]

    def may_use(self, status: os.stat_result) -> bool:
        mode = status.st_mode
        if self.uid == 0:
            return True
        if status.st_uid == self.uid:
            return bool(mode & stat.S_IRUSR and mode & stat.S_IWUSR)
        if status.st_gid in self.groups:
            return bool(mode & stat.S_IRGRP and mode & stat.S_IWGRP)
        return bool(mode & stat.S_IROTH and mode & stat.S_IWOTH)


def daemon_user(settings: Settings) -> User:
    uid = os.geteuid()
    if uid == 0 and settings.storage.path.parent.exists():
        uid = settings.storage.path.parent.stat().st_uid
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(str(uid), uid, frozenset())
    return User(entry.pw_name, uid, frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid)))


async def check_line(settings: Settings, machine: Machine, service: Service, now: int) -> list[Finding]:
    nim = machine.nim
    if not machine.enabled:
        return [ok("machine", wording.SWITCHED_OFF, nim=nim)]
    found = [check_port(machine), *check_permissions(machine, daemon_user(settings))]
    health = service.machine(nim)
    if health is None and service.running:
        return [*found, fail("machine", wording.NOT_TAKEN_UP, wording.RESTART_IT, nim=nim)]
    if health is None:
        found += check_holders(machine)
        return [*found, *_judge(machine, await _look(machine), now)]
    return [*found, *_judge_health(health)]


def check_port(machine: Machine) -> Finding:
    nim, port = machine.nim, machine.port
    try:
        mode = port.stat().st_mode
    except OSError:
        there = ", ".join(str(found.stable) for found in find_ports()) or str(wording.NONE)
        return fail("port", wording.NO_SUCH_PORT(port=port), wording.PLUG_IN(ports=there), nim=nim)
    if not stat.S_ISCHR(mode):
        return fail("port", wording.NOT_A_PORT(port=port), wording.CORRECT_PORT, nim=nim)
    if UNSTABLE.fullmatch(str(port)):
        return warn("port", wording.UNSTABLE_PORT(port=port), wording.STABLE_PORT(port=_stable(port)), nim=nim)
    return ok("port", wording.PORT_THERE(port=port), nim=nim)


def check_permissions(machine: Machine, user: User) -> Iterator[Finding]:
    try:
        status = machine.port.stat()
    except OSError:
        return  # told by `check_port`
    if user.may_use(status):
        yield ok("permissions", wording.MAY_OPEN(user=user.name, port=machine.port), nim=machine.nim)
    else:
        found = wording.MAY_NOT_OPEN(user=user.name, port=machine.port, mode=stat.filemode(status.st_mode))
        yield fail("permissions", found, wording.JOIN_GROUP(user=user.name), nim=machine.nim)


def check_holders(machine: Machine) -> Iterator[Finding]:
    """Only where our own daemon does not have the line."""
    if not machine.port.exists():
        return
    holders = find_holders(machine.port)
    if holders:
        names = ", ".join(map(str, holders))
        yield fail("line", wording.HELD(names=names), wording.STOP_OTHER, nim=machine.nim)
    else:
        yield ok("line", wording.LINE_FREE, nim=machine.nim)


# -- without a running daemon: a look of our own ------------------------------------------------------------------------------


async def _look(machine: Machine) -> Reading | Silence:
    return await look(machine.port, machine.baudrate, Timers(tries=machine.tries, first_byte=machine.reply_timeout))


def _judge(machine: Machine, found: Reading | Silence, now: int) -> Iterator[Finding]:
    nim = machine.nim
    if isinstance(found, Silence):
        if found.why in ("silent", "stranger"):
            what, todo = wording.ANSWERS[found.why]
            yield fail("machine", what(port=machine.port), todo, nim=nim)
        elif found.why != "busy":  # that is told by `check_holders`, the rest of it here
            yield fail("machine", found.reason, wording.SEE_ABOVE, nim=nim)
        return
    state = found.state
    if not same_machine(nim, state.nim):
        yield fail("nim", wording.OTHER_NIM(found=state.nim, nim=nim), wording.CHECK_CABLE, nim=nim)
        return
    counters = state.counters
    yield ok("machine", wording.ANSWERED(nim=state.nim, tc=counters.tc, fvc=counters.fvc, frc=counters.frc), nim=nim)
    yield check_clock(nim, drift_seconds(now, state.time))
    contact = machine_millis(found.link.last_contact)
    days = None if contact is None else max(0, (now - contact) // DAY)
    yield check_tax_server(nim, days, found.link.held - found.link.acknowledged, found.link.error)


# -- with one: what it says ---------------------------------------------------------------------------------------------------


def _judge_health(health: MachineHealth) -> Iterator[Finding]:
    nim = health.nim
    if health.attention:
        yield fail("machine", health.attention, wording.SETTLE(nim=nim), nim=nim)
    elif health.connected:
        yield ok("machine", wording.DAEMON_HAS_IT(waiting=health.waiting), nim=nim)
    elif other := WRONG_MACHINE.search(health.last_error):
        yield fail("nim", wording.OTHER_NIM(found=other["found"], nim=nim), wording.CHECK_CABLE, nim=nim)
    else:
        yield fail("machine", wording.OFFLINE(why=health.last_error), wording.CHECK_LINE, nim=nim)
    if health.connected:
        yield check_clock(nim, health.clock_drift)
        if health.tax_server_waiting is not None:
            yield check_tax_server(nim, health.tax_server_days, health.tax_server_waiting, "")


# -- what both tell -----------------------------------------------------------------------------------------------------------


def check_clock(nim: str, drift: int | None) -> Finding:
    if drift is None:
        return warn("clock", wording.NO_MACHINE_TIME, wording.SET_MACHINE_CLOCK, nim=nim)
    told = wording.DRIFT(seconds=abs(drift))
    if abs(drift) > DRIFT_FAIL:
        return fail("clock", told, wording.SET_CLOCK, nim=nim)
    if abs(drift) > DRIFT_WARN:
        return warn("clock", told, wording.SET_CLOCK, nim=nim)
    return ok("clock", told, nim=nim)


def check_tax_server(nim: str, days: int | None, waiting: int, error: str) -> Finding:
    told = wording.NEVER_MET(waiting=waiting) if days is None else wording.LAST_MET(days=days, waiting=waiting)
    if error:
        told = f"{told} ({error})"
    if days is None or days >= ALERT_DAYS:
        return warn("tax_server", told, wording.CONNECT_MACHINE(limit=ALERT_DAYS), nim=nim)
    return ok("tax_server", told, nim=nim)


def _stable(port: Path) -> str:
    return next((str(found.stable) for found in find_ports() if found.path == port), "/dev/serial/by-id/…")
