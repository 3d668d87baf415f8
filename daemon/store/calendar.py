"""Closures of months and years."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from functools import partial

from daemon.core.audit import DAEMON, Actor
from daemon.core.call import Call
from daemon.core.errors import PeriodNotOver, StorageError
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import CalendarKind, Placed
from daemon.core.report.calendar_report import month_of
from daemon.store.access import LedgerAccess
from daemon.store.maintenance.numbers import name_of
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, books, calendar_closures
from daemon.store.tables.book.calendar_closures import ClosingTerms, IssuedNumbers, closed_of


class CalendarAccess(LedgerAccess):
    def close_over(
        self, connection: sqlite3.Connection, book: Book, at: int, by: Actor = DAEMON, *, upto_z: bool = False
    ) -> list[Placed]:
        """In a transaction: what is over at `at` (ms) and not closed yet."""
        state, water = books.book_state(connection, book), self._open.high_water
        closures = []
        numbers = IssuedNumbers() if water is None else IssuedNumbers(*water.calendar(name_of(state)))
        terms = ClosingTerms(at, self._open.zone, self._open.labels, numbers)
        for placed in calendar_closures.close_over(connection, state.book, terms, upto_z=upto_z):
            closed = closed_of(placed)
            self._open.event_writer.send_upstream(connection, book, placed.id, placed.at)
            if book.mode == "live":
                detail = {"period": closed.period, "number": str(closed.number)}
                audit.add(connection, "calendar.closed", f"{book.nim} live", at=placed.at, by=by, detail=detail)
            closures.append(placed)
        return closures

    async def close_over_months(self, book: Book, at: int, *, upto_z: bool = False) -> Sequence[Placed]:
        """What is over at `at` (ms) and not closed yet; nothing is written when there is nothing."""

        def is_due(connection: sqlite3.Connection) -> bool:
            month = calendar_closures.open_month(connection, book, self._open.zone)
            return bool(month) and month < month_of(at, self._open.zone)

        if self._open.high_water is None or not self.peek(is_due):
            return ()
        closures = await self.write(self.close_over, book=book, at=at, upto_z=upto_z)
        await self.count_calendar(book)
        return closures

    async def close_calendar(self, book: Book, kind: CalendarKind, period: str, *, at: int, call: Call) -> bytes:
        """The report of the month or year that is over, or of the named one, also where it was closed before."""

        def job(connection: sqlite3.Connection) -> bytes:
            closures = [
                each for each in map(closed_of, self.close_over(connection, book, at, call.by)) if each.kind == kind
            ]
            month = calendar_closures.open_month(connection, book, self._open.zone)
            is_over = period < month[: len(period)] if period else bool(closures)
            if not is_over:
                last = calendar_closures.last_closed(connection, book, kind)
                raise PeriodNotOver(period, last.period if last else "")
            closed = closures[-1] if not period else closed_of(calendar_closures.find(connection, book, kind, period))
            answer = closed.body.encode()
            if call.key:
                attempts.keep_key(connection, book, call.key_hash, call.fingerprint, at=at, answer=answer)
            return answer

        answer = await self.write(job)
        await self.count_calendar(book)
        return answer

    async def count_calendar(self, book: Book) -> None:
        """The numbers that were given are durable beside the ledger; the next start brings in what could not be written."""
        water = self._open.high_water
        if water is None:
            return
        name = name_of(self.peek(books.book_state, book=book))
        with contextlib.suppress(StorageError):
            await asyncio.to_thread(water.count, name, *self.peek(calendar_closures.numbers, book=book))

    async def calendar_closure(self, book: Book, kind: CalendarKind, wanted: int | str) -> Placed:
        return await self.read(calendar_closures.find, book=book, kind=kind, wanted=wanted)

    async def calendar_closures(
        self, book: Book, kind: CalendarKind, *, after: int = 0, limit: int
    ) -> Sequence[Placed]:
        job = partial(calendar_closures.closed_list, book=book, kind=kind, after=after, limit=limit)
        return await self.read(job)
