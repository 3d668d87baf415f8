"""Cash put into the drawer and taken out: entries of the book."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from daemon.core.call import NOBODY, Call
from daemon.core.errors import TooManyCashMoves
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import CashMove, CashTotal, Placed
from daemon.store.access import LedgerAccess
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, cash, entries


class CashAccess(LedgerAccess):
    async def move_cash(
        self,
        book: Book,
        move: CashMove,
        *,
        at: int,
        answer: Callable[[Placed], bytes],
        call: Call = NOBODY,
        box_at: int = 0,
        most: int = 0,
    ) -> bytes:
        """Entry, audit and what the Idempotency-Key stands for, in one transaction; what `answer` makes of the entry. TooManyCashMoves beyond `most`
        by the same key or person within an hour of the box's clock (`box_at`, ms); 0: any number."""

        def job(connection: sqlite3.Connection) -> bytes:
            if most and (wait := cash.wait_for_move(connection, book, call.by.name, box_at, most)):
                raise TooManyCashMoves(most, wait)
            placed = entries.append(connection, book, move, at)
            if most:
                cash.note_move(connection, placed, call.by.name, box_at)
            told = answer(placed)
            if call.key:
                attempts.keep_key(connection, book, call.key_hash, call.fingerprint, at=placed.at, answer=told)
            if book.mode == "live":
                detail = {"kind": move.kind, "amount": str(move.amount), "reason": move.reason}
                audit.add(connection, "cash.moved", f"{book.nim} live", at=placed.at, by=call.by, detail=detail)
            return told

        return await self.write(job)

    async def cash_of_period(self, book: Book, period_start: int) -> CashTotal:
        """Of the period that begins there (ms), as an `Aggregate` has it."""
        return self.peek(cash.cash_of_period, book=book, period_start=period_start)

    async def cash_between(self, book: Book, start: int, end: int) -> CashTotal:
        return await self.read(cash.cash_between, book=book, start=start, end=end)

    async def cash_moves(self, book: Book, *, start: int, end: int, after: int, limit: int) -> Sequence[Placed]:
        """Those of `start <= t < end` (ms), oldest first, from the one after the id `after`."""
        return await self.read(cash.cash_moves, book=book, start=start, end=end, after=after, limit=limit)

    async def newest_moves(self, book: Book, *, start: int, end: int, limit: int) -> Sequence[Placed]:
        """As `cash_moves`, newest first."""
        return await self.read(cash.newest_moves, book=book, start=start, end=end, limit=limit)

    async def periods_of_moves(self, book: Book, moves: Sequence[Placed]) -> Sequence[int]:
        """The Z that each is in, 0 while its period is open."""
        return await self.read(cash.periods_of_moves, book=book, moves=moves)
