"""The register of outages, each step in one transaction with its entry of the chain and its event."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from daemon.core.call import Call
from daemon.core.events import BACK, OUTAGE
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import OutageReason
from daemon.core.ledger.outage import Notice, Outage
from daemon.store.access import LedgerAccess
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, outages


class OutageAccess(LedgerAccess):
    async def begin_outage(
        self, book: Book, reason: OutageReason, *, at: int, lasted: int, refused: bool, incident: str
    ) -> Outage | None:
        """None where one lasts already: a book has one at the most."""

        def job(connection: sqlite3.Connection) -> Outage | None:
            begun = outages.begin(connection, book, reason, at=at, lasted=lasted, refused=refused, incident=incident)
            if begun is not None:
                self._open.event_writer.write(connection, book, OUTAGE, at, ref=begun.number)
            return begun

        return await self.write(job)

    async def end_outage(self, book: Book, *, at: int, until: int) -> Outage | None:
        """None where none is open."""
        return await self.write(self._end_outage, book, at=at, until=until)

    def _end_outage(self, connection: sqlite3.Connection, book: Book, *, at: int, until: int) -> Outage | None:
        ended = outages.end(connection, book, at=at, until=until)
        if ended is not None:
            self._open.event_writer.write(connection, book, BACK, at, ref=ended.number)
        return ended

    async def note_notified(
        self,
        book: Book,
        number: int,
        notice: Notice,
        *,
        at: int,
        call: Call,
        answer: Callable[[Outage], bytes] = lambda _: b"",
    ) -> bytes:
        """What `answer` makes of the outage then. The same person and reference are noted once; NotFound."""

        def job(connection: sqlite3.Connection) -> bytes:
            placed = outages.notify(connection, book, number, notice, at=at)
            body = answer(outages.find_outage(connection, book, number))
            if placed is not None:
                detail = {"outage": str(number), "who": notice.who, "reference": notice.reference}
                audit.add(
                    connection, "outage.notified", f"{book.nim} {book.mode}", at=placed.at, by=call.by, detail=detail
                )
            if call.key:
                attempts.keep_key(connection, book, call.key_hash, call.fingerprint, at=at, answer=body)
            return body

        return await self.write(job)

    async def outages_between(self, book: Book, *, start: int, end: int, after: int, limit: int) -> Sequence[Outage]:
        """Those that lasted at some moment of `start <= t < end` (ms), oldest first, from the one after the number `after`."""
        return await self.read(outages.outages_between, book, start=start, end=end, after=after, limit=limit)

    async def newest_outages(self, book: Book, *, start: int, end: int, limit: int) -> Sequence[Outage]:
        """Those of that time among the `limit` newest of all, the newest first."""
        return await self.read(outages.newest_outages, book, start=start, end=end, limit=limit)
