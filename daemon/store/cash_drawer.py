"""Cash put into the drawer and taken out, as the use cases see it (`usecases.ports.CashPort`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

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

        return await self._write(job)

    async def cash_of_period(self, book: Book, period_start: int) -> CashTotal:
        return self._snapshot(partial(cash.cash_of_period, book=book, period_start=period_start))

    async def cash_between(self, book: Book, start: int, end: int) -> CashTotal:
        return await self._read(partial(cash.cash_between, book=book, start=start, end=end))

    async def cash_moves(self, book: Book, *, start: int, end: int, after: int, limit: int) -> Sequence[Placed]:
        return await self._read(partial(cash.cash_moves, book=book, start=start, end=end, after=after, limit=limit))

    async def newest_moves(self, book: Book, *, start: int, end: int, limit: int) -> Sequence[Placed]:
        """As `cash_moves`, newest first."""
        return await self._read(partial(cash.newest_moves, book=book, start=start, end=end, limit=limit))

    async def periods_of_moves(self, book: Book, moves: Sequence[Placed]) -> Sequence[int]:
        return await self._read(partial(cash.periods_of_moves, book=book, moves=moves))
