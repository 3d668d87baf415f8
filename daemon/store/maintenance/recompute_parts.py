"""Parts of the recomputation of a book, each fed in the order of the chain: lost records, originals of credit notes and
the machine's counters, which are beside the chain, the register of outages, and closed months and years."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from typing import Any, NamedTuple

import msgspec

from common.language import Text
from daemon.core.clock import DAY
from daemon.core.invoice.invoice import CREDITS, Invoice
from daemon.core.invoice.number import NumberScope, read_reference
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book, BookState, Closure, Tally
from daemon.core.ledger.entries import (
    CalendarClosed,
    CalendarKind,
    CashTotal,
    Entry,
    Epoch,
    OutageBegun,
    OutageEnded,
    OutageNotified,
    Placed,
    RecordsLost,
    TimeRepair,
)
from daemon.core.ledger.tally import accumulate, subtract
from daemon.core.machine.state import FiscalCounters, same_machine
from daemon.core.report.calendar_report import CalendarReport, calendar_report, following
from daemon.store.sqlite.file import load
from daemon.store.tables.book.books import BookStart
from daemon.store.tables.book.totals import TotalRow

_SQL = load(__name__)
# As in a Z, texts are the chain's business.
_FIGURES = (
    *("kind", "nim", "certs_count", "total_ttc", "total_ht", "total_tva", "by_group", "by_type", "cash", "created_at"),
    *("number", "period", "z_count", "first_z", "last_z", "grand_total", "z_chain_head", "chain_previous"),
)


class LossCheck:
    """Lost records that an entry of the chain names count what it says, and the chain goes on after them; the others are
    found, and the next totals show what they counted.

    `found`: what no entry names. `is_after_loss`: what is read now follows lost records, and no hash confirms it.
    `is_unsure`: the totals may lack what lost records counted; `is_closed_unsure`: so may those of the last Z.
    `is_start_lost`: the first sale of the period may be lost."""

    def __init__(self, entries: Iterable[Placed], note: Callable[[str], None]) -> None:
        self.found: list[RecordsLost] = []
        self.named = [entry for placed in entries if isinstance(entry := placed.entry, RecordsLost)]
        self.is_after_loss = self.is_unsure = self.is_closed_unsure = self.is_start_lost = False
        self._note = note
        self._unreadable = 0
        self._uncounted: RecordsLost | None = None

    def take_unreadable(self, seq: int) -> bool:
        """Whether an entry names that record, whose row cannot be read: for what follows it is missing."""
        self._unreadable += 1
        return any(loss.has(seq) for loss in self.named)

    def pass_missing(self, now: BookStart, last: int, next_hash: str, totals: Tally | None) -> None:
        """Goes on after records up to `last` that are missing. `totals`: of one of them, if they are known."""
        self.is_after_loss = False
        place = (now.seq + 1, last, next_hash)
        if last <= now.seq:
            return
        self.is_start_lost = self.is_start_lost or not now.fvc_start
        named = next((loss for loss in self.named if (loss.first_seq, loss.last_seq, loss.next_hash) == place), None)
        if named is not None:
            self.is_after_loss, self.is_unsure = True, named.tally is None
            accumulate(now.running, named.tally or {})
        else:
            if self._unreadable < last - now.seq:
                self._note(Text("records {first} to {last} are missing", first=now.seq + 1, last=last))
            self.end(None)
            self._uncounted = RecordsLost(*place, tally={})
            if totals is not None:
                self.is_sum(now, totals)
        now.seq, self._unreadable = last, 0

    def is_sum(self, now: BookStart, running: Tally) -> bool:
        """Whether these totals are the sum of the records; the difference is what missing ones counted."""
        missing = subtract(running, now.running)
        if self.end(missing):
            accumulate(now.running, missing)
        return not missing

    def pass_closure(self) -> None:
        self.is_start_lost, self.is_closed_unsure = False, self.is_unsure

    def end(self, tally: Tally | None) -> bool:
        """Ends the search for what the last missing records counted; whether there were any."""
        loss, self._uncounted = self._uncounted, None
        if loss is not None:
            self.found.append(msgspec.structs.replace(loss, tally=tally))
        return loss is not None


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


class RegisterOfOutages:
    """Follows the chain from its beginning: outages are numbered from 1 without a gap, and one at the most lasts."""

    def __init__(self) -> None:
        self._last = 0
        self._is_open = False

    def problem(self, name: str, entry: object) -> str:
        """Why the next entry, called `name`, does not fit; empty where it does, and for an entry of another kind."""
        last, is_open = self._last, self._is_open
        match entry:
            case OutageBegun(number=number):
                self._last, self._is_open = number, True
                if is_open:
                    return Text("{name} begins an outage while another one lasts", name=name)
                if number != last + 1:
                    return Text("{name} begins an outage with another number than the next", name=name)
            case OutageEnded(number=number):
                self._is_open = False
                if not is_open or number != last:
                    return Text("{name} ends an outage that does not last", name=name)
            case OutageNotified(number=number) if number > last:
                return Text("{name} is about an outage that is not in the register", name=name)
        return ""


class _Passed(NamedTuple):
    """A Z that a closure may hold."""

    z_number: int
    seq: int
    hash: bytes
    running: Tally | None
    cash: CashTotal


class CalendarCheck:
    """Hears of each Z and each closure in the order of the chain."""

    def __init__(self, book: Book, start: BookStart) -> None:
        self._book = book
        self._is_whole = start.is_whole
        self._passed: list[_Passed] = []
        self._last: dict[CalendarKind, CalendarClosed] = {}
        self._repaired: set[CalendarKind] = set()

    def take_closure(self, closure: Closure, running: Tally | None, cash: CashTotal) -> None:
        """`running`: None where lost records leave it open, until a month or year says it."""
        self._passed.append(_Passed(closure.z_number, closure.last_seq, closure.hash, running, cash))

    def problems(self, entry: Entry, placed: Placed, nim: str, previous: bytes) -> Iterator[str]:
        """`previous` is the chain before it; empty where that is of a lost record."""
        if isinstance(entry, TimeRepair):  # months that were to come are closed again
            self._repaired = {"month", "year"}
        if isinstance(entry, CalendarClosed):
            yield from self._problems(entry, placed, nim, previous)

    def _problems(self, closed: CalendarClosed, placed: Placed, nim: str, previous: bytes) -> Iterator[str]:
        name = Text("closure of {period}", period=closed.period)
        before = self._last.get(closed.kind)
        self._last[closed.kind] = closed
        if before is None:
            if not self._is_whole:  # what it holds was let go of, at least in part
                return
            before = CalendarClosed(closed.kind, 0, "", 0, 0, 0, {}, "")
        is_next = not before.period or closed.period == following(before.period)
        is_again = closed.kind in self._repaired and closed.period <= before.period
        self._repaired -= {closed.kind}
        if closed.number <= before.number or not (is_next or is_again):
            yield Text("{name} does not follow the one before it", name=name)
        upto = self._last.get("month", before).upto_z
        closures = [z for z in self._passed if before.upto_z < z.z_number <= upto]
        end = closures[-1] if closures else _Passed(before.upto_z, before.upto_seq, b"", before.running, CashTotal())
        running = closed.running if end.running is None else end.running
        place = (closed.after_z, closed.upto_z, closed.upto_seq, closed.running)
        if place != (before.upto_z, end.z_number, end.seq, running):
            yield Text("{name} does not hold exactly the Zs since the one before it", name=name)
        ours = calendar_report(
            msgspec.structs.replace(self._book, nim=nim),
            kind=closed.kind,
            number=closed.number,
            period=closed.period,
            report_id="",
            created_at=placed.chained_at or placed.at,
            bounds=("", ""),
            zs=[(z.z_number, z.hash) for z in closures],
            before=before.running,
            running=running,
            cash=CashTotal(sum(z.cash.deposits for z in closures), sum(z.cash.withdrawals for z in closures)),
            labels={},
            isfs=(),
            chain_previous=previous,
            letterhead="",
        )
        for figure in _wrong_figures(closed, ours):
            if figure == "chain_previous" and not previous:
                continue
            yield Text("{name} reports another {figure} than its records give", name=name, figure=figure)
        if closed.kind == "year":
            self._passed = [z for z in self._passed if z not in closures]


def _wrong_figures(closed: CalendarClosed, ours: CalendarReport) -> Iterator[str]:
    stored, expected = msgspec.json.decode(closed.body, type=dict[str, Any]), as_in_json(ours)
    yield from (figure for figure in _FIGURES if stored.get(figure) != expected[figure])


def as_in_json(report: msgspec.Struct) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(report), type=dict[str, Any])
