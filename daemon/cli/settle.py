"""`mcfd machine settle`: shows what was found, asks for a decision and its reason, writes both to the ledger.

The running daemon holds the line; what the machine said is then taken from the ledger, where the daemon keeps it. Without a
daemon the machine is asked afresh.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from daemon.cli import answers, helps
from daemon.cli.ledger import now, with_ledger
from daemon.cli.live import read_machine
from daemon.cli.shared import Failure, config_option, examples, json_option, moment, print_json, say
from daemon.core.certification import Certified, Counters, MachineState, Record
from daemon.core.closure import BookState
from daemon.core.settlement import Evidence, is_last
from daemon.machines.reading import Reading
from daemon.settings import Machine, Settings, load

if TYPE_CHECKING:
    from daemon.store import Store

Decision = Literal["certified", "not-certified", "adopt"]
DECISIONS: tuple[Decision, ...] = ("certified", "not-certified", "adopt")


@dataclass(frozen=True)
class Case:
    """One book in attention, with all that there is to decide on. `attempt` is the one whose outcome is unknown, if any."""

    state: BookState
    attempt: Record | None
    evidence: Evidence | None

    @property
    def choices(self) -> tuple[Decision, ...]:
        return ("certified", "not-certified") if self.attempt else ("adopt",)


@click.command(
    "settle",
    help=str(helps.HELP_MACHINE_SETTLE),
    epilog=examples(
        "mcfd machine settle",
        'mcfd machine settle EL02000015-1 --decision not-certified --reason "vu sur le journal de la machine"',
    ),
)
@config_option
@click.argument("nim", required=False)
@click.option("--decision", type=click.Choice(DECISIONS), help=str(helps.HELP_DECISION))
@click.option("--reason", default="", help=str(helps.HELP_REASON))
@json_option
def settle(config: Path | None, nim: str | None, decision: str | None, reason: str, as_json: bool) -> int:
    settings = load(config)
    case = _find(settings, nim)
    if case is None:
        if as_json:
            print_json({"settled": False, "attention": None})
        else:
            say(answers.NOTHING_TO_SETTLE)
        return 0
    if not as_json:
        _show(case, settings)
    chosen = cast("Decision", decision or _ask_decision(case))
    why = reason.strip() or _ask_reason()
    _check(case, chosen)
    with_ledger(settings, lambda store: _write(store, case, chosen, why))
    if as_json:
        print_json({"settled": True, "nim": case.state.book.nim, "attention": case.state.attention, "decision": chosen})
    else:
        say(answers.SETTLED)
    return 0


def _find(settings: Settings, nim: str | None) -> Case | None:
    """The book asked for, or the one in attention; with the machine's word as fresh as it can be had."""
    if nim and settings.find_machine(nim) is None:
        raise Failure(answers.WHICH_MACHINE(nims=", ".join(machine.nim for machine in settings.machine)))
    cases = with_ledger(settings, lambda store: _cases(store, nim))
    if len(cases) > 1:
        raise Failure(answers.WHICH_MACHINE(nims=", ".join(case.state.book.nim for case in cases)))
    if not cases:
        return None
    case = cases[0]
    machine = settings.find_machine(case.state.book.nim)
    fresh = asyncio.run(_ask_machine(machine)) if machine else None
    return Case(case.state, case.attempt, fresh or case.evidence)


async def _cases(store: Store, nim: str | None) -> list[Case]:
    found = []
    for book in await store.books():
        state = await store.state(book)
        if book.mode == "live" and state.attention and nim in (None, book.nim):
            disputed = await store.disputed(book)
            found.append(Case(state, disputed[0] if disputed else None, await store.evidence(book)))
    return found


async def _ask_machine(machine: Machine) -> Evidence | None:
    reading = await read_machine(machine)
    return Evidence(now(), reading.state) if isinstance(reading, Reading) else None


# -- what is shown and asked ------------------------------------------------------------------------------------------------


def _show(case: Case, settings: Settings) -> None:
    zone = settings.reports.zone
    say(answers.FOUND(nim=case.state.book.nim, found=case.state.attention))
    if attempt := case.attempt:
        began = moment(attempt.begun_at, zone)
        say(answers.THE_ATTEMPT(number=attempt.number, type=attempt.type, total=attempt.total_ttc, at=began))
    if known := case.state.known:
        say(answers.LEDGER_KNOWS(counters=_counted(known), number=case.state.last_number or "–"))
    if case.evidence is None:
        say(answers.NO_EVIDENCE)
        return
    state = case.evidence.state
    read = moment(case.evidence.at, zone)
    say(answers.MACHINE_SAID(at=read, nim=state.nim, counters=_counted(state.counters)))
    if last := state.last:
        told = answers.MACHINE_LAST(
            number=last.number, type=last.type, total=last.total, code=last.code, time=last.time
        )
        say(told)


def _ask_decision(case: Case) -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(answers.NEEDS_OPTION(option="--decision"))
    for choice in case.choices:
        say(f"  {choice:<14} {MEANINGS[choice]}")
    asked: str = click.prompt(str(answers.ASK_DECISION), type=click.Choice(case.choices))
    return asked


def _ask_reason() -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(answers.NEEDS_OPTION(option="--reason"))
    while True:
        asked = str(click.prompt(str(answers.ASK_REASON))).strip()
        if asked:
            return asked


MEANINGS = {
    "certified": answers.MEANS_CERTIFIED,
    "not-certified": answers.MEANS_NOT_CERTIFIED,
    "adopt": answers.MEANS_ADOPT,
}


# -- what is decided --------------------------------------------------------------------------------------------------------


def _check(case: Case, decision: Decision) -> None:
    """Refuses what the evidence cannot carry: nothing is entered that the machine did not say."""
    if decision not in case.choices:
        raise Failure(answers.NOT_THIS_DECISION(decision=decision, choices=" | ".join(case.choices)))
    if decision == "not-certified":
        return
    if case.evidence is None:
        raise Failure(answers.NO_EVIDENCE)
    attempt = case.attempt
    if decision == "certified" and attempt is not None and not is_last(attempt, case.evidence.state):
        raise Failure(answers.NOT_ITS_LAST(number=attempt.number))


async def _write(store: Store, case: Case, decision: Decision, reason: str) -> None:
    book, attempt, evidence = case.state.book, case.attempt, case.evidence
    if decision == "not-certified" and attempt is not None:
        await store.settle_abandoned(book, attempt.id, reason=reason, at=now())
    elif decision == "certified" and attempt is not None and evidence is not None:
        await store.settle_certified(book, attempt.id, _outcome(evidence.state), reason=reason, at=now())
    elif evidence is not None:
        foreign = _foreign(case.state.known, evidence.state)
        await store.adopt(book, evidence.state, unexplained=foreign, reason=reason, at=now())


def _outcome(state: MachineState) -> Certified:
    last = state.last
    if last is None:
        raise Failure(answers.NO_EVIDENCE)
    return Certified(last.code, last.time, state.ifu, state.counters)


def _foreign(known: Counters | None, state: MachineState) -> int:
    """Invoices on the machine that are in no total, also its last one: its number is entered, its lines nobody knows."""
    if known is None:
        return 0
    return max(0, state.counters.fvc - known.fvc + state.counters.frc - known.frc)


def _counted(counters: Counters) -> str:
    return f"TC {counters.tc}  FVC {counters.fvc}  FRC {counters.frc}"
