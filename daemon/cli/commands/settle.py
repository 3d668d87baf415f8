"""`mcfd machine settle`: shows the case, takes a decision and its reason, and writes them to the ledger.
`mcfd machine last-z`: the last Z on paper, after a restore onto a disk without later records (decision 30).

While the daemon runs, it has the line: the machine's state then comes from the ledger. Otherwise it is read."""

import asyncio
import sys
from typing import cast

import click
import msgspec

from common.language import Text, tr
from common.language.reasons import from_stored
from common.wire.instants import now_millis
from daemon.cli.book import read_book
from daemon.cli.commands.machine import read_machine
from daemon.cli.machine_output import counted
from daemon.cli.options import examples, json_option, settings_option
from daemon.cli.output import Failure, find_machine, moment, print_json, read_reason, require_terminal, say
from daemon.core.clock import Clocks, decide_time
from daemon.core.ledger.book import BookState
from daemon.core.ledger.decision import (
    CONFIRMABLE,
    DECISIONS,
    MEANINGS,
    OBSTACLE_TEXTS,
    Case,
    Decision,
    DecisionRefused,
    Obstacle,
)
from daemon.core.ledger.paper import PaperInvoice, read_paper
from daemon.core.ledger.verdict import Evidence
from daemon.core.machine.state import PortReading, same_machine
from daemon.ledger_access import change, read_ledger
from daemon.operations import SetLastZ, Settle
from daemon.settings import Machine, Settings
from daemon.store.maintenance.numbers import check_last_z
from daemon.store.store import Store

OBSTACLES: dict[Obstacle, Text] = {
    "does not fit": Text("{decision} does not fit here; possible: {choices}"),
    "machine unknown": Text(
        "it is not known what the machine says: plug it in, or stop the daemon so that it can be read here"
    ),
    "not its last": Text(
        "the machine's last invoice is not {number} with this total: its code cannot be taken from it; if the machine did certify it, its paper "
        "has the code and the time (--code, --time); if it did not: not-certified"
    ),
    "its last": Text("the machine's last invoice is {number}, with this total and type: it did certify it"),
    **OBSTACLE_TEXTS,
}


@click.command(
    "settle",
    epilog=examples(
        "mcfd machine settle",
        'mcfd machine settle EL02000015-1 --decision not-certified --reason "vu sur le journal de la machine"',
        'mcfd machine settle EL02000015-1 --decision certified --code 7Q2M-K4ZP-… --time "31/12/2026 09:30:00" --reason "ticket"',
    ),
)
@settings_option
@click.argument("nim", required=False)
@click.option(
    "--decision",
    type=click.Choice(DECISIONS),
    help=tr(
        "certified: the machine did certify it; not-certified: it did not; adopt: take over what the machine says; lost: it cannot be read any more."
    ),
)
@click.option("--reason", default="", help=tr("Why; kept in the ledger."))
@click.option(
    "--code", default="", help=tr("certified: the code on the machine's paper, when its last invoice is another.")
)
@click.option("--time", default="", help=tr("certified: the time on the machine's paper, as 31/12/2026 09:30:00."))
@click.option("--counters", default="", help=tr("certified: the counters on the machine's paper, as 291/409 FV."))
@click.option(
    "--as-printed",
    is_flag=True,
    help=tr("certified: time and counters stand so on the paper, also where they do not fit."),
)
@click.option("--case", "fingerprint", default="", help=tr("The case that was shown; another one is not decided."))
@json_option
def command(settings: Settings, nim: str | None, as_json: bool, as_printed: bool, **typed: str | None) -> int:
    decision, fingerprint, reason, code, time, counters = (
        typed[name] or "" for name in ("decision", "fingerprint", "reason", "code", "time", "counters")
    )
    paper = _read(code, time, counters, as_printed=as_printed)
    case, fresh = _find(settings, nim, fingerprint)
    if case is None:
        if as_json:
            print_json({"settled": False, "attention": None})
        else:
            say("nothing to settle: no machine is in attention")
        return 0
    if not as_json:
        _show(case, settings)
    if fingerprint not in ("", case.fingerprint):
        raise _refused(case, "changed", decision)
    chosen = cast("Decision", decision or _prompt_decision(case))
    if paper is None and sys.stdin.isatty() and case.obstacle(chosen) == "not its last":
        paper = _prompt_paper()
    if paper is not None and sys.stdin.isatty():
        paper = _confirmed(case, chosen, paper)
    why = read_reason(reason)
    try:
        change(settings, Settle(case.state.book, fresh, case.fingerprint, chosen, why, _at(case), paper))
    except DecisionRefused as error:
        raise _refused(case, error.obstacle, chosen) from error
    if as_json:
        nim, found = case.state.book.nim, str(from_stored(case.state.attention))
        print_json({"settled": True, "nim": nim, "attention": found, "decision": chosen})
    else:
        say("settled and written to the ledger; a running daemon goes on within seconds")
    return 0


def _find(settings: Settings, nim: str | None, fingerprint: str) -> tuple[Case | None, Evidence | None]:
    """The named book, the one in attention, or the one with that case, with the machine's newest state; only one."""
    cases = read_ledger(settings, lambda store: _cases(store, nim))
    if nim and not cases:
        find_machine(settings, nim)
    cases = [case for case in cases if case.fingerprint == fingerprint] or cases
    if len(cases) > 1:
        raise Failure(
            "which one? {nims}", nims=", ".join(f"{case.state.book.nim} (--case {case.fingerprint})" for case in cases)
        )
    if not cases:
        return None, None
    case = cases[0]
    machine = settings.find_machine(case.state.book.nim)
    fresh = asyncio.run(_read_machine(machine)) if machine else None
    case = read_ledger(settings, lambda store: store.decisions.case(case.state.book, fresh))
    return (case if case.is_open else None), fresh  # settled elsewhere while the machine was read


async def _cases(store: Store, nim: str | None) -> list[Case]:
    books = ((case, case.state.book) for case in await store.decisions.open_cases())
    return [case for case, book in books if book.mode == "live" and (nim is None or same_machine(nim, book.nim))]


async def _read_machine(machine: Machine) -> Evidence | None:
    reading = await read_machine(machine)
    return Evidence(now_millis(), reading.state) if isinstance(reading, PortReading) else None


# -- questions and answers ---------------------------------------------------------------------------------------------


def _show(case: Case, settings: Settings) -> None:
    zone = settings.reports.zone
    reasons = [tr(from_stored(case.state.attention))] if case.state.attention else []
    if case.is_replaced:
        reasons.append(tr("another machine has taken over from it"))
    if case.is_awaited:
        reasons.append(tr("it was not compared yet with the copy that was put back"))
    say("{nim}: {found}", nim=case.state.book.nim, found="; ".join(reasons))
    say("case: {shown}", shown=case.fingerprint)
    if attempt := case.attempt:
        words = {"number": attempt.number, "type": attempt.type, "total": attempt.total_ttc}
        began = moment(attempt.begun_at, zone)
        say("invoice without a known outcome: {number} ({type}, {total} XOF), begun {at}", **words, at=began)
    if counters := case.state.counters:
        number = case.state.last_number or "–"
        say("the ledger knows: {counters}, last invoice {number}", counters=counted(counters), number=number)
    if case.evidence is None:
        say("it is not known what the machine says: plug it in, or stop the daemon so that it can be read here")
        return
    state = case.evidence.state
    read = moment(case.evidence.at, zone)
    say("the machine said ({at}): {nim}, {counters}", at=read, nim=state.nim, counters=counted(state.counters))
    if last := state.last:
        words = msgspec.structs.asdict(last)
        say("  its last invoice: {number} ({type}, {total} XOF), code {code}, {time}", **words)


def _prompt_decision(case: Case) -> str:
    require_terminal("--decision")
    for choice in case.choices:
        say(f"  {choice:<14} {tr(MEANINGS[choice])}")
    answer: str = click.prompt(tr("Decision"), type=click.Choice(case.choices))
    return answer


# -- what is decided ---------------------------------------------------------------------------------------------------


def _refused(case: Case, obstacle: Obstacle, decision: str) -> Failure:
    number = case.attempt.number if case.attempt else ""
    return Failure(OBSTACLES[obstacle].message, decision=decision, choices=" | ".join(case.choices), number=number)


def _read(code: str, time: str, counters: str, *, as_printed: bool) -> PaperInvoice | None:
    paper, errors = read_paper(code, time, counters, as_printed=as_printed)
    if errors:
        raise click.UsageError("; ".join(f"--{error.field}: {tr(error.message)}" for error in errors))
    return paper


def _prompt_paper() -> PaperInvoice | None:
    say("what the machine's paper says of this invoice (nothing, if there is none):")
    while True:
        code = str(click.prompt(tr("Code"), default="", show_default=False))
        time = str(click.prompt(tr("Time"), default="", show_default=False)) if code.strip() else ""
        counters = str(click.prompt(tr("Counters"), default="", show_default=False)) if code.strip() else ""
        paper, errors = read_paper(code, time, counters)
        if not errors:
            return paper
        for error in errors:
            say(error.message)


def _confirmed(case: Case, decision: Decision, paper: PaperInvoice) -> PaperInvoice:
    obstacle = case.obstacle(decision, paper)
    if obstacle not in CONFIRMABLE:
        return paper
    say(OBSTACLES[obstacle].message)
    is_so = click.confirm(tr("Is it printed so on the machine's paper?"))
    return msgspec.structs.replace(paper, as_printed=is_so)


def _at(case: Case) -> int:
    """The time of the decision; an implausible clock moves no book (decision 21)."""
    last_at, accepted = case.state.last_at, case.state.accepted_to
    return decide_time(
        Clocks(last_at, now_millis(), synchronised=False, machine=None, stepped=False, accepted=accepted)
    ).at


# -- the last Z on paper -----------------------------------------------------------------------------------------------


@click.command("last-z", epilog=examples("mcfd machine last-z EL02000015-1 57"))
@settings_option
@click.argument("nim")
@click.argument("number", type=click.IntRange(0, 999_999_999), metavar=tr("NUMBER"))
@click.option("--yes", is_flag=True, help=tr("Ask nothing."))
def last_z(settings: Settings, nim: str, number: int, *, yes: bool) -> None:
    state = read_ledger(settings, lambda store: _state(store, settings, nim))
    if not state.needs_last_z:
        raise Failure("nothing to enter: the last Z of {nim} is {number}", nim=state.book.nim, number=state.z_number)
    check_last_z(state, number)
    following = number + 1
    if not yes and sys.stdin.isatty():
        question = tr(
            "The next Z of {nim} will be {number}; it cannot be taken back. Right?",
            nim=state.book.nim,
            number=following,
        )
        click.confirm(question, abort=True)
    change(settings, SetLastZ(state.book, number))
    say("the next Z of {nim} is {number}", nim=state.book.nim, number=following)


async def _state(store: Store, settings: Settings, nim: str) -> BookState:
    return (await read_book(store, settings, nim, test=False)).state()
