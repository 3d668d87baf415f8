from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click
from msgspec.structs import asdict

from common.language import Text, tr
from common.language.reasons import from_stored
from common.wire.instants import now_millis
from daemon.cli.book import live_states
from daemon.cli.groups import LazyGroup, Member
from daemon.cli.machine_output import (
    health_pairs,
    info_of,
    ledger_pairs,
    pair_lines,
    reading_pairs,
    take_over_json,
)
from daemon.cli.options import explained, json_option, settings_option
from daemon.cli.output import Failure, complain, find_machine, print_json, print_pairs, print_table, read_reason, say
from daemon.core.clock import Clocks, decide_time
from daemon.core.errors import MachineBusy
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import BookState
from daemon.core.ledger.take_over import TakeOver, TakeOverRefused
from daemon.core.machine.state import PortReading, Silence, same_machine
from daemon.doctor.service import MachineHealth, ask
from daemon.ledger_access import change, read_ledger, read_rows
from daemon.operations import DecideSpare
from daemon.settings import Machine, Settings
from daemon.store.store import Store
from daemon.store.tables.book import attempts
from daemon.store.tables.book.take_overs import all_lasting

MEMBERS = {
    "last-z": Member(
        "Say the last Z on paper, after a restore onto a disk that remembers none: the next one goes on after it.",
        "settle",
        "last_z",
    ),
    "probe": Member("Read from a machine, line by line, whether it is as mcfd takes it to be; nothing is certified."),
    "recording": Member("What moved on the line to a machine, frame by frame; names, IFU and addresses are masked."),
    "settle": Member(
        "Settle a machine in attention: shows what was found, asks for a decision and its reason, writes them to the ledger."
    ),
}
CONDITIONS = {
    "not configured": Text("not configured"),
    "attention": Text("ATTENTION"),
    "disabled": Text("disabled"),
    "ready": Text("ready"),
    "offline": Text("does not answer"),
    "known": Text("known"),
    "never read": Text("never read"),
}


@click.group("machine", cls=LazyGroup, members=MEMBERS)
def command() -> None:
    pass


@command.command(
    "list",
    **explained(
        "The machines configured: how each is now, as the running daemon has it, and what the ledger knows of it.",
        "mcfd machine list",
        "mcfd machine list --json",
    ),
)
@settings_option
@json_option
def list_machines(settings: Settings, as_json: bool) -> None:
    states, service = _live_books(settings), ask(settings.server)
    lasting = read_rows(settings, all_lasting) if settings.storage.path.exists() else ()
    configured = {machine.nim: machine for machine in settings.machine}
    nims = [*configured, *(nim for nim in states if nim not in configured)]
    found = [_status(nim, configured.get(nim), states.get(nim), service.machine(nim), lasting) for nim in nims]
    if as_json:
        print_json(found)
        return
    if not service.running:
        complain("the daemon does not answer at {address}; this is what the ledger knows", address=service.address)
    heads = ("NIM", tr("PORT"), tr("STATE"), "Z", "TC", "FVC", "FRC", tr("LAST INVOICE"))
    print_table(heads, [_row(each) for each in found])
    for line in pair_lines(settings, lasting):
        say(f"\n{line}")
    for state in states.values():
        if state.attention:
            say(f"\n{state.book.nim}: {tr(from_stored(state.attention))}\n  → mcfd machine settle {state.book.nim}")


@command.command(
    "info",
    **explained(
        "The machine as it is now: from the running daemon, which has its port; otherwise read.",
        "mcfd machine info",
        "mcfd machine info EL02000015-1",
    ),
)
@settings_option
@click.argument("nim", required=False)
@json_option
def info(settings: Settings, nim: str | None, as_json: bool) -> None:
    machine = find_machine(settings, nim or "")
    state = _live_books(settings).get(machine.nim)
    service = ask(settings.server)
    health = service.machine(machine.nim)
    if health is not None:
        if as_json:
            print_json(_info_json(machine, state, health, None))
        else:
            print_pairs([*health_pairs(health), *ledger_pairs(state)])
        return
    import asyncio

    reading = asyncio.run(read_machine(machine))
    if as_json:
        print_json(_info_json(machine, state, None, reading))
    elif isinstance(reading, Silence):
        complain(
            tr(
                "{port} is held by another program, most likely the daemon; this is what the ledger knows",
                port=machine.port,
            )
            if reading.why == "busy"
            else tr("the machine was not read: {why}; this is what the ledger knows", why=reading.reason)
        )
        print_pairs(ledger_pairs(state))
    else:
        if not same_machine(machine.nim, reading.state.nim):
            names = {"nim": machine.nim, "found": reading.state.nim}
            complain("note: the configuration says {nim}, the machine on this port is {found}", **names)
        print_pairs(reading_pairs(machine.nim, reading))


@command.command("ports", **explained("The serial ports of this box; nothing is opened.", "mcfd machine ports"))
@json_option
def ports(as_json: bool) -> None:
    from bridge.ports import find_ports

    found = find_ports()
    if as_json:
        names = ("path", "stable", "usb", "product", "serial")
        print_json([{name: str(getattr(port, name)) or None for name in names} for port in found])
        return
    if not found:
        complain("no serial port on this box")
    rows = [(port.stable, port.path, port.usb, port.product, port.serial) for port in found]
    print_table((tr("STABLE NAME"), tr("DEVICE"), "USB", tr("PRODUCT"), tr("SERIAL")), rows)


@command.command(
    "take-over",
    **explained(
        "The spare certifies in the place of a machine that is out of order, until it is taken back; kept in the ledger with its reason.",
        'mcfd machine take-over EL02000015-1 --reason "panne : ne démarre plus"',
    ),
)
@settings_option
@click.argument("nim")
@click.option("--reason", required=True, help=tr("Why; kept in the ledger."))
def take_over(settings: Settings, nim: str, reason: str) -> None:
    pair = _decide(settings, nim, reason, is_back=False)
    say("{spare} certifies for {nim} from now on", spare=pair.spare.book.nim, nim=pair.first.book.nim)
    _warn_if_offline(settings, pair.spare.book.nim)
    for attempt in pair.doubts:
        say(
            "invoice {number} ({total} XOF) has no known outcome: its number stays taken until {nim} answers again, or mcfd machine settle {nim}",
            number=attempt.number,
            total=attempt.total_ttc,
            nim=pair.first.book.nim,
        )


@command.command(
    "take-back",
    **explained(
        "The machine certifies for itself again: its spare has done its service.",
        'mcfd machine take-back EL02000015-1 --reason "réparée"',
    ),
)
@settings_option
@click.argument("nim")
@click.option("--reason", required=True, help=tr("Why; kept in the ledger."))
def take_back(settings: Settings, nim: str, reason: str) -> None:
    pair = _decide(settings, nim, reason, is_back=True)
    say("{nim} certifies for itself again", nim=pair.first.book.nim)
    _warn_if_offline(settings, pair.first.book.nim)


def _warn_if_offline(settings: Settings, nim: str) -> None:
    health = ask(settings.server).machine(nim)
    if health is not None and not health.connected:
        complain("{nim} is not connected: plug it in, nothing is certified before", nim=nim)


class SparePair(NamedTuple):
    """`doubts` are attempts at the first machine without a known outcome; `at` is the decision's time in ms."""

    first: BookState
    spare: BookState
    doubts: Sequence[Record]
    at: int


def _pair(settings: Settings, nim: str) -> SparePair:
    first = find_machine(settings, nim)
    spare = settings.spare_of(first)
    if spare is None:
        raise Failure("{nim} has no spare in the configuration (spare_for)", nim=first.nim)
    names = first.nim, spare.nim

    async def read(store: Store) -> SparePair:
        states = await live_states(store)
        found = [next((state for state in states if same_machine(state.book.nim, name)), None) for name in names]
        if found[0] is None or found[1] is None:
            raise Failure("the ledger does not know both machines yet: start the daemon with the spare configured")
        last_at = max(each.last_at for each in found if each)
        clocks = Clocks(last_at, now_millis(), synchronised=False, machine=None, stepped=False, accepted=0)
        doubts = await store.ledger.read(attempts.unfinished, found[0].book)
        return SparePair(found[0], found[1], doubts, decide_time(clocks).at)

    return read_ledger(settings, read)


def _decide(settings: Settings, nim: str, reason: str, *, is_back: bool) -> SparePair:
    pair = _pair(settings, nim)
    try:
        change(settings, DecideSpare(pair.first.book, pair.spare.book, read_reason(reason), pair.at, is_back))
    except (TakeOverRefused, MachineBusy) as error:
        raise Failure(error) from None
    return pair


async def read_machine(machine: Machine) -> PortReading | Silence:
    """Reads a configured machine with its own retries and time limits."""
    from bridge.link import Timers
    from daemon.machines.inspect_port import PATIENCE_SECONDS, inspect

    timers = Timers(tries=machine.tries, first_byte=machine.reply_timeout)
    patience = PATIENCE_SECONDS + 4 * machine.tries * machine.reply_timeout
    return await inspect(machine.port, machine.baudrate, timers, patience)


# -- what the ledger knows ---------------------------------------------------------------------------------------------


def _live_books(settings: Settings) -> Mapping[str, BookState]:
    """The live book of each NIM; empty before the first start."""
    if not settings.storage.path.exists():
        return {}
    return {_named(state.book.nim, settings): state for state in read_ledger(settings, live_states)}


def _named(nim: str, settings: Settings) -> str:
    """The NIM as configured: the machine may have been activated again since."""
    machine = settings.find_machine(nim)
    return machine.nim if machine else nim


def _condition(machine: Machine | None, state: BookState | None, health: MachineHealth | None = None) -> str:
    if machine is None:
        return "not configured"
    if (state is not None and state.attention) or (health is not None and health.attention):
        return "attention"
    if not machine.enabled:
        return "disabled"
    if health is not None:
        return "ready" if health.connected else "offline"
    return "known" if state is not None and state.counters else "never read"


def _status(
    nim: str,
    machine: Machine | None,
    state: BookState | None,
    health: MachineHealth | None,
    lasting: Sequence[TakeOver],
) -> dict[str, object]:
    return {
        "nim": nim,
        "port": str(machine.port) if machine else None,
        "condition": _condition(machine, state, health),
        "spare_for": machine.spare_for if machine else None,
        "take_over": next((take_over_json(each) for each in lasting if state and state.book in each.pair), None),
        "live": None if health is None else _live(health),
        **_ledger(state),
    }


def _row(status: dict[str, Any]) -> tuple[object, ...]:
    counters = status["counters"] or {}
    condition = CONDITIONS[status["condition"]]
    return (
        *(status["nim"], status["port"] or "", tr(condition), status["z_number"]),
        *(counters.get(name, "") for name in ("tc", "fvc", "frc")),
        status["last_invoice"] or "",
    )


def _live(health: MachineHealth) -> dict[str, object]:
    """The daemon's present state of the machine."""
    names = ("connected", "waiting", "clock_drift", "tax_server_days", "tax_server_waiting")
    return {"problem": health.last_error or None, **{name: getattr(health, name) for name in names}}


def _ledger(state: BookState | None) -> dict[str, object]:
    return {
        "attention": (str(from_stored(state.attention)) or None) if state else None,
        "counters": asdict(state.counters) if state and state.counters else None,
        "last_invoice": (state.last_number or None) if state else None,
        "z_number": state.z_number if state else 0,
        "unexplained": state.unexplained if state else 0,
    }


# -- one machine -------------------------------------------------------------------------------------------------------


def _info_json(
    machine: Machine, state: BookState | None, health: MachineHealth | None, reading: PortReading | Silence | None
) -> dict[str, object]:
    content: dict[str, object] = {"nim": machine.nim, "port": str(machine.port)}
    condition = _condition(machine, state, health)
    if health is not None:
        content |= {"source": "daemon", "problem": health.last_error or None, "live": _live(health)}
    elif isinstance(reading, PortReading):
        last = reading.state.last
        content |= {"source": "machine", "problem": None, "machine": info_of(machine.nim, reading)}
        content |= {"last": asdict(last) if last else None}
        condition = "read"
    else:
        problem = str(reading.reason) if reading else None
        content |= {"source": "ledger", "problem": problem, "machine": None, "last": None}
    return content | {"ledger": _ledger(state), "condition": condition}
