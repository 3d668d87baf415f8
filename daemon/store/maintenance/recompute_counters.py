"""Recomputes columns outside the chain: originals of credit notes, years of numbers, the machine's counters."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC

from common.language import Text
from daemon.core.clock import DAY
from daemon.core.invoice.invoice import CREDITS, Invoice
from daemon.core.invoice.number import NumberScope, read_reference
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.entries import Epoch
from daemon.core.machine.state import FiscalCounters, same_machine
from daemon.store.sqlite.file import load
from daemon.store.tables.book.totals import TotalRow

_SQL = load(__name__)


class OriginalCheck:
    """`certification.original_id`: the sale that a credit note is booked on is the one that it names."""

    def __init__(self, connection: sqlite3.Connection, book: Book, *, has_lost: bool) -> None:
        """`has_lost`: some records of the book are lost."""
        self._connection = connection
        self._book = book
        self._may_be_gone = has_lost or book.mode == "test"  # a sandbox lets go of its oldest sales

    def fits(self, invoice: Invoice, original_id: int | None) -> bool:
        """Nothing tells that there was no such sale when it was booked on none."""
        if not original_id:
            return True
        reference = read_reference(invoice.reference) if invoice.is_credit else None
        row = self._connection.execute(_SQL["original"], (original_id,)).fetchone()
        if row is None:
            return self._may_be_gone
        mode, nim, state, kind, fvc, fc = row
        return (
            reference is not None
            and (mode, state, kind in CREDITS) == (self._book.mode, "certified", False)
            and same_machine(reference.machine, nim)
            and reference.counter in (fvc, fc)
        )


def is_number_year(record: Record, number_year: int) -> bool:
    """Whether `certification.number_year` is that of its invoice. Before 0.6 the invoice lacks it: then 0, or not
    before the year of the sale in any zone (later if the clock was fast)."""
    if record.invoice.number_year is not None:
        return number_year == record.invoice.number_year
    sold_at = record.invoice.deferred.sold_at if record.invoice.deferred else record.begun_at
    return not number_year or number_year >= NumberScope(UTC).year_of(sold_at - DAY)


class CountersCheck:
    """Checks the machine's counters in book and totals against the chain; they may be higher, by an unknown number."""

    def __init__(self) -> None:
        self.totals_at = 0
        self._last: FiscalCounters | None = None
        self._ifu = ""
        self._most = 0
        """The highest FVC: the totals have it until the next Z, also where the machine counts anew."""

    def check(self, counters: FiscalCounters, ifu: str = "", *, is_decided: bool = False) -> None:
        """`is_decided`: an operator has entered it, and its counters may be those of an earlier activation."""
        if not is_decided:
            self._last = counters
        self._most = max(self._most, counters.fvc)
        self._ifu = ifu or self._ifu

    def begin(self, epoch: Epoch) -> None:
        self._last = epoch.now
        self._most = max(self._most, epoch.before.fvc)
        self._ifu = epoch.ifu or self._ifu

    def problems(self, state: BookState, totals: TotalRow) -> Iterator[str]:
        counters, last = state.counters, self._last
        if last is not None and (
            counters is None or counters.tc < last.tc or counters.fvc < last.fvc or counters.frc < last.frc
        ):
            yield Text("the counters that the book knows are below those of its last record")
        if state.book.mode == "live" and self._ifu and state.ifu and state.ifu != self._ifu:
            yield Text("the book is of another taxpayer than its last record")
        if self.totals_at and totals.at != self.totals_at:
            yield Text("the totals are not of the time of their last record")
        if last is not None and totals.fvc_end > max(self._most, counters.fvc if counters else 0):
            yield Text("the totals end with an FVC that the machine has not counted to")
