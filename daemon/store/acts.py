"""Movements of cash, duplicates and reports that were given out: entries of the book, in the audit log."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from daemon.core.call import INTERNAL, Call
from daemon.core.errors import TooManyCashMoves
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import CashMove, CashTotal, CopyAct, Placed, ReportAct
from daemon.store.access import LedgerAccess
from daemon.store.tables import audit
from daemon.store.tables.book import acts, attempts, entries


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
