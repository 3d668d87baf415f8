"""The ledger for the use cases: one call is one transaction, durable when it returns; StorageFull if it cannot be."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar, Unpack

import msgspec

from common.language import Text
from common.language.reasons import SALE_AMONG_FOREIGN
from daemon.core.audit import INTERNAL, Call
from daemon.core.errors import PeriodEnded, StorageError, ZNumberUnknown
from daemon.core.events import ATTENTION, CERTIFIED, CLOSURE, IN_DOUBT, REFUSED
from daemon.core.ledger.attempt import Outcome, Record
from daemon.core.ledger.book import Aggregate, Book, BookState, Closure, LastSeen
from daemon.core.ledger.verdict import Evidence, foreign_count
from daemon.core.machine.state import MachineState
from daemon.store.access import OpenLedger
from daemon.store.acts import CalendarAccess, DeferredAccess, OutageAccess
from daemon.store.maintenance.numbers import catch_up, name_of, question_at_first_connection
from daemon.store.sqlite.high_water import HighWater, book_name
from daemon.store.tables import audit
from daemon.store.tables.book import (
    attempts,
    books,
    closures,
    deferred,
    epochs,
    outages,
    settlements,
    take_overs,
    totals,
)
from daemon.store.tables.book.attempts import FailedState
from daemon.store.tables.meta import read_damage, read_number, write_meta

T = TypeVar("T")
P = ParamSpec("P")
TIME_AHEAD = "time_ahead"


class Ledger(CalendarAccess, DeferredAccess, OutageAccess):
    # -- the book -----------------------------------------------------------------------------------------------------

    async def open_pairs(self, pairs: Iterable[tuple[str, str]], machines: Iterable[str]) -> None:
        """Opens the live books of each machine with a spare and of its spare (`pairs`), before any machine is read.
        Machines of two taxpayers are no pair. A pair that is no longer configured is dissolved only if neither machine
        stood for the other and the configuration has both (`machines`): one left alone could certify again what the
        other certified. For the same reason a machine whose ledger is gone has to be compared as after a restore."""

        def job(connection: sqlite3.Connection) -> None:
            configured = []
            alone = [book for nim in machines if (book := books.find_book(connection, nim, "live")) is not None]
            for names in pairs:
                pair = tuple(books.book_state(connection, books.open_book(connection, nim, "live")) for nim in names)
                first, spare = pair
                if first.ifu == spare.ifu or not (first.ifu and spare.ifu):
                    take_overs.pair(connection, first.book, spare.book)
                    # A ledger that knows one of the two is not lost: it may sell before a new spare was ever connected.
                    is_new = first.counters is None and spare.counters is None
                    may_be_lost = self.is_remembered if is_new else self._has_worked_with
                    for state in pair:
                        if may_be_lost(state.book, state.ifu):
                            take_overs.doubt(connection, state.book)
                    configured.append((first.book, spare.book))
            take_overs.dissolve_pairs(connection, configured, alone)

        await self.write(job)

    async def check_free_space(self, book: Book) -> None:
        """StorageFull without room for a certification beside the reserve; a sandbox leaves more to live sales."""
        if self._open.free_space.is_due:
            await self._open.free_space.measure(self.peek(read_damage).file)
        self._open.free_space.check(sandbox=book.mode == "test")

    async def set_attention(self, book: Book, found: Text, *, at: int) -> None:
        await self.write(self._attend, book=book, found=found, at=at)

    def _attend(self, connection: sqlite3.Connection, book: Book, found: Text, at: int) -> None:
        books.attend(connection, book, found, at)
        deferred.doubt(connection, book, SALE_AMONG_FOREIGN)
        self._open.event_writer.write(connection, book, ATTENTION, at, detail=found)

    async def attend_machine(self, nim: str, found: Text, *, at: int) -> None:
        """Sets attention in the live book of another machine, if this ledger has one."""

        def job(connection: sqlite3.Connection) -> None:
            if (book := books.find_book(connection, nim, "live")) is not None:
                books.attend(connection, book, found, at)
                self._open.event_writer.write(connection, book, ATTENTION, at, detail=found)

        await self.write(job)

    async def store_evidence(self, book: Book, state: MachineState, *, at: int) -> None:
        """Stores the machine's state for `mcfd machine settle`, which cannot use the daemon's line."""
        await self.write(settlements.store_evidence, book=book, evidence=Evidence(at, state))

    async def reconcile(self, book: Book, state: MachineState, *, unexplained: int, at: int) -> None:
        """Takes over the machine's counters and taxpayer, and the numbers of that book in the high-water file."""
        water = self._open.high_water

        def job(connection: sqlite3.Connection) -> BookState:
            if water is not None:
                question_at_first_connection(connection, book, water, state)
            books.reconcile(connection, book, state, unexplained, at)
            return books.book_state(connection, book) if water is None else catch_up(connection, book, water)

        met = await self.write(job)
        if water is not None and met.ifu and not water.is_entered(name_of(met)):
            # After the commit: a name in the file without its book in the ledger means a lost ledger.
            await self._meet(water, name_of(met))

    async def _meet(self, water: HighWater, name: str) -> None:
        """Enters the book in the high-water file, by which a lost ledger is detected; each tick tries again."""
        try:
            await asyncio.to_thread(water.enter, name)
        except StorageError:
            water.unmet.add(name)
        else:
            water.unmet.discard(name)

    def is_remembered(self, book: Book, ifu: str) -> bool:
        """Whether a lost ledger may have had this book: one was in use here, or an unknown copy was restored."""
        water = self._open.high_water
        return water is not None and (water.marks.incomplete or self._has_worked_with(book, ifu))

    def _has_worked_with(self, book: Book, ifu: str) -> bool:
        water = self._open.high_water
        return water is not None and water.contains(book_name(book.nim, book.mode, ifu))

    # -- attempts -----------------------------------------------------------------------------------------------------

    def certify(self, connection: sqlite3.Connection, book: Book, attempt_id: int, outcome: Outcome) -> Record:
        """Stores the outcome: state, seq, hash, counters, an event."""
        before = connection.total_changes
        record = attempts.certify(connection, book, attempt_id, outcome)
        if connection.total_changes != before:  # a repetition is no news
            self._open.event_writer.write(connection, book, CERTIFIED, record.ended_at, ref=record.id)
            # A certification ends the machine's outage, in the same commit. Not if the attempt began before the outage:
            # then only its outcome became known now.
            last = outages.last_outage(connection, book) if book.mode == "live" else None
            if last is not None and last.is_open and record.begun_at >= last.since:
                self._end_outage(connection, book, at=record.ended_at, until=record.ended_at - record.line_ms)
        return record

    def certify_settled(
        self, connection: sqlite3.Connection, book: Book, attempt_id: int, outcome: Outcome, found: Text
    ) -> Record:
        """As `certify`, with attention if `found`. What a person has entered meanwhile of an earlier attempt is no
        foreign invoice."""
        if (before := books.book_state(connection, book).counters) is not None:
            others = foreign_count(outcome.invoice, before, outcome.certified.counters)
            outcome = msgspec.structs.replace(outcome, unexplained=min(outcome.unexplained, others))
        record = self.certify(connection, book, attempt_id, outcome)
        if found:
            self._attend(connection, book, found, outcome.at)
        return record

    def end(
        self, connection: sqlite3.Connection, book: Book, attempt_id: int, state: FailedState, reason: str, *, at: int
    ) -> Record:
        """Ends an attempt as not certified. A refusal is an event, except of a deferred sale (`refuse_sale`)."""
        before = connection.total_changes
        record = attempts.end(connection, book, attempt_id, state, reason, at=at)
        if state == "refused" and not record.invoice.deferred and connection.total_changes != before:
            self._open.event_writer.write(connection, book, REFUSED, record.ended_at, ref=record.id)
        return record

    async def dispute(self, book: Book, attempt_id: int, found: Text, *, at: int) -> None:
        """Marks the attempt as disputed and sets the book's attention to the reason."""

        def job(connection: sqlite3.Connection) -> None:
            attempts.dispute(connection, book, attempt_id, found)
            books.attend(connection, book, found, at)
            self._open.event_writer.write(connection, book, IN_DOUBT, at, ref=attempt_id, detail=found)
            self._open.event_writer.write(connection, book, ATTENTION, at, ref=attempt_id, detail=found)

        await self.write(job)

    async def begin_epoch(self, book: Book, state: MachineState, nim: str, *, at: int) -> Book:
        """Begins an epoch after another activation for the same taxpayer (decision 33) with an entry in the chain;
        returns the book with its new NIM. Restarted counters are taken over, and what they count is unexplained.
        Idempotent."""
        last = LastSeen(state.last)
        return await self.write(epochs.begin_epoch, book, state.counters, ifu=state.ifu, nim=nim, at=at, seen=last)

    # -- totals and closures ------------------------------------------------------------------------------------------

    async def aggregate(self, book: Book) -> Aggregate:
        """Adds all that ended since the last call to the totals."""
        complete = not self.peek(totals.is_behind, book=book)
        while not complete:
            job = partial(totals.add_new, book=book, zone=self._open.zone, limit=totals.BATCH)
            _, complete = await self.write(job)
        if (water := self._open.high_water) is not None:
            for name in sorted(water.unmet):
                await self._meet(water, name)
        return await self.aggregated(book)

    async def aggregated(self, book: Book) -> Aggregate:
        """The totals as of the last `aggregate`."""
        return self.peek(lambda connection: totals.read_totals(connection, book.id).aggregate())

    async def close_period(
        self,
        book: Book,
        *,
        at: int,
        call: Call = INTERNAL,
        after: int | None = None,
        seen: LastSeen | None = None,
        **figures: Unpack[closures.PeriodFigures],
    ) -> Closure:
        """Closes a Z. Its number is reserved durably in the high-water file before the transaction (decision 30). With
        `after`: PeriodEnded unless the last Z has that number."""
        water, name = self._open.high_water, ""

        def job(connection: sqlite3.Connection) -> Closure:
            nonlocal name
            state = books.book_state(connection, book)
            if state.needs_last_z:
                raise ZNumberUnknown(book.nim)
            if after not in (None, state.z_number):
                raise PeriodEnded(state.z_number)
            if water is not None:
                state, name = catch_up(connection, book, water), name_of(state)
                water.reserve(name, state.z_number + 1)
            self.close_over(connection, book, at)
            closure = closures.close_period(
                connection, state.book, at=at, zone=self._open.zone, labels=self._open.labels, seen=seen, **figures
            )
            z_number, created_at = closure.z_number, closure.created_at
            attempts.insert_answer(connection, book, call, at=created_at, z_number=z_number)
            self._open.event_writer.write(connection, book, CLOSURE, created_at, ref=z_number)
            detail = {"z_number": str(z_number), "total_ttc": str(closure.total_ttc)}
            if (counted := figures.get("counted")) is not None:
                detail["counted"] = str(counted)
            audit.add_of_book(connection, book, "closure.created", at=created_at, by=call.by, detail=detail)
            return closure

        closure = await self.write(job)
        if water is not None:
            # A failure is harmless: the number is reserved, which says the same while this ledger exists.
            with contextlib.suppress(StorageError):
                await asyncio.to_thread(water.count_number, name, closure.z_number)
            await self.count_calendar(book)
        return closure


class SandboxLedger(Ledger):
    """The ledger for the sandbox's books: each write lets live sales go first. `meta` stores by how many ms the
    sandbox's time is ahead of the box's."""

    def __init__(self, parts: OpenLedger, yield_to_tills: Callable[[], Awaitable[None]]) -> None:
        super().__init__(parts)
        self._yield_to_tills = yield_to_tills

    async def write(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **named: P.kwargs
    ) -> T:
        await self._yield_to_tills()
        return await super().write(function, *args, **named)

    async def check_free_space(self, book: Book) -> None:
        await self._yield_to_tills()
        await super().check_free_space(book)

    def time_ahead(self, book: Book) -> int:
        return self.peek(read_number, f"{TIME_AHEAD} {book.id}")

    async def keep_time_ahead(self, book: Book, ahead: int) -> None:
        await self.write(write_meta, f"{TIME_AHEAD} {book.id}", str(ahead))
