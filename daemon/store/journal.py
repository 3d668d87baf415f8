"""What ended, as screens and auditors read it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.core.report.journal import Page
from daemon.store.access import LedgerAccess
from daemon.store.tables import journal
from daemon.store.tables.book import books, closures


class Journal(LedgerAccess):
    async def books(self) -> Sequence[Book]:
        return await self._read(books.all_books)

    async def page(self, book: Book, page: Page) -> Sequence[Record]:
        """Newest first; go on with `before_seq` = the seq of the last one."""
        return await self._read(partial(journal.journal, book=book, page=page))

    async def of_customer(self, book: Book, page: Page, wanted: str) -> tuple[Sequence[Record], int]:
        """Of the next `page.limit` entries those whose customer has the text in it, and the `before_seq` to go on with, 0 at the end."""
        return await self._read(partial(journal.of_customer, book=book, page=page, wanted=wanted))

    async def iterate(self, book: Book, start: int, end: int) -> AsyncGenerator[Record, None]:
        """What ended in `start <= t < end` (ms), oldest first, in flat memory."""
        after = 0
        while records := await self._read(partial(journal.chunk, book=book, start=start, end=end, after_seq=after)):
            for record in records:
                yield record
            after = records[-1].seq

    async def by_code(self, book: Book, code: str) -> Record | None:
        return await self._read(partial(journal.by_code, book=book, code=code))

    async def credits_on(self, book: Book, sale: Record) -> Sequence[Record]:
        """The certified credit notes on that sale, oldest first, a hundred at the most."""
        return await self._read(partial(journal.credits_on, book=book, sale_id=sale.id))

    async def periods(self, book: Book, records: Sequence[Record]) -> Sequence[int]:
        """The Z that each is in, 0 while its period is open; the records come one after the other, in either direction."""
        return await self._read(partial(closures.periods, book=book, records=records))
