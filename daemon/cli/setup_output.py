"""Output of `mcfd setup`: for people, for scripts, and as a QR code for a till's camera."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from common.language import duration, tr
from daemon.cli.machine_output import reading_pairs
from daemon.cli.output import complain, print_pairs, print_table, say
from daemon.core.clock import drift_seconds
from daemon.core.machine.state import PortReading, Silence
from daemon.setup.plan import differences
from daemon.setup.request import MachineAccess, SetupResult, for_till

if TYPE_CHECKING:
    from daemon.setup.request import PortResult

DRIFT_SECONDS = 120


def show_ports(results: Sequence[PortResult]) -> None:
    print_table((tr("PORT"), tr("STATE")), [(each.port, _outcome(each)) for each in results])


def _outcome(result: PortResult) -> str:
    return result.without_name(tr(result.silence)) if result.silence else tr("machine {nim}", nim=result.nim)


def show_machines(chosen: Sequence[PortResult]) -> None:
    for each in chosen:
        if isinstance(each.found, PortReading):
            click.echo()
            print_pairs([*reading_pairs(each.nim, each.found), (tr("PORT"), each.port)])
            seconds = drift_seconds(each.found.read_at, each.found.state.time)
            if seconds is not None and abs(seconds) > DRIFT_SECONDS:
                complain("the box's clock is {time} off the machine's: set it (timedatectl)", time=duration(seconds))
    click.echo()


def show_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Prints what changes in a replaced configuration; everything else stays."""
    for path, *values in differences(dict(before), dict(after)):
        was, now_is = ("–" if value is None else value for value in values)
        say("{path}: {was} → {now_is}", path=path, was=was, now_is=now_is)


def show_result(result: SetupResult) -> None:
    machines = result.machines
    pairs: list[tuple[object, object]] = [(tr("CONFIGURATION"), result.config)]
    if result.previous:
        pairs.append((tr("THE OLD ONE"), result.previous))
    if result.root:
        pairs.append(
            (tr("CERTIFICATE"), tr("{path}, to be installed on the tills (mcfd tls export-ca)", path=result.root))
        )
    for each in machines:
        pairs.append((tr("ADDRESS"), f"{each.address}/v1/mcf/{each.nim}"))
        if each.key:
            pairs.append((tr("KEY"), each.key))
    pairs += [(tr("PAGE"), f"{url}/ui/") for url in result.urls]
    if person := result.person:
        pairs += [(tr("PERSON"), person.name), (tr("PASSWORD"), person.password)]
    print_pairs(pairs)
    _show_codes(machines)
    if old := [key for each in machines for key in each.older_keys]:
        say("keys of before that stay valid: {keys} (mcfd keys revoke ID)", keys=", ".join(old))
    if any(each.key for each in machines):
        say("the key is shown this once only")
    if person:
        say("the password too; another one: mcfd users passwd {name}", name=person.name)
    say("next: sudo systemctl restart mcfd, then mcfd doctor")


def _show_codes(machines: Sequence[MachineAccess]) -> None:
    """One code at a time, with its machine's NIM: a camera that sees two takes the wrong one."""
    with_key = [each for each in machines if each.key and sys.stdout.isatty()]
    for number, each in enumerate(with_key, 1):
        say("QR code of {nim} ({number} of {count})", nim=each.nim, number=number, count=len(with_key))
        _print_qr(each)
        if number < len(with_key) and sys.stdin.isatty():
            click.pause(tr("the next one: any key"))


def _print_qr(access: MachineAccess) -> None:
    from daemon.paper.logo import qr_for_terminal

    compact = (sys.stdout.encoding or "").lower().startswith("utf")  # half blocks need Unicode
    sys.stdout.write(qr_for_terminal(for_till(access), "l", compact=compact))


def result_json(result: SetupResult, ports: Sequence[PortResult], chosen: Sequence[PortResult]) -> dict[str, object]:
    person = result.person
    return {
        "config": str(result.config),
        "kept": str(result.previous) if result.previous else None,
        "certificate": str(result.root) if result.root else None,
        "ports": [_port(each) for each in ports],
        "machines": [_machine(access, each) for access, each in zip(result.machines, chosen, strict=True)],
        "person": {"name": person.name, "password": person.password} if person else None,
    }


def nothing_set_up(ports: Sequence[PortResult]) -> dict[str, object]:
    nothing = {"config": None, "kept": None, "certificate": None}
    return {**nothing, "ports": [_port(each) for each in ports], "machines": [], "person": None}


def _port(result: PortResult) -> dict[str, object]:
    if isinstance(result.found, Silence):
        return {"port": str(result.port), "nim": None, "why": result.found.why, "reason": str(result.found.reason)}
    return {"port": str(result.port), "nim": result.nim, "why": None, "reason": None}


def _machine(access: MachineAccess, result: PortResult) -> dict[str, object]:
    found = result.found
    return {
        "nim": access.nim,
        "ifu": found.state.ifu if isinstance(found, PortReading) else None,
        "trade_name": found.taxpayer[0] if isinstance(found, PortReading) else None,
        "port": str(result.port),
        "address": access.address,
        "key": access.key or None,
    }
