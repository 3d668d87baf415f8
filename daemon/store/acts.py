"""Movements of cash, duplicates and reports that were given out: entries of the book, in the audit log.

Closures of months and years."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Sequence

import msgspec

from common.language.reasons import INVOICE_IN_PROGRESS, from_stored, to_stored
from daemon.core.audit import DAEMON, INTERNAL, Action, Actor, Call
from daemon.core.errors import MachineBusy, PeriodNotOver, StorageError, TooManyCashMoves
from daemon.core.events import BACK, DEFERRED, OUTAGE, REFUSED
from daemon.core.invoice.number import TakenFrom
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredSale, NumberWaits
from daemon.core.ledger.entries import (
    CalendarKind,
    CashMove,
    CopyAct,
    OutageReason,
    Placed,
    ReportAct,
    SaleDecided,
    SaleDeferred,
)
from daemon.core.ledger.outage import Notice, Outage
from daemon.core.report.calendar_report import month_of
from daemon.store.access import LedgerAccess
from daemon.store.maintenance.numbers import name_of
from daemon.store.tables import audit
from daemon.store.tables.book import acts, attempts, books, calendar_closures, deferred, entries, outages
from daemon.store.tables.book.calendar_closures import ClosingTerms, IssuedNumbers, closed_of
from daemon.store.tables.book.codec import invoice_bytes


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
            closed = (
                closures[-1]
                if not period
                else closed_of(calendar_closures.find_calendar_closure(connection, book, kind, period))
            )
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


class DeferredAccess(LedgerAccess):
    async def defer(self, book: Book, sale: DeferredSale, reason: str, taken: TakenFrom) -> DeferredSale:
        """Row, entry of the chain and event in one transaction; with its time as the book has it. `taken`: which holders of its number count."""

        def job(connection: sqlite3.Connection) -> DeferredSale:
            holder = attempts.find_holder(connection, book, sale.number, taken)
            if holder is not None and holder.state != "certified":
                raise MachineBusy(INVOICE_IN_PROGRESS(number=sale.number))
            if holder is not None:
                raise DuplicateInvoice(holder)
            if deferred.is_number_in_use(connection, book, sale.number):
                raise NumberWaits(sale.number)
            digest = deferred.digest_of(sale.key, sale.fingerprint, invoice_bytes(sale.invoice)) if sale.invoice else ""
            entry = SaleDeferred(sale.number, sale.type, sale.total_ttc, sale.sold_at, reason, sale.outage, digest)
            at = entries.append(connection, book, entry, sale.sold_at).at
            stored = msgspec.structs.replace(sale, id=deferred.insert(connection, book, sale))
            self._open.event_writer.write(connection, book, DEFERRED, at, ref=stored.id)
            return stored

        return await self.write(job)

    async def refuse_sale(self, book: Book, sale: DeferredSale, why: str, *, at: int) -> None:
        """NotWaiting where it was taken back meanwhile."""

        def job(connection: sqlite3.Connection) -> None:
            attempt_id = deferred.end(connection, book, sale.id, "refused", why=why, at=at)
            placed = entries.append(connection, book, SaleDecided(sale.number, "refused", to_stored(why)), at)
            self._open.event_writer.write(connection, book, REFUSED, placed.at, ref=attempt_id)

        await self.write(job)

    async def withdraw_sale(self, book: Book, sale: DeferredSale, reason: str, *, at: int, by: Actor) -> None:
        """NotWaiting where it has ended, or an attempt is under way."""

        def job(connection: sqlite3.Connection) -> None:
            deferred.end(connection, book, sale.id, "withdrawn", why=reason, at=at)
            _note_decision(
                connection, book, sale, SaleDecided(sale.number, "withdrawn", to_stored(reason)), at=at, by=by
            )

        await self.write(job)

    async def release_sale(self, book: Book, sale: DeferredSale, reason: str, *, at: int, by: Actor) -> None:
        """A doubtful one was not certified: it waits again."""

        def job(connection: sqlite3.Connection) -> None:
            deferred.release(connection, book, sale.id)
            _note_decision(
                connection, book, sale, SaleDecided(sale.number, "released", to_stored(reason)), at=at, by=by
            )

        await self.write(job)


def _note_decision(
    connection: sqlite3.Connection, book: Book, sale: DeferredSale, decided: SaleDecided, *, at: int, by: Actor
) -> None:
    placed = entries.append(connection, book, decided, at)
    if book.mode == "live":
        detail = {"number": sale.number, "total_ttc": str(sale.total_ttc), "reason": str(from_stored(decided.reason))}
        action: Action = "sale.withdrawn" if decided.decision == "withdrawn" else "sale.released"
        audit.add(connection, action, f"{book.nim} live", at=placed.at, by=by, detail=detail)
