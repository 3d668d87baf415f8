"""A machine and its spare, one of which certifies for the tills of the first (arrêté 2025-0049, article 6)."""

import asyncio
from functools import cached_property
from typing import Self
from weakref import WeakValueDictionary

from common.language import NO_TEXT, Text
from common.language.reasons import PAIR_NOT_COMPARED, SPARE_OF_OTHER_TAXPAYER
from daemon.core.ledger.book import Book
from daemon.core.ledger.take_over import NotInUse, TakeOver
from daemon.store.ledger import Ledger
from daemon.store.tables.book import attempts, take_overs
from daemon.usecases.worker.attempts import Attempts


class MachinePair:
    """The pair from the view of one worker; a machine without a spare is a pair of one."""

    ledger: Ledger
    book: Book
    ifu: str
    attempts: Attempts
    spare: Self | None
    first: Self | None
    compared_books: tuple[int, ...] = ()
    """Books of the pair once it has been compared, which stays true for the life of this process."""

    def join(self, first: Self) -> None:
        """This machine becomes the spare of `first`, before any request. A key runs once in the pair."""
        self.first, first.spare = first, self
        self.attempts.keys = first.attempts.keys

    @property
    def pair(self) -> tuple[Self, ...]:
        """The worker and the other one of its pair, which share a drawer."""
        return tuple(each for each in (self, self.spare, self.first) if each)

    @property
    def take_over(self) -> TakeOver | None:
        """The take-over that lasts, of this machine or by it."""
        return self.ledger.peek(take_overs.lasting, self.book)

    @property
    def is_replaced(self) -> bool:
        """Whether its spare certifies in its place. Read from the ledger, since a command may change it at any time."""
        return self.spare is not None and self.ledger.peek(take_overs.is_replaced, self.book)

    @property
    def stands_for(self) -> Self | None:
        """The machine that this spare replaces now, if any."""
        return self.first if self.first is not None and self.first.is_replaced else None

    @property
    def is_in_use(self) -> bool:
        """Whether it certifies now for some tills."""
        return not self.is_replaced if self.first is None else self.stands_for is not None

    @property
    def in_use(self) -> Self:
        """The worker that certifies for its tills."""
        return self.spare if self.spare is not None and self.is_replaced else self

    def check_in_use(self) -> None:
        """NotInUse if its spare certifies in its place, or if it is a spare that replaces no machine."""
        if self.spare is not None:
            self.ledger.peek(take_overs.check_in_use, self.book)
        if self.first is not None and self.stands_for is None:
            names = {"spare": self.book.nim, "nim": self.first.book.nim}
            raise NotInUse(Text("{spare} is the spare of {nim} and has not taken over; nothing was sent", **names))

    @cached_property
    def floors(self) -> dict[str, int]:
        return {}

    @cached_property
    def copy_locks(self) -> WeakValueDictionary[str, asyncio.Lock]:
        return WeakValueDictionary()

    def copy_lock(self, code: str) -> asyncio.Lock:
        """Who has it gives out the next duplicate of that certification; shared by both machines."""
        return (self.first or self).copy_locks.setdefault(code, asyncio.Lock())

    @property
    def series_floor(self) -> dict[str, int]:
        """The highest place in use for good, by prefix of the series; shared by both machines."""
        return (self.first or self).floors

    def worker_of(self, attempt_id: int) -> Self | None:
        """The worker of this pair that has the book of that attempt; None if its machine is no longer on this box."""
        book_id = self.ledger.peek(attempts.book_of, attempt_id)
        return next((each for each in self.pair if each.book.id == book_id), None)

    async def note_pair(self) -> None:
        """Stores the pair of present books in the ledger."""
        first, spare = self.first or self, self if self.first else self.spare
        if spare is not None and not spare.wrong_taxpayer:
            await self.ledger.write(take_overs.pair, first.book, spare.book)
            first.compared_books = spare.compared_books = ()

    @property
    def not_compared(self) -> Text:
        """Why it certifies nothing: the ledger was restored, and the pair's other machine not compared; else empty."""
        pair = tuple(each.book.id for each in self.pair)
        if pair == self.compared_books:
            return NO_TEXT
        if other := self.ledger.peek(take_overs.not_compared, self.book):
            return PAIR_NOT_COMPARED(nim=self.book.nim, other=other.nim)
        self.compared_books = pair
        return NO_TEXT

    @property
    def wrong_taxpayer(self) -> Text:
        """Why a spare may not certify: its IFU differs from that of its machine; else empty."""
        is_another = self.first is not None and self.ifu and self.first.ifu and self.ifu != self.first.ifu
        return SPARE_OF_OTHER_TAXPAYER if is_another else NO_TEXT
