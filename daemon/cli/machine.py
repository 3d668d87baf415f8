from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon.cli import answers, helps
from daemon.cli.ledger import now, with_ledger
from daemon.cli.live import read_machine
from daemon.cli.settle import settle
from daemon.cli.shared import Failure, config_option, examples, json_option, print_json, print_table, say, warn
from daemon.core.certification import Counters, LastInvoice
from daemon.core.clock import drift_seconds, millis_text
from daemon.core.closure import Book, BookState
from daemon.core.machine_info import MachineInfo, machine_info
from daemon.core.settlement import same_machine
from daemon.machines.reading import Reading, Silence
from daemon.settings import Machine, Settings, load
from daemon.texts import Text

if TYPE_CHECKING:
    from daemon.store import Store


@click.group("machine", help=str(helps.HELP_MACHINE))
def command() -> None:
    pass


command.add_command(settle)


@command.command(
    "list", help=str(helps.HELP_MACHINE_LIST), epilog=examples("mcfd machine list", "mcfd machine list --json")
)
@config_option
@json_option
def list_machines(config: Path | None, as_json: bool) -> None:
    settings = load(config)
    known = _known(settings)
    configured = {machine.nim: machine for machine in settings.machine}
    nims = [*configured, *(nim for nim in known if nim not in configured)]
    if as_json:
        print_json([_listed(nim, configured.get(nim), known.get(nim)) for nim in nims])
        return
    rows = [_row(nim, configured.get(nim), known.get(nim)) for nim in nims]
    print_table(("NIM", answers.PORT, answers.STATE, "Z", "TC", "FVC", "FRC", answers.LAST_INVOICE), rows)
    for state in known.values():
        if state.attention:
            say(f"\n{state.book.nim}: {state.attention}\n  → mcfd machine settle {state.book.nim}")


@command.command(
    "info", help=str(helps.HELP_MACHINE_INFO), epilog=examples("mcfd machine info", "mcfd machine info EL02000015-1")
)
@config_option
@click.argument("nim", required=False)
@json_option
def info(config: Path | None, nim: str | None, as_json: bool) -> None:
    settings = load(config)
    machine = settings.find_machine(nim)
    if machine is None:
        raise Failure(answers.WHICH_MACHINE(nims=", ".join(machine.nim for machine in settings.machine)))
    state = _known(settings).get(machine.nim)
    reading = asyncio.run(read_machine(machine))
    if as_json:
        print_json(_told(machine, state, reading))
    elif isinstance(reading, Silence):
        warn(answers.PORT_BUSY(port=machine.port) if reading.busy else answers.NO_ANSWER(why=reading.reason))
        print_pairs(_ledger_pairs(state))
    else:
        if not same_machine(machine.nim, reading.state.nim):
            warn(answers.OTHER_MACHINE(nim=machine.nim, found=reading.state.nim))
        print_pairs(reading_pairs(machine.nim, reading))


@command.command("ports", help=str(helps.HELP_MACHINE_PORTS), epilog=examples("mcfd machine ports"))
@json_option
def ports(as_json: bool) -> None:
    from bridge.ports import find_ports

    found = find_ports()
    if as_json:
        print_json(
            [
                {
                    "path": str(port.path),
                    "stable": str(port.stable),
                    "usb": port.usb or None,
                    "product": port.product or None,
                    "serial": port.serial or None,
                }
                for port in found
            ]
        )
        return
    if not found:
        warn(answers.NO_PORTS)
    rows = [(port.stable, port.path, port.usb, port.product, port.serial) for port in found]
    print_table((answers.STABLE, answers.DEVICE, "USB", answers.PRODUCT, answers.SERIAL), rows)


# -- what the ledger knows ------------------------------------------------------------------------------------------------


def _known(settings: Settings) -> Mapping[str, BookState]:
    """The live book of each NIM; nothing before the first start."""
    if not settings.storage.path.exists():
        return {}
    return with_ledger(settings, _live_states)


async def _live_states(store: Store) -> Mapping[str, BookState]:
    return {book.nim: await store.state(book) for book in await store.books() if book.mode == "live"}


def _condition(machine: Machine | None, state: BookState | None) -> tuple[str, Text]:
    """In a word for scripts, and for people."""
    if machine is None:
        return "not configured", answers.NOT_CONFIGURED
    if state is not None and state.attention:
        return "attention", answers.IN_ATTENTION
    if not machine.enabled:
        return "disabled", answers.DISABLED
    if state is None or state.known is None:
        return "never read", answers.NEVER_READ
    return "known", answers.KNOWN


def _listed(nim: str, machine: Machine | None, state: BookState | None) -> dict[str, object]:
    return {
        "nim": nim,
        "port": str(machine.port) if machine else None,
        "condition": _condition(machine, state)[0],
        **_ledger(state),
    }


def _row(nim: str, machine: Machine | None, state: BookState | None) -> tuple[object, ...]:
    known = state.known if state else None
    counters = (known.tc, known.fvc, known.frc) if known else ("", "", "")
    numbers = (state.z_number if state else "", *counters, state.last_number if state else "")
    return (nim, machine.port if machine else "", _condition(machine, state)[1], *numbers)


def _ledger(state: BookState | None) -> dict[str, object]:
    return {
        "attention": (state.attention or None) if state else None,
        "counters": _counters(state.known) if state and state.known else None,
        "last_invoice": (state.last_number or None) if state else None,
        "z_number": state.z_number if state else 0,
        "unexplained": state.unexplained if state else 0,
    }


# -- one machine ------------------------------------------------------------------------------------------------------------


def _told(machine: Machine, state: BookState | None, reading: Reading | Silence) -> dict[str, object]:
    silent = isinstance(reading, Silence)
    return {
        "nim": machine.nim,
        "port": str(machine.port),
        "source": "ledger" if isinstance(reading, Silence) else "machine",
        "problem": reading.reason if isinstance(reading, Silence) else None,
        "machine": None if isinstance(reading, Silence) else _info(machine.nim, reading),
        "last": None if isinstance(reading, Silence) else reading.state.last and _last(reading.state.last),
        "ledger": _ledger(state),
        "condition": _condition(machine, state)[0] if silent else "read",
    }


def _info(nim: str, reading: Reading) -> MachineInfo:
    """In the shape of the API's `/info`."""
    at = now()
    drift = drift_seconds(at, reading.state.time)
    book = Book(0, nim, "live")
    return machine_info(
        book, reading.state, reading.link, reading.taxpayer, drift=drift, read_at=millis_text(at), now=at
    )


def reading_pairs(nim: str, reading: Reading) -> list[tuple[object, object]]:
    """What is shown to people of a machine that was read."""
    state, info = reading.state, _info(nim, reading)
    server = info.tax_server
    last = state.last
    contact = answers.DAYS_AGO(
        at=server.last_contact or "–", days="?" if server.days_since_contact is None else server.days_since_contact
    )
    return [
        ("NIM", state.nim),
        ("IFU", state.ifu),
        (answers.TRADE_NAME, info.merchant.commercial_name),
        (answers.CITY, info.merchant.city),
        (
            answers.MACHINE_CLOCK,
            answers.DRIFT(time=state.time, drift="?" if info.clock_drift is None else info.clock_drift),
        ),
        (answers.COUNTERS, _counted(state.counters)),
        (answers.LAST_INVOICE, f"{last.number} ({last.type}, {last.total} XOF)" if last else "–"),
        (answers.TAX_SERVER, contact),
        (answers.TO_TAX_SERVER, server.waiting),
        *([(answers.SERVER_ERROR, server.last_error)] if server.last_error else []),
    ]


def _ledger_pairs(state: BookState | None) -> list[tuple[object, object]]:
    if state is None or state.known is None:
        return [(answers.STATE, answers.NEVER_READ)]
    return [
        ("IFU", state.ifu),
        (answers.COUNTERS, _counted(state.known)),
        (answers.LAST_INVOICE, state.last_number or "–"),
        ("Z", state.z_number),
        *([(answers.IN_ATTENTION, state.attention)] if state.attention else []),
    ]


def print_pairs(pairs: list[tuple[object, object]]) -> None:
    width = max(len(str(name)) for name, _ in pairs)
    for name, value in pairs:
        say(f"{name!s:<{width}}  {value}")


def _counted(counters: Counters) -> str:
    return f"TC {counters.tc}  FVC {counters.fvc}  FRC {counters.frc}"


def _counters(counters: Counters) -> dict[str, int]:
    return {"tc": counters.tc, "fvc": counters.fvc, "frc": counters.frc}


def _last(last: LastInvoice) -> dict[str, object]:
    return {"number": last.number, "type": last.type, "total": last.total, "code": last.code, "time": last.time}
