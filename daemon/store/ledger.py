"""The ledger as the use cases see it (`usecases.ports.LedgerPort`): one call, one transaction, durable when it returns."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Literal, TypeVar

from common.language import Text
from daemon.core.audit import Actor
from daemon.core.call import NOBODY, Call
from daemon.core.errors import LedgerUnusable, StorageError, ZNumberUnknown
from daemon.core.events import ATTENTION, CERTIFIED, CLOSURE
from daemon.core.invoice.invoice import Invoice
from daemon.core.invoice.reference import Reference
from daemon.core.ledger.attempt import Attempt, Mode, Outcome, Record
from daemon.core.ledger.book import Aggregate, Book, BookState, LastSeen, Tally
from daemon.core.ledger.closure import Closure, KeyUse
from daemon.core.ledger.last_invoice import Standing
from daemon.core.ledger.verdict import Evidence
from daemon.core.machine.state import FiscalCounters, LastInvoice, MachineState
from daemon.store.access import OpenLedger
from daemon.store.acts import ActAccess
from daemon.store.calendar import CalendarAccess
from daemon.store.cash_drawer import CashAccess
from daemon.store.maintenance.numbers import ask_at_first_meeting, catch_up, name_of
from daemon.store.papers import PaperAccess
from daemon.store.sqlite.connection import Job
from daemon.store.sqlite.faults import DAMAGED
from daemon.store.sqlite.high_water import HighWater, book_name
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, books, closures, epochs, originals, series, settlements, totals
from daemon.store.tables.damage import read_damage
from daemon.store.tables.meta import read_meta, write_meta

T = TypeVar("T")


class Ledger(CashAccess, PaperAccess, ActAccess, CalendarAccess):
    # -- the book -----------------------------------------------------------------------------------------------------

    async def open_book(self, nim: str, mode: Mode) -> Book:
        return await self._write(partial(books.open_book, nim=nim, mode=mode))

    async def state(self, book: Book) -> BookState:
        return self._snapshot(partial(books.book_state, book=book))

    async def check_free_space(self, book: Book) -> None:
        await self._open.free_space.check(sandbox=book.mode == "test")
        if found := self._snapshot(read_damage).file:
            raise LedgerUnusable(Text("{told} ({found})", told=DAMAGED, found=found[0]))

    async def set_attention(self, book: Book, found: str, *, at: int) -> None:
        await self._write(partial(self._attend, book=book, found=found, at=at))

    def _attend(self, connection: sqlite3.Connection, book: Book, found: str, at: int) -> None:
        books.attend(connection, book, found, at)
        self._open.event_writer.write(connection, book, ATTENTION, at, detail=found)

    async def attend_machine(self, nim: str, found: str, *, at: int) -> None:
        def job(connection: sqlite3.Connection) -> None:
            if (book := books.find_book(connection, nim, "live")) is not None:
                books.attend(connection, book, found, at)
                self._open.event_writer.write(connection, book, ATTENTION, at, detail=found)

        await self._write(job)

    async def keep_evidence(self, book: Book, state: MachineState, *, at: int) -> None:
        await self._write(partial(settlements.keep_evidence, book=book, evidence=Evidence(at, state)))

    async def reconcile(self, book: Book, state: MachineState, *, unexplained: int, at: int) -> None:
        """From here on the book's taxpayer is known, so the numbers that are remembered for it are brought in."""
        water = self._open.high_water

        def job(connection: sqlite3.Connection) -> BookState:
            if water is not None:
                ask_at_first_meeting(connection, book, water, state)
            books.reconcile(connection, book, state, unexplained, at)
            return books.book_state(connection, book) if water is None else catch_up(connection, book, water)

        met = await self._write(job)
        if water is not None and met.ifu and not water.has_met(name_of(met)):
            # After the commit: a name without its book is a ledger that vanished.
            await self._meet(water, name_of(met))

    async def _meet(self, water: HighWater, name: str) -> None:
        """While the disk does not take it, it is tried again by each tick: a ledger that vanishes is missed by its name."""
        try:
            await asyncio.to_thread(water.meet, name)
        except StorageError:
            water.unmet.add(name)
        else:
            water.unmet.discard(name)

    async def is_remembered(self, book: Book, ifu: str) -> bool:
        """Whether a ledger that is gone may have had this book: one worked here with it, or a copy was put back where nothing is known of the ledger
        that it stands for."""
        water = self._open.high_water
        return water is not None and (water.marks.incomplete or water.knows(book_name(book.nim, book.mode, ifu)))

    # -- attempts -----------------------------------------------------------------------------------------------------

    async def begin(self, book: Book, attempt: Attempt) -> int:
        return await self._write(partial(attempts.begin, book=book, attempt=attempt), caller=book.id)

    async def amend(self, book: Book, attempt_id: int, invoice: Invoice) -> None:
        await self._write(partial(attempts.amend, book=book, attempt_id=attempt_id, invoice=invoice), caller=book.id)

    async def certify(self, book: Book, attempt_id: int, outcome: Outcome, *, found: str = "") -> Record:
        def job(connection: sqlite3.Connection) -> Record:
            before = connection.total_changes
            record = attempts.certify(connection, book, attempt_id, outcome)
            if connection.total_changes != before:  # told twice, it is no news
                self._open.event_writer.write(connection, book, CERTIFIED, record.ended_at, ref=record.id)
            if found:
                self._attend(connection, book, found, outcome.at)
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
            self._open.event_writer.write(connection, book, ATTENTION, at, ref=attempt_id, detail=found)

        await self._write(job)

    async def was_at_the_machine(self, book: Book, invoice: Invoice) -> bool:
        return self._snapshot(partial(attempts.was_at_the_machine, book=book, invoice=invoice))

    async def has_code(self, book: Book, code: str) -> bool:
        return self._snapshot(partial(attempts.has_code, book=book, code=code))

    async def is_of_earlier_activation(self, book: Book, code: str) -> bool:
        return self._snapshot(partial(attempts.is_of_earlier_activation, book=book, code=code))

    async def standing(self, book: Book, last: LastInvoice | None) -> Standing:
        return self._snapshot(partial(attempts.standing_of, book=book, last=last))

    async def unfinished(self, book: Book) -> list[Record]:
        return self._snapshot(partial(attempts.unfinished, book=book))

    async def find_number(self, book: Book, number: str) -> Record | None:
        return self._snapshot(partial(attempts.find_number, book=book, number=number))

    async def numbers_held(self, book: Book, prefix: str, digits: int) -> tuple[int, int]:
        return self._snapshot(partial(series.held, book=book, prefix=prefix, digits=digits))

    async def is_held(self, book: Book, number: str) -> bool:
        return self._snapshot(partial(series.is_held, book=book, number=number))

    async def record(self, book: Book, attempt_id: int) -> Record:
        return self._snapshot(partial(attempts.find_record, book=book, attempt_id=attempt_id))

    async def begin_epoch(self, book: Book, state: MachineState, nim: str, *, at: int) -> Book:
        begin = partial(
            epochs.begin_epoch, book=book, counters=state.counters, ifu=state.ifu, seen=LastSeen(state.last)
        )
        return await self._write(partial(begin, nim=nim, at=at))

    async def book_of_taxpayer(self, book: Book, nim: str, ifu: str) -> Book:
        return await self._write(partial(epochs.book_of_taxpayer, book=book, nim=nim, ifu=ifu))

    async def former_books(self, book: Book) -> list[Book]:
        return self._snapshot(partial(books.former_books, book=book))

    async def sales_of_number(self, book: Book, number: str) -> Sequence[Record]:
        return self._snapshot(partial(attempts.sales_of_number, mode=book.mode, number=number))

    async def check_reference(self, book: Book, reference: Reference) -> None:
        self._snapshot(partial(originals.places, mode=book.mode, reference=reference))

    async def check_original(self, book: Book, invoice: Invoice) -> bool:
        return self._snapshot(partial(originals.exists, book=book, invoice=invoice))

    async def claim_original(self, book: Book, attempt_id: int, invoice: Invoice) -> bool:
        claim = partial(originals.claim, book=book, attempt_id=attempt_id, invoice=invoice)
        return await self._write(claim, caller=book.id)

    # -- keys of requests ---------------------------------------------------------------------------------------------

    async def find_key(self, book: Book, key_hash: bytes, *, failed: bool = False) -> KeyUse | None:
        """None, unless `failed`, also when what the key stood for failed without changing anything (decision 6)."""
        return self._snapshot(partial(_key_use, book=book, key_hash=key_hash, failed=failed))

    async def keep_answer(self, book: Book, key_hash: bytes, fingerprint: bytes, answer: bytes, *, at: int) -> None:
        keep = partial(attempts.keep_key, book=book, key_hash=key_hash, fingerprint=fingerprint)
        await self._write(partial(keep, at=at, answer=answer))

    async def note_cancelled(self, book: Book, *, at: int, by: Actor) -> None:
        if book.mode == "live":
            note = partial(audit.add, action="pending.cancelled", subject=f"{book.nim} live", at=at, by=by)
            await self._write(note)

    # -- totals and closures ------------------------------------------------------------------------------------------

    async def aggregate(self, book: Book) -> Aggregate:
        complete = not self._snapshot(partial(totals.is_behind, book=book))
        while not complete:
            job = partial(totals.bring_in, book=book, zone=self._open.zone, limit=totals.BATCH)
            _, complete = await self._write(job)
        if (water := self._open.high_water) is not None:
            for name in sorted(water.unmet):
                await self._meet(water, name)
        return await self.aggregated(book)

    async def aggregated(self, book: Book) -> Aggregate:
        return self._snapshot(lambda connection: totals.read_totals(connection, book.id).aggregate())

    async def close_period(
        self,
        book: Book,
        *,
        counters: FiscalCounters,
        unexplained: int,
        at: int,
        call: Call = NOBODY,
        seen: LastSeen | None = None,
        without_machine: bool = False,
        letterhead: str = "",
    ) -> Closure:
        """The number is durable in the high-water file before the Z is, and known there to be given before anybody is told (decision 30)."""
        water, name = self._open.high_water, ""

        def job(connection: sqlite3.Connection) -> Closure:
            nonlocal name
            state = books.book_state(connection, book)
            if state.z_asked:
                raise ZNumberUnknown(book.nim)
            if water is not None:
                state, name = catch_up(connection, book, water), name_of(state)
                water.reserve(name, state.z_number + 1)
            self.close_over(connection, book, at)
            closure = closures.close_period(
                connection,
                state.book,
                counters=counters,
                unexplained=unexplained,
                at=at,
                zone=self._open.zone,
                labels=self._open.labels,
                seen=seen,
                without_machine=without_machine,
                letterhead=letterhead,
            )
            z_number, created_at = closure.z_number, closure.created_at
            if call.key:
                attempts.keep_key(connection, book, call.key_hash, call.fingerprint, at=created_at, z_number=z_number)
            self._open.event_writer.write(connection, book, CLOSURE, created_at, ref=z_number)
            if book.mode == "live":
                subject, detail = f"{book.nim} live", {"z_number": str(z_number), "total_ttc": str(closure.total_ttc)}
                audit.add(connection, "closure.created", subject, at=created_at, by=call.by, detail=detail)
            return closure

        closure = await self._write(job)
        if water is not None:
            # It is reserved, which says the same as long as this ledger is here.
            with contextlib.suppress(StorageError):
                await asyncio.to_thread(water.give, name, closure.z_number)
            await self.count_calendar(book)
        return closure

    async def tally_between(self, book: Book, start: int, end: int) -> Tally:
        return await self._read(partial(totals.tally_between, book=book, start=start, end=end))

    async def aggregate_between(self, book: Book, start: int, end: int) -> Aggregate:
        return await self._read(partial(totals.aggregate_between, book=book, start=start, end=end))

    async def isfs_of_period(self, book: Book) -> Sequence[str]:
        return await self._read(partial(totals.isfs_of_period, book=book))

    async def isfs_between(self, book: Book, start: int, end: int) -> Sequence[str]:
        return await self._read(partial(totals.isfs_between, book=book, start=start, end=end))

    async def closure(self, book: Book, z_number: int) -> Closure:
        return await self._read(partial(closures.find_closure, book=book, z_number=z_number))

    async def closure_by_id(self, book: Book, report_id: str) -> Closure:
        return await self._read(partial(closures.find_closure_by_id, book=book, report_id=report_id))

    async def closures(
        self, book: Book, *, start: int, end: int, after: int = 0, limit: int | None = 1000
    ) -> Sequence[Closure]:
        job = partial(closures.closures_between, book=book, start=start, end=end, after=after, limit=limit)
        return await self._read(job)


TIME_AHEAD = "time_ahead"


class SandboxLedger(Ledger):
    """As the sandbox's books are written: there is one writer, and tills go first. How far their time is ahead of the box's (ms) is kept in
    `meta`."""

    def __init__(self, parts: OpenLedger, let_pass: Callable[[], Awaitable[None]]) -> None:
        super().__init__(parts)
        self._let_pass = let_pass

    async def _write(self, job: Job[T], caller: Hashable = None) -> T:
        await self._let_pass()
        return await super()._write(job, caller)

    async def check_free_space(self, book: Book) -> None:
        await self._let_pass()
        await super().check_free_space(book)

    async def time_ahead(self, book: Book) -> int:
        return int(self._snapshot(partial(read_meta, name=f"{TIME_AHEAD} {book.id}")) or 0)

    async def keep_time_ahead(self, book: Book, ahead: int) -> None:
        await self._write(partial(write_meta, name=f"{TIME_AHEAD} {book.id}", value=str(ahead)))


def _key_use(connection: sqlite3.Connection, book: Book, key_hash: bytes, *, failed: bool) -> KeyUse | None:
    row = attempts.find_key(connection, book, key_hash)
    if row is None:
        return None
    fingerprint, attempt_id, z_number, answer = row
    if attempt_id is not None:
        record = attempts.find_record(connection, book, attempt_id)
        return None if record.state in attempts.FAILED and not failed else KeyUse(fingerprint, record=record)
    if z_number is not None:
        return KeyUse(fingerprint, closure=closures.find_closure(connection, book, z_number))
    return KeyUse(fingerprint, answer=answer or b"")
