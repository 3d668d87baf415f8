"""A finding: something that is not as it has to be, with a life of its own."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Kind = Literal[
    "gap", "late", "fork", "chain", "counters", "unexplained", "tax-server", "version", "clock", "deferred", "refused"
]
KINDS: Final[tuple[Kind, ...]] = (
    *("gap", "late", "fork", "chain", "counters"),
    *("unexplained", "tax-server", "version", "clock", "deferred", "refused"),
)
PASSING: Final[frozenset[Kind]] = frozenset({"gap", "late", "tax-server", "version", "clock", "deferred"})
"""Solved by themselves when what they say is no longer so, and new when it is so again. The others stand in the books for ever,
and a person says what became of them."""

GONE = "gone"
"""`what` of a gap whose closures a lost ledger has made."""
Value = int | str
Facts = dict[str, Value]


class Fact(msgspec.Struct, frozen=True):
    """`key` tells two findings of a kind and a book apart; `facts` are the values its sentence is made of (`wording.py`)."""

    kind: Kind
    key: str
    facts: Facts

    @property
    def is_passing(self) -> bool:
        """Numbers that nobody will ever send are no such gap: a person says what was in them."""
        return self.kind in PASSING and self.facts.get("what") != GONE
