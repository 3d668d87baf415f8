"""The take-over: a spare certifies in place of a machine that is out of order, from one decision of a person to the
next (arrêté 2025-0049, article 6)."""

from typing import Literal

import msgspec

from common.language import Text
from daemon.core.errors import LineLost, MachineAttention, MachineOffline, McfdError
from daemon.core.ledger.book import Book

TakeOverStep = Literal["taken over", "taken back", "not certified", "lost"]
"""
not certified  a person said so of an invoice that was in doubt at the machine that is out of order
lost           an older copy of the ledger was put back, and a person said that the machine cannot be read any more
"""


class TakeOver(msgspec.Struct, frozen=True):
    """`spare` certifies what the tills of `first` ask for; times in ms, `ended_at` 0 while it lasts."""

    first: Book
    spare: Book
    began_at: int
    ended_at: int
    reason: str

    @property
    def pair(self) -> tuple[Book, Book]:
        return self.first, self.spare


class NotInUse(MachineOffline):
    """The other machine of the pair certifies now."""


class NumberReserved(MachineAttention):
    """It is in doubt at the other machine of the pair, which is out of order."""


class PairNotCompared(MachineAttention):
    """An older copy of the ledger was put back: what the other machine of the pair has certified since is not known."""


class UnknownElsewhere(LineLost):
    """What became of the request is the other machine of the pair to say."""


class MachineIsSpare(McfdError):
    """A key of the spare itself (409)."""

    def __init__(self, spare: str, first: str) -> None:
        super().__init__(
            Text(
                "{spare} is the spare of {first} and certifies with the keys of that machine alone; nothing was sent",
                spare=spare,
                first=first,
            )
        )


class TakeOverRefused(McfdError):
    """The decision does not fit what is in force."""
