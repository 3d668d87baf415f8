"""The output about one machine: as the daemon has it, as it was read, as the ledger knows it. What `mcfd setup` shows: for people, for scripts, and
as a QR code for a till's camera."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from common.language import tr
from common.language.reasons import from_stored
from common.wire.instants import now_millis
from daemon.cli.output import complain, moment, print_pairs, print_table, say, stamp
from daemon.core.clock import drift_seconds, millis_text
from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.take_over import TakeOver
from daemon.core.machine.state import FiscalCounters, PortReading, Silence, same_machine
from daemon.core.report.machine_info import MachineInfo, last_contact, machine_info
from daemon.doctor.service import MachineHealth
from daemon.settings import Settings
from daemon.setup.plan import differences
from daemon.setup.request import MachineAccess, PortResult, SetupResult, for_till


def health_pairs(health: MachineHealth) -> list[tuple[object, object]]:
    days, drift = health.tax_server_days, health.clock_drift
    return [
        ("NIM", health.nim),
        (tr("STATE"), tr("ready") if health.connected else health.last_error),
        (tr("WAITING"), health.waiting),
        (tr("CLOCK"), "–" if drift is None else tr("the box is {drift} s ahead", drift=drift)),
        (tr("TAX SERVER"), tr(last_contact(days))),
        (tr("TO BE SENT"), "–" if health.tax_server_waiting is None else health.tax_server_waiting),
    ]


def info_of(nim: str, reading: PortReading) -> MachineInfo:
    """In the shape of the API's `/info`."""
    at = reading.read_at or now_millis()
    drift = drift_seconds(at, reading.state.time)
    book = Book(0, nim, "live")
    return machine_info(
        book, reading.state, reading.link, reading.taxpayer, drift=drift, read_at=millis_text(at), now=at
    )


def reading_pairs(nim: str, reading: PortReading) -> list[tuple[object, object]]:
    """For people, of a machine that was read."""
    state, info = reading.state, info_of(nim, reading)
    server = info.tax_server
    last = state.last
    contact = tr(last_contact(server.days_since_contact))
    return [
        ("NIM", state.nim),
        ("IFU", state.ifu),
        (tr("TRADE NAME"), info.merchant.commercial_name),
        (tr("CITY"), info.merchant.city),
        (
            tr("CLOCK"),
            tr(
                "{time} (the box is {drift} s ahead)",
                time=state.time,
                drift="?" if info.clock_drift is None else info.clock_drift,
            ),
        ),
        (tr("COUNTERS"), counted(state.counters)),
        (tr("LAST INVOICE"), f"{last.number} ({last.type}, {last.total} XOF)" if last else "–"),
        (tr("TAX SERVER"), f"{contact} ({server.last_contact})" if server.last_contact else contact),
        (tr("TO BE SENT"), server.waiting),
        *([(tr("ERROR"), server.last_error)] if server.last_error else []),
    ]


def ledger_pairs(state: BookState | None) -> list[tuple[object, object]]:
    if state is None or state.counters is None:
        return [(tr("STATE"), tr("never read"))]
    return [
        ("IFU", state.ifu),
        (tr("COUNTERS"), counted(state.counters)),
        (tr("LAST INVOICE"), state.last_number or "–"),
        ("Z", state.z_number),
        *([(tr("ATTENTION"), tr(from_stored(state.attention)))] if state.attention else []),
    ]


def counted(counters: FiscalCounters) -> str:
    return f"TC {counters.tc}  FVC {counters.fvc}  FRC {counters.frc}"


# -- a machine and its spare ----------------------------------------------------------------------------------------------------


def pair_lines(settings: Settings, lasting: Sequence[TakeOver]) -> Iterator[str]:
    """Of each take-over that lasts since when and why, and of each other spare which machine it is for."""
    for each in lasting:
        yield (
            tr(
                "{spare} certifies in the place of {nim} since {moment}: {reason}",
                spare=each.spare.nim,
                nim=each.first.nim,
                moment=moment(each.began_at, settings.reports.zone),
                reason=each.reason,
            )
            + f"\n  → mcfd machine take-back {each.first.nim}"
        )
    for machine in settings.machine:
        if machine.spare_for and not any(same_machine(machine.nim, each.spare.nim) for each in lasting):
            yield tr("{spare} is the spare of {nim}", spare=machine.nim, nim=machine.spare_for)


def take_over_word(lasting: TakeOver) -> dict[str, object]:
    """For scripts: `spare` certifies in the place of `nim`."""
    began = stamp(lasting.began_at)
    return {"nim": lasting.first.nim, "spare": lasting.spare.nim, "since": began, "reason": lasting.reason}


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
            seconds = drift_seconds(each.found.read_at or now_millis(), each.found.state.time)
            if seconds is not None and abs(seconds) > DRIFT_SECONDS:
                complain("the box's clock is {seconds} s off the machine's: set it (timedatectl)", seconds=abs(seconds))
    click.echo()


def show_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """What a configuration that is replaced says otherwise from now on; everything else stays."""
    for path, was, now_is in differences(dict(before), dict(after)):
        say(
            "{path}: {was} → {now_is}",
            path=path,
            was="–" if was is None else was,
            now_is="–" if now_is is None else now_is,
        )


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
    """One at a time, each with the name of its machine: a camera that sees two takes the wrong one."""
    with_key = [each for each in machines if each.key and sys.stdout.isatty()]
    for number, each in enumerate(with_key, 1):
        say("QR code of {nim} ({number} of {count})", nim=each.nim, number=number, count=len(with_key))
        _print_qr(each)
        if number < len(with_key) and sys.stdin.isatty():
            click.pause(tr("the next one: any key"))


def _print_qr(access: MachineAccess) -> None:
    from daemon.paper.logo import qr_for_terminal

    compact = (sys.stdout.encoding or "").lower().startswith("utf")  # half blocks, where the terminal knows them
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
