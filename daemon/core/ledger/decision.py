"""What an operator may decide about a book in attention: the same rules for the command and for the page."""

from __future__ import annotations

from typing import Literal

import msgspec

from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import BookState
from daemon.core.ledger.verdict import Evidence, is_last
from daemon.core.machine.state import Certified

Decision = Literal["certified", "not-certified", "adopt"]
DECISIONS: tuple[Decision, ...] = ("certified", "not-certified", "adopt")

Obstacle = Literal["does not fit", "machine unknown", "not its last", "its last"]
"""
does not fit     not one of the choices of this case
machine unknown  it is not known what the machine says
not its last     the machine's last invoice is another one: no code can be taken from it
its last         the machine's last invoice is this very one: its number would be free for a second certification
"""


class Case(msgspec.Struct, frozen=True):
    """One book in attention, with all that there is to decide on. `attempt` is the one whose outcome is unknown, if any."""

    state: BookState
    attempt: Record | None
    evidence: Evidence | None

    @property
    def choices(self) -> tuple[Decision, ...]:
        return ("certified", "not-certified") if self.attempt else ("adopt",)

    def obstacle(self, decision: str) -> Obstacle | None:
        """Why the evidence does not carry a decision: nothing is entered that the machine did not say. None when it does."""
        if decision not in self.choices:
            return "does not fit"
        is_ours = self.attempt is not None and self.evidence is not None and is_last(self.attempt, self.evidence.state)
        if decision == "not-certified":
            return "its last" if is_ours else None
        if self.evidence is None:
            return "machine unknown"
        return "not its last" if decision == "certified" and not is_ours else None

    def certified(self) -> Certified | None:
        """What the machine says of its last invoice; None while that is not known."""
        state = self.evidence.state if self.evidence else None
        if state is None or state.last is None:
            return None
        known = self.state.known
        is_new = known is not None and "-" in state.nim and state.counters.tc <= known.tc  # it has begun to count again
        return Certified(state.last.code, state.last.time, state.ifu, state.counters, state.nim if is_new else "")

    def foreign(self) -> int:
        """Invoices on the machine that are in no total, also its last one: its number is entered, its lines nobody knows."""
        known = self.state.known
        if known is None or self.evidence is None:
            return 0
        now = self.evidence.state.counters
        return max(0, now.fvc - known.fvc + now.frc - known.frc)
