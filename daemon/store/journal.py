"""What ended, as screens and auditors read it.

The events of a week, in the order in which they became durable."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

import msgspec

from daemon.core.errors import StorageError
from daemon.core.ledger.attempt import OPEN, Record
from daemon.core.ledger.book import Book
from daemon.core.report.journal import Page
from daemon.store.access import LedgerAccess
from daemon.store.sqlite.connection import Job
from daemon.store.tables import journal
from daemon.store.tables.book import epochs
from daemon.store.tables.meta import MAX_DAMAGED, add_entries, damaged_entries, read_damage


class Journal(LedgerAccess):
    """An entry whose row is damaged comes in state `damaged`, and is written down for the technician."""

    async def _records(self, book: Book, job: Job[list[Record]]) -> list[Record]:
        """What `job` reads; the damaged ones among it are noted."""
        records = await self.read(job)
        if found := damaged_entries(book, records):
            entries = self.peek(read_damage).entries
            if len(entries) < MAX_DAMAGED and not set(found) <= set(entries):
                with contextlib.suppress(StorageError):
                    await self.write(add_entries, found=found)
        return records

    async def page(self, book: Book, page: Page) -> Sequence[Record]:
        """Newest first; go on with `before_seq` = the seq of the last one."""
        return await self._records(book, partial(journal.journal, book=book, page=page))

    async def with_part(self, book: Book, page: Page, make_way: Callable[[], Awaitable[None]]) -> Sequence[Record]:
        """Newest first, with `page.part` in the number; `make_way` between two looks, and others read in between as well."""
        if page.state in OPEN:
            return await self.page(book, page)
        found, before = await self.read(journal.newest_with_part, book=book, page=page)
        if not before:
            return found
        rest = msgspec.structs.replace(page, before_seq=before, limit=page.limit - len(found))
        older: list[Record] = []
        for stretch in await self.read(journal.stretches, book=book):
            await make_way()
            older += await self._records(book, partial(journal.with_part, book=book, page=rest, stretch=stretch))
            older = sorted(older, key=lambda record: -record.seq)[: rest.limit]
            if len(older) == rest.limit:
                rest = msgspec.structs.replace(rest, after_seq=older[-1].seq)
        return [*found, *older]

    async def iterate(self, book: Book, start: int, end: int, after: int) -> AsyncGenerator[Record, None]:
        """What ended in `start <= t < end` (ms), oldest first, after the seq `after`, in flat memory."""
        while records := await self._records(
            book, partial(journal.chunk, book=book, start=start, end=end, after_seq=after)
        ):
            for record in records:
                yield record
            after = records[-1].seq

    async def with_counter(self, book: Book, record: Record) -> Record:
        """A certification of before the counter of its type was stored, with the one that is certain, or NOT_STATED."""
        if record.fc is not None or record.counters is None:
            return record
        find = partial(
            epochs.counter_of_older, book_id=book.id, record_id=record.id, type_=record.type, now=record.counters
        )
        return msgspec.structs.replace(record, fc=await self.read(find))


class EventLog(LedgerAccess):
    async def add(self, book: Book, kind: str, *, at: int, ref: int = 0, detail: str = "") -> None:
        """For what the ledger does not do itself: a machine that comes and goes, an alert."""
        write = self._open.event_writer.write
        await self.write(lambda connection: write(connection, book, kind, at, ref=ref, detail=detail))
