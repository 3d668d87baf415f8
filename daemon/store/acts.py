"""Movements of cash, duplicates and reports that were given out: entries of the book, in the audit log.

Closures of months and years."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from daemon.core.audit import DAEMON, Actor
from daemon.core.call import INTERNAL, Call
from daemon.core.errors import PeriodNotOver, StorageError, TooManyCashMoves
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import CalendarKind, CashMove, CashTotal, CopyAct, Placed, ReportAct
from daemon.core.report.calendar_report import month_of
from daemon.store.access import LedgerAccess
from daemon.store.maintenance.numbers import name_of
from daemon.store.tables import audit
from daemon.store.tables.book import acts, attempts, books, calendar_closures, entries
from daemon.store.tables.book.calendar_closures import ClosingTerms, IssuedNumbers, closed_of


class ActAccess(LedgerAccess):
    async def make_copy(self, book: Book, code: str, number: str, *, at: int, call: Call) -> int:
        """Which duplicate of that certification it is, from 1."""

        def job(connection: sqlite3.Connection) -> int:
            copy = acts.copies(connection, book, code) + 1
            placed = entries.append(connection, book, CopyAct(code, number, copy), at)
            if book.mode == "live":
                detail = {"invoice_number": number, "copy": str(copy)}
                audit.add(connection, "copy.made", f"{book.nim} live", at=placed.at, by=call.by, detail=detail)
            return copy

        return await self.write(job)

    async def copies(self, book: Book, code: str) -> int:
        return await self.read(acts.copies, book=book, code=code)

    async def give_report(
        self, book: Book, report: ReportAct, *, at: int, call: Call, answer: Callable[[int], bytes] | None = None
    ) -> ReportAct:
        """A numbered one gets the next number, `answer` its body."""

        def job(connection: sqlite3.Connection) -> ReportAct:
            act = report
            if answer is not None:
                last = acts.last_closed(connection, book)
                number = 1 + (last.entry.number if last and isinstance(last.entry, ReportAct) else 0)
                act = ReportAct(report.kind, answer(number).decode(), number, report.upto_seq, report.upto_at)
            placed = entries.append(connection, book, act, at)
            if call.key and answer is not None:
                attempts.keep_key(
                    connection, book, call.key_hash, call.fingerprint, at=placed.at, answer=act.body.encode()
                )
            if book.mode == "live":
                detail = {"kind": act.kind, "number": str(act.number or "")}
                audit.add(connection, "report.given", f"{book.nim} live", at=placed.at, by=call.by, detail=detail)
            return act

        return await self.write(job)

    async def last_articles(self, book: Book) -> Placed | None:
        return await self.read(acts.last_closed, book=book)

    async def closed_articles(self, book: Book, number: int) -> Placed:
        return await self.read(acts.closed, book=book, number=number)

    async def issued_report(self, book: Book, entry_id: int) -> Placed:
        return await self.read(acts.report, book=book, entry_id=entry_id)

    async def acts(self, book: Book, *, start: int, end: int, after: int, limit: int) -> Sequence[Placed]:
        """Cash, duplicates, reports that were given out and outages, in the same way."""
        return await self.read(acts.acts, book=book, start=start, end=end, after=after, limit=limit)

    async def move_cash(
        self,
        book: Book,
        move: CashMove,
        *,
        at: int,
        answer: Callable[[Placed], bytes],
        call: Call = INTERNAL,
        box_at: int = 0,
        most: int = 0,
    ) -> bytes:
        """Entry, audit and what the Idempotency-Key stands for, in one transaction; what `answer` makes of the entry. TooManyCashMoves beyond `most`
        by the same key or person within an hour of the box's clock (`box_at`, ms); 0: any number."""

        def job(connection: sqlite3.Connection) -> bytes:
            if most and (wait := acts.wait_for_move(connection, book, call.by.name, box_at, most)):
                raise TooManyCashMoves(most, wait)
            placed = entries.append(connection, book, move, at)
            if most:
                acts.note_move(connection, placed, call.by.name, box_at)
            body = answer(placed)
            if call.key:
                attempts.keep_key(connection, book, call.key_hash, call.fingerprint, at=placed.at, answer=body)
            if book.mode == "live":
                detail = {"kind": move.kind, "amount": str(move.amount), "reason": move.reason}
                audit.add(connection, "cash.moved", f"{book.nim} live", at=placed.at, by=call.by, detail=detail)
            return body

        return await self.write(job)

    async def cash_of_period(self, book: Book, period_start: int) -> CashTotal:
        """Of the period that begins there (ms), as an `Aggregate` has it."""
        return self.peek(acts.cash_of_period, book=book, period_start=period_start)

    async def cash_between(self, book: Book, start: int, end: int) -> CashTotal:
        return await self.read(acts.cash_between, book=book, start=start, end=end)

    async def cash_moves(self, book: Book, *, start: int, end: int, after: int, limit: int) -> Sequence[Placed]:
        """Those of `start <= t < end` (ms), oldest first, from the one after the id `after`."""
        return await self.read(acts.cash_moves, book=book, start=start, end=end, after=after, limit=limit)

    async def newest_moves(self, book: Book, *, start: int, end: int, limit: int) -> Sequence[Placed]:
        """As `cash_moves`, newest first."""
        return await self.read(acts.newest_moves, book=book, start=start, end=end, limit=limit)

    async def periods_of_moves(self, book: Book, moves: Sequence[Placed]) -> Sequence[int]:
        """The Z that each is in, 0 while its period is open."""
        return await self.read(acts.periods_of_moves, book=book, moves=moves)


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
