"""Decisions of an operator on a book in attention: one set of rules for the command line and the page."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from common.language import Text
from daemon.core.ledger.attempt import NOT_STATED, Record
from daemon.core.ledger.book import BookState, LastSeen
from daemon.core.ledger.paper import PaperInvoice, as_printed, is_plausible, on_paper
from daemon.core.ledger.verdict import (
    Evidence,
    LastComparison,
    Verdict,
    foreign_count,
    is_last,
    verdicts,
    went_down,
)
from daemon.core.machine.state import NO_COUNTERS, Certified, FiscalCounters, LastInvoice, MachineState, new_name

Decision = Literal["certified", "not-certified", "adopt", "lost"]
DECISIONS: tuple[Decision, ...] = ("certified", "not-certified", "adopt", "lost")

Obstacle = Literal[
    "does not fit",
    "machine unknown",
    "not its last",
    "its last",
    "changed",
    "paper not needed",
    "code of another",
    "time not plausible",
    "counters not plausible",
    "counters needed",
]
"""
does not fit            not one of the choices of this case
machine unknown         the machine has not been read
not its last            the machine's last invoice is another one: code and time have to come from the machine's paper
its last                the machine's last invoice is this one: its number must not become free
changed                 the case has changed since it was shown
paper not needed        data from paper belong to `certified` only
code of another         the ledger or the machine has that code for another invoice
time not plausible      not between the intent and now
counters not plausible  not between the ledger's counters and the machine's
counters needed         neither ledger nor machine tells this invoice's counters
"""
CONFIRMABLE: tuple[Obstacle, ...] = ("time not plausible", "counters not plausible")
"""A person with the paper may confirm these: the machine's clock was wrong, or it was activated again."""


MEANINGS: dict[Decision, Text] = {
    "certified": Text("The machine did certify it: its code enters the ledger."),
    "not-certified": Text("The machine did not certify it: the number is free again."),
    "adopt": Text(
        "Take over the machine's counters and last invoice: its number is never given out again. Others that this ledger lacks are certified again if a till sends them again: compare paper and tills with the journal first."
    ),
    "lost": Text(
        "The machine is lost for good, and its paper was looked at: what it has certified since the copy is not sent again."
    ),
}
OBSTACLE_TEXTS: dict[Obstacle, Text] = {
    "changed": Text("the case is not the one that was shown any more: look at it again"),
    "paper not needed": Text("a code and a time from the machine's paper belong to the decision `certified`"),
    "code of another": Text(
        "this code is another invoice's: the ledger has it, or the machine tells it of its last invoice"
    ),
    "time not plausible": Text(
        "this invoice cannot be of that time, unless the machine's clock was wrong: read it again, and confirm it if it is printed so"
    ),
    "counters not plausible": Text(
        "this invoice cannot have these counters, unless the machine was activated anew: read them again, and confirm them if they are printed so"
    ),
    "counters needed": Text(
        "the ledger and the machine do not tell the counters of this invoice: they have to come from its paper"
    ),
}
"""Obstacles that the command and the page tell in the same words."""


class DecisionRefused(ValueError):
    def __init__(self, obstacle: Obstacle) -> None:
        self.obstacle = obstacle


class After(msgspec.Struct, frozen=True):
    """`others` is added to the book's unexplained invoices."""

    state: BookState
    others: int


class Case(msgspec.Struct, frozen=True):
    """What there is to decide on one book: it is in attention, its machine is replaced, or the other machine of its
    pair waits for it. `attempt` is the one in doubt, if any; `last` is the standing of the evidence's last invoice;
    `decided` counts the decisions so far."""

    state: BookState
    attempt: Record | None
    evidence: Evidence | None
    last: LastComparison
    decided: int
    is_replaced: bool
    """Another machine certifies in its place, or did so since the attempt began. The doubt may be decided without the
    machine and without attention."""
    is_awaited: bool
    """The ledger was restored, and the other machine of the pair certifies nothing until this one has been compared."""

    @property
    def is_open(self) -> bool:
        """Whether there is anything to decide."""
        return self._is_in_question or self._may_be_lost

    @property
    def _is_in_question(self) -> bool:
        return bool(self.state.attention) or (self.is_replaced and self.attempt is not None)

    @property
    def _may_be_lost(self) -> bool:
        """False once the machine has answered: then its state decides."""
        return self.is_awaited and self.evidence is None

    @property
    def choices(self) -> tuple[Decision, ...]:
        found: tuple[Decision, ...] = ()
        if self._is_in_question or not self._may_be_lost:
            found = ("certified", "not-certified") if self.attempt else ("adopt",)
        return (*found, "lost") if self._may_be_lost else found

    @property
    def fingerprint(self) -> str:
        """Identifies the facts of this case; a decision is valid for these facts alone."""
        state, machine = self.state, self.evidence.state if self.evidence else None
        machine_content = None if machine is None else (machine.nim, machine.ifu, machine.counters, machine.last)
        attempt = self.attempt.id if self.attempt else 0
        content = (state.book.id, state.attention, state.counters, attempt, self.decided, machine_content)
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:12]

    def is_still(self, now: Case) -> bool:
        """Whether `now`, read again, is the same case. The newer evidence counts: the machine's, or the ledger's."""
        evidence = max(filter(None, (self.evidence, now.evidence)), key=lambda one: one.at, default=None)
        return self.fingerprint == msgspec.structs.replace(now, evidence=evidence).fingerprint

    @property
    def is_last(self) -> bool:
        """Whether the attempt in doubt is the machine's last invoice, and that is not in the ledger."""
        evidence = self.evidence
        return (
            self.attempt is not None
            and evidence is not None
            and self.last != "known"
            and is_last(self.attempt, evidence.state)
        )

    def obstacle(self, decision: str, paper: PaperInvoice | None = None, *, is_taken: bool = False) -> Obstacle | None:
        """Why the evidence does not support the decision, or None. `is_taken`: the ledger has the code of `paper`."""
        if not self.is_open or decision not in self.choices:
            return "does not fit"
        if decision == "certified":
            return self._obstacle_to_paper(paper, is_taken=is_taken) if paper else self._obstacle_to_certified()
        if paper is not None:
            return "paper not needed"
        if decision == "lost":
            return None
        if decision == "not-certified":
            return "its last" if self.is_last else None
        return "machine unknown" if self.evidence is None and self.state.in_use else None

    def _obstacle_to_certified(self) -> Obstacle | None:
        if self.evidence is None:
            return "machine unknown"
        return None if self.is_last else "not its last"

    def _obstacle_to_paper(self, paper: PaperInvoice, *, is_taken: bool) -> Obstacle | None:
        machine_last = self.evidence.state.last if self.evidence else None
        seen = self.state.seen.last if self.state.seen else None
        others = [
            last.code
            for last in (seen, machine_last)
            if last is not None and not (last is machine_last and self.is_last)
        ]
        if (
            is_taken
            or paper.code in others
            or (self.is_last and machine_last and machine_last.code not in ("", paper.code))
        ):
            return "code of another"
        is_odd = self.attempt is not None and not is_plausible(paper.time, self.attempt.begun_at, self.evidence)
        if is_odd and not paper.as_printed:
            return "time not plausible"
        if self._placed(paper):
            return None
        return "counters not plausible" if paper.counters else "counters needed"

    def certified(self, paper: PaperInvoice | None = None) -> Certified | None:
        """The certification of the attempt, from the machine's last invoice or from paper; None while unknown."""
        state = self.evidence.state if self.evidence else None
        if paper is not None and not self.is_last:
            counters = self._placed(paper)
            ifu = state.ifu if state else self.state.ifu
            fc = paper.counters[0] if paper.counters else NOT_STATED
            return None if counters is None else Certified(paper.code, paper.time, ifu, counters, fc=fc)
        if state is None or state.last is None:
            return None
        before, last = self.state.counters, state.last
        is_new = (
            before is not None and "-" in state.nim and state.counters.tc <= before.tc
        )  # it has begun to count again
        code = last.code or (paper.code if paper else "")
        return Certified(code, last.time, state.ifu, state.counters, state.nim if is_new else "")

    def _placed(self, paper: PaperInvoice) -> FiscalCounters | None:
        """The counters of an invoice that is no longer the machine's last; None if paper does not tell them."""
        if self.attempt is None:
            return None
        return self._fitting(paper, self.attempt) or (as_printed(paper, self.attempt) if paper.as_printed else None)

    def _fitting(self, paper: PaperInvoice, attempt: Record) -> FiscalCounters | None:
        """The counters on paper if they lie between the ledger's and the machine's."""
        return on_paper(paper, attempt, self._before(attempt), self._now())

    def _before(self, attempt: Record) -> FiscalCounters:
        """What the ledger knows of the machine."""
        return self.state.counters or attempt.base

    def after(self, paper: PaperInvoice, attempt: Record, placed: FiscalCounters) -> After:
        """The book's state after the attempt was entered from paper with the counters `placed`. If the ledger is past
        them, this invoice was counted as foreign before: one unexplained less. Counters of another activation change
        nothing."""
        state, before = self.state, self._before(attempt)
        if placed.tc <= before.tc:
            return After(state, -1)
        if self._fitting(paper, attempt) is None:
            return After(state, 0)
        last = LastInvoice(attempt.number, paper.code, paper.time, attempt.type, attempt.total_ttc)
        after = msgspec.structs.replace(state, counters=placed, last_number=attempt.number, seen=LastSeen(last))
        return After(after, foreign_count(attempt.invoice, before, placed))

    def _now(self) -> FiscalCounters | None:
        """The machine's counters, if it is still in the activation of the attempt; else None."""
        state, before = self.evidence.state if self.evidence else None, self.state.counters
        if state is None or new_name(state.nim, "", self.state.book.nim):
            return None
        if before is not None and went_down(before, state.counters):
            return None
        return state.counters

    def foreign(self) -> int:
        """How many invoices the machine counted that are in no total, its last one included."""
        before = self.state.counters
        if before is None or self.evidence is None:
            return 0
        now = self.evidence.state.counters
        return max(0, now.fvc - before.fvc + now.frc - before.frc)


class Adoption(msgspec.Struct, frozen=True):
    """The effects of `adopt`. In a restored ledger, begun attempts are settled by the counters known before
    (`settled`), because the adopted ones prove nothing. Then the machine's last invoice is entered, unless the ledger
    has it or its number. In any other ledger a begun attempt was not sent: its process continues it, or `recover` ends
    it."""

    settled: tuple[tuple[Record, Verdict], ...]
    enters: bool
    unexplained: int


def adoption(
    state: BookState,
    machine: MachineState,
    last: LastComparison,
    begun: Sequence[Record],
    *,
    is_number_taken: bool,
    in_ledger: bool,
    unexplained: int,
) -> Adoption:
    """`begun`: oldest first. `in_ledger`: a certification has the last invoice's code. `is_number_taken`: another
    attempt reserves its number. `unexplained`: how many invoices the ledger lacks, ours included."""
    activated = new_name(machine.nim, "", state.book.nim)
    before = state.counters or NO_COUNTERS
    found = verdicts(begun if state.is_restored else (), before, machine, last, activated=activated, is_restored=True)
    ours = [record for record, verdict in found if isinstance(verdict, Certified)]
    if ours:
        unexplained = min(unexplained, foreign_count(ours[0].invoice, before, machine.counters))
    enters = machine.last is not None and not (in_ledger or is_number_taken)
    return Adoption(tuple(found), enters, unexplained)
