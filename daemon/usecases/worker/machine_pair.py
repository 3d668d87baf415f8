"""A machine and its spare, of which one certifies what the tills of the first ask for (arrêté 2025-0049, article 6)."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from common.language import NO_TEXT, Text
from common.language.reasons import PAIR_NOT_COMPARED, SPARE_OF_OTHER_TAXPAYER
from daemon.core.ledger.book import Book
from daemon.core.ledger.take_over import NotInUse, TakeOver
from daemon.store.ledger import Ledger
from daemon.store.tables.book import attempts, take_overs


class MachinePair:
    """What one worker of a pair says of itself and of the other; a machine without a spare is a pair of its own."""

    ledger: Ledger
    book: Book
    ifu: str
    spare: Self | None
    first: Self | None
    compared_books: tuple[int, ...] = ()
    """The books of a pair that is compared: it stays so as long as this process lives."""

    @property
    def pair(self) -> tuple[Self, ...]:
        """Itself and the other one, which share a drawer."""
        return tuple(each for each in (self, self.spare, self.first) if each)

    @property
    def take_over(self) -> TakeOver | None:
        """The one that lasts, of this machine or by it."""
        return self.ledger.peek(take_overs.lasting, self.book)

    @property
    def is_replaced(self) -> bool:
        """Whether its spare certifies what its tills ask for. The ledger alone knows: what a command has decided is so from its commit on."""
        return self.spare is not None and self.ledger.peek(take_overs.is_replaced, self.book)

    @property
    def stands_for(self) -> Self | None:
        """Of a spare that has taken over: the machine whose tills it serves."""
        return self.first if self.first is not None and self.first.is_replaced else None

    @property
    def is_in_use(self) -> bool:
        """Whether it certifies now what some tills ask for."""
        return not self.is_replaced if self.first is None else self.stands_for is not None

    @property
    def in_use(self) -> Self:
        """Who certifies what its tills ask for."""
        return self.spare if self.spare is not None and self.is_replaced else self

    def check_in_use(self) -> None:
        """NotInUse where its spare certifies in its place, and for a spare that stands for no machine."""
        if self.spare is not None:
            self.ledger.peek(take_overs.check_in_use, self.book)
        if self.first is not None and self.stands_for is None:
            raise NotInUse(
                Text(
                    "{spare} is the spare of {nim} and has not taken over; nothing was sent",
                    spare=self.book.nim,
                    nim=self.first.book.nim,
                )
            )

    @cached_property
    def floors(self) -> dict[str, int]:
        return {}

    @property
    def series_floor(self) -> dict[str, int]:
        """Up to which place each number of a series is used for good, by its prefix; one for both machines."""
        return (self.first or self).floors

    def worker_of(self, attempt_id: int) -> Self | None:
        """Who has the book of an attempt whose number or key was found: this one, or the other of the pair; None where that machine is not on this box
        any more."""
        book_id = self.ledger.peek(attempts.book_of, attempt_id)
        return next((each for each in self.pair if each.book.id == book_id), None)

    async def note_pair(self) -> None:
        """In the ledger, of the books of now."""
        first, spare = self.first or self, self if self.first else self.spare
        if spare is not None and not spare.wrong_taxpayer:
            await self.ledger.write(take_overs.pair, first.book, spare.book)
            first.compared_books = spare.compared_books = ()

    @property
    def not_compared(self) -> Text:
        """Why it certifies nothing where an older ledger was put back and the other machine of the pair was not compared yet; empty otherwise."""
        pair = tuple(each.book.id for each in self.pair)
        if pair == self.compared_books:
            return NO_TEXT
        if other := self.ledger.peek(take_overs.not_compared, self.book):
            return PAIR_NOT_COMPARED(nim=self.book.nim, other=other.nim)
        self.compared_books = pair
        return NO_TEXT

    @property
    def is_awaited(self) -> bool:
        """The same of the other one: it certifies nothing before this machine was compared, or declared lost."""
        return self.ledger.peek(take_overs.is_awaited, self.book)

    @property
    def wrong_taxpayer(self) -> Text:
        """Of a spare that was greeted with another IFU than that of its machine; empty otherwise."""
        is_another = self.first is not None and self.ifu and self.first.ifu and self.ifu != self.first.ifu
        return SPARE_OF_OTHER_TAXPAYER if is_another else NO_TEXT
