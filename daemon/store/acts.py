"""Transactions with events and high-water numbers: closed months and years, outages, deferred sales."""

import asyncio
import contextlib
import sqlite3

import msgspec

from common.language.reasons import INVOICE_IN_PROGRESS, to_stored
from daemon.core.audit import DAEMON, Actor, Call, key_hash_of
from daemon.core.errors import KeyReused, MachineBusy, PeriodNotOver, StorageError
from daemon.core.events import BACK, DEFERRED, OUTAGE, REFUSED
from daemon.core.invoice.number import TakenFrom
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredSale, NumberWaits
from daemon.core.ledger.entries import (
    CalendarClosed,
    CalendarKind,
    OutageReason,
    Placed,
    SaleDecided,
    SaleDeferred,
)
from daemon.core.ledger.outage import Outage
from daemon.core.report.calendar_report import month_of
from daemon.store.access import LedgerAccess
from daemon.store.maintenance.numbers import name_of
from daemon.store.tables import audit
from daemon.store.tables.book import (
    attempts,
    books,
    calendar_closures,
    deferred,
    entries,
    outages,
    uniqueness,
)
from daemon.store.tables.book.calendar_closures import ClosingTerms, IssuedNumbers
from daemon.store.tables.book.codec import invoice_bytes


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
            closed = placed.entry_of(CalendarClosed)
            self._open.event_writer.send_upstream(connection, book, placed.id, placed.at)
            detail = {"period": closed.period, "number": str(closed.number)}
            audit.add_of_book(connection, book, "calendar.closed", at=placed.at, by=by, detail=detail)
            closures.append(placed)
        return closures

    async def close_over_months(self, book: Book, at: int, *, upto_z: bool = False) -> None:
        """Closes what is over at `at` (ms) and not closed yet; nothing is written when there is nothing."""
        if "" < self.peek(calendar_closures.open_month, book, self._open.zone) < month_of(at, self._open.zone):
            await self.write(self.close_over, book=book, at=at, upto_z=upto_z)
            await self.count_calendar(book)

    async def close_calendar(self, book: Book, kind: CalendarKind, period: str, *, at: int, call: Call) -> bytes:
        """The report of the month or year that is over, or of the named one, also where it was closed before."""

        def job(connection: sqlite3.Connection) -> bytes:
            closures = [each.entry_of(CalendarClosed) for each in self.close_over(connection, book, at, call.by)]
            closures = [closed for closed in closures if closed.kind == kind]
            month = calendar_closures.open_month(connection, book, self._open.zone)
            is_over = period < month[: len(period)] if period else bool(closures)
            if not is_over:
                last = calendar_closures.last_closed(connection, book, kind)
                raise PeriodNotOver(period, last.period if last else "")
            find = calendar_closures.find_calendar_closure
            closed = find(connection, book, kind, period).entry_of(CalendarClosed) if period else closures[-1]
            answer = closed.body.encode()
            attempts.insert_answer(connection, book, call, at=at, answer=answer)
            return answer

        answer = await self.write(job)
        await self.count_calendar(book)
        return answer

    async def count_calendar(self, book: Book) -> None:
        """Counts closed months and years in the high-water file; after a failure the next start does it."""
        water = self._open.high_water
        if water is None:
            return
        name = name_of(self.peek(books.book_state, book=book))
        with contextlib.suppress(StorageError):
            await asyncio.to_thread(water.count, name, *self.peek(calendar_closures.numbers, book=book))


class OutageAccess(LedgerAccess):
    async def begin_outage(
        self,
        book: Book,
        reason: OutageReason,
        *,
        at: int,
        lasted: int,
        refused: bool,
        incident: str,
        is_over: bool,
    ) -> Outage | None:
        """None where one lasts already: a book has one at the most. With `is_over` it ends at `at` in the same
        transaction, unless a certification has ended it before."""

        def job(connection: sqlite3.Connection) -> Outage | None:
            begun = outages.begin(connection, book, reason, at=at, lasted=lasted, refused=refused, incident=incident)
            if begun is None:
                return None
            self._open.event_writer.write(connection, book, OUTAGE, at, ref=begun.number)
            if not begun.is_open:
                self._open.event_writer.write(connection, book, BACK, at, ref=begun.number)
                return begun
            return self._end_outage(connection, book, at=at, until=at) if is_over else begun

        return await self.write(job)

    async def end_outage(self, book: Book, *, at: int, until: int) -> Outage | None:
        """None where none is open."""
        return await self.write(self._end_outage, book, at=at, until=until)

    def _end_outage(self, connection: sqlite3.Connection, book: Book, *, at: int, until: int) -> Outage | None:
        ended = outages.end(connection, book, at=at, until=until)
        if ended is not None:
            self._open.event_writer.write(connection, book, BACK, at, ref=ended.number)
        return ended


class DeferredAccess(LedgerAccess):
    async def defer(self, book: Book, sale: DeferredSale, reason: str, taken: TakenFrom) -> DeferredSale:
        """Stores row, chain entry and event in one transaction; returns the sale with its stored time. `taken`: which
        attempts reserve its number. KeyReused where the key has a use at either machine of a pair."""

        def job(connection: sqlite3.Connection) -> DeferredSale:
            holder = attempts.find_number(connection, book, sale.number, taken, include_begun=True)
            holder = holder or attempts.find_elsewhere(connection, book, sale.number, taken)
            if holder is not None and holder.state != "certified":
                raise MachineBusy(INVOICE_IN_PROGRESS(number=sale.number))
            if holder is not None:
                raise DuplicateInvoice(holder)
            if deferred.is_number_in_use(connection, book, sale.number):
                raise NumberWaits(sale.number)
            if uniqueness.find_key(connection, book, key_hash_of(sale.key)):
                raise KeyReused
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
            deferred.end(connection, book, sale.id, "refused", why=why, at=at)
            placed = entries.append(connection, book, SaleDecided(sale.number, "refused", to_stored(why)), at)
            self._open.event_writer.write(connection, book, REFUSED, placed.at, ref=sale.id, detail=why)

        await self.write(job)
