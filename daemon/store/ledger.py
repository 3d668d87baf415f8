"""The ledger as the use cases see it (`usecases.ports.Ledger`): one call, one transaction, durable when it returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Literal

from daemon.core.certification import Attempt, Certified, Counters, MachineState, Mode, Record
from daemon.core.closure import Aggregate, Book, BookState, Closure, Tally
from daemon.core.events import ATTENTION, CERTIFIED, CLOSURE
from daemon.core.idempotency import KeyUse
from daemon.core.invoice import Invoice
from daemon.core.settlement import Evidence
from daemon.store import attempts, books, closures, journal, settlement, totals
from daemon.store.base import Base


class Ledger(Base):
    # -- the book -----------------------------------------------------------------------------------------------------

    async def open_book(self, nim: str, mode: Mode) -> Book:
        return await self._write(partial(books.open_book, nim=nim, mode=mode))

    async def state(self, book: Book) -> BookState:
        return self._look(partial(books.book_state, book=book))

    async def check_room(self) -> None:
        await self._parts.room.check()

    async def set_attention(self, book: Book, found: str, *, at: int) -> None:
        def job(connection: sqlite3.Connection) -> None:
            books.attend(connection, book, found, at)
            self._parts.teller.tell(connection, book, ATTENTION, at, detail=found)

        await self._write(job)

    async def keep_evidence(self, book: Book, state: MachineState, *, at: int) -> None:
        await self._write(partial(settlement.keep_evidence, book=book, evidence=Evidence(at, state)))

    async def reconcile(self, book: Book, state: MachineState, *, unexplained: int, at: int) -> None:
        await self._write(partial(books.reconcile, book=book, state=state, unexplained=unexplained, at=at))

    async def restored_at(self, book: Book) -> int:
        """When the book was put back from a backup (ms), until it has been reconciled with its machine; else 0."""
        return self._look(partial(books.restored_at, book=book))

    # -- attempts -----------------------------------------------------------------------------------------------------

    async def begin(self, book: Book, attempt: Attempt) -> int:
        return await self._write(partial(attempts.begin, book=book, attempt=attempt), caller=book.id)

    async def amend(self, book: Book, attempt_id: int, invoice: Invoice) -> None:
        await self._write(partial(attempts.amend, book=book, attempt_id=attempt_id, invoice=invoice), caller=book.id)

    async def certify(
        self,
        book: Book,
        attempt_id: int,
        certified: Certified,
        *,
        invoice: Invoice,
        total_ttc: int,
        at: int,
        line_ms: int,
        duration_ms: int,
        unexplained: int = 0,
    ) -> Record:
        outcome = attempts.Outcome(certified, invoice, total_ttc, at, line_ms, duration_ms, unexplained)

        def job(connection: sqlite3.Connection) -> Record:
            before = connection.total_changes
            record = attempts.certify(connection, book, attempt_id, outcome)
            if connection.total_changes != before:  # told twice, it is no news
                self._parts.teller.tell(connection, book, CERTIFIED, record.ended_at, ref=record.id)
            return record

        return await self._write(job, caller=book.id)

    async def end(
        self, book: Book, attempt_id: int, state: Literal["refused", "abandoned"], reason: str, *, at: int
    ) -> Record:
        job = partial(attempts.end, book=book, attempt_id=attempt_id, state=state, reason=reason, at=at)
        return await self._write(job, caller=book.id)

    async def dispute(self, book: Book, attempt_id: int, found: str, *, at: int) -> None:
        def job(connection: sqlite3.Connection) -> None:
            attempts.dispute(connection, book, attempt_id, found)
            books.attend(connection, book, found, at)
            self._parts.teller.tell(connection, book, ATTENTION, at, ref=attempt_id, detail=found)

        await self._write(job)

    async def unfinished(self, book: Book) -> list[Record]:
        return self._look(partial(attempts.unfinished, book=book))

    async def find_number(self, book: Book, number: str) -> Record | None:
        return self._look(partial(attempts.find_number, book=book, number=number))

    async def record(self, book: Book, attempt_id: int) -> Record:
        return self._look(partial(attempts.find_record, book=book, attempt_id=attempt_id))

    async def credited(self, book: Book, fvc: int) -> tuple[int | None, int]:
        return self._look(partial(journal.credited, book=book, fvc=fvc))

    # -- keys of requests ---------------------------------------------------------------------------------------------

    async def find_key(self, book: Book, key_hash: bytes) -> KeyUse | None:
        """None also when what the key stood for failed without changing anything (decision 6)."""
        return self._look(partial(_key_use, book=book, key_hash=key_hash))

    async def keep_answer(self, book: Book, key_hash: bytes, fingerprint: bytes, answer: bytes, *, at: int) -> None:
        keep = partial(attempts.keep_key, book=book, key_hash=key_hash, fingerprint=fingerprint)
        await self._write(partial(keep, at=at, answer=answer))

    # -- totals and closures ------------------------------------------------------------------------------------------

    async def aggregate(self, book: Book) -> Aggregate:
        complete = not self._look(partial(totals.is_behind, book=book))
        while not complete:
            job = partial(totals.bring_in, book=book, zone=self._parts.zone, limit=totals.BATCH)
            _, complete = await self._write(job)
        return await self.aggregated(book)

    async def aggregated(self, book: Book) -> Aggregate:
        return self._look(lambda connection: totals.read_totals(connection, book.id).aggregate())

    async def close_period(
        self,
        book: Book,
        *,
        counters: Counters,
        unexplained: int,
        at: int,
        key_hash: bytes = b"",
        fingerprint: bytes = b"",
    ) -> Closure:
        def job(connection: sqlite3.Connection) -> Closure:
            closure = closures.close_period(
                connection,
                book,
                counters=counters,
                unexplained=unexplained,
                at=at,
                zone=self._parts.zone,
                labels=self._parts.labels,
            )
            z_number, created_at = closure.z_number, closure.created_at
            if key_hash:
                attempts.keep_key(connection, book, key_hash, fingerprint, at=created_at, z_number=z_number)
            self._parts.teller.tell(connection, book, CLOSURE, created_at, ref=z_number)
            return closure

        return await self._write(job)

    async def tally_between(self, book: Book, start: int, end: int) -> Tally:
        return await self._read(partial(totals.tally_between, book=book, start=start, end=end))

    async def aggregate_between(self, book: Book, start: int, end: int) -> Aggregate:
        return await self._read(partial(totals.aggregate_between, book=book, start=start, end=end))

    async def closures(
        self, book: Book, *, start: int, end: int, after: int = 0, limit: int | None = 1000
    ) -> Sequence[Closure]:
        job = partial(closures.closures_between, book=book, start=start, end=end, after=after, limit=limit)
        return await self._read(job)


def _key_use(connection: sqlite3.Connection, book: Book, key_hash: bytes) -> KeyUse | None:
    row = attempts.find_key(connection, book, key_hash)
    if row is None:
        return None
    fingerprint, attempt_id, z_number, answer = row
    if attempt_id is not None:
        record = attempts.find_record(connection, book, attempt_id)
        return None if record.state in attempts.FAILED else KeyUse(fingerprint, record=record)
    if z_number is not None:
        return KeyUse(fingerprint, closure=closures.find_closure(connection, book, z_number))
    return KeyUse(fingerprint, answer=answer or b"")
