"""X, A and the history: answers from running totals, never from the certifications of a period. Sales by article: the
one report that reads the certifications themselves, as the totals do not hold their lines.

Sales as a screen shows them: to the last certification, not to the last tick, and hour by hour."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from common.numbers import parse_integer
from common.wire.closure import CashDrawer, GroupTotal, PaymentTotal
from daemon.core.clock import HOUR, millis
from daemon.core.invoice.invoice import CREDITS, SALES
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Aggregate, Closure, Tally
from daemon.core.ledger.entries import ReportAct
from daemon.core.ledger.tally import add, contribution
from daemon.core.money import divide_half_up
from daemon.core.report import fiscal_reports
from daemon.core.report.articles import Articles, ArticlesReport
from daemon.core.report.journal import Page
from daemon.core.report.ranges import EVER
from daemon.store.tables.book import deferred, take_overs
from daemon.store.tables.book.acts import cash_between, cash_of_period, last_closed
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.closures import closures_between, find_closure, find_closure_by_id
from daemon.store.tables.book.totals import aggregate_between, isfs_between, isfs_of_period, tally_between
from daemon.store.tables.journal import extent as read_extent
from daemon.usecases.reports.inspect import letterhead_of
from daemon.usecases.reports.journal import ReportSource, read_in_slices
from daemon.usecases.worker.machine_worker import MachineWorker

NOT_YET = 200
"""Records at the most that the next tick will bring in: a tick comes every two seconds."""
CACHE_HOURS = 24 * 7 * 3


async def _aggregate(worker: ReportSource) -> Aggregate:
    if worker.aggregate is None:
        worker.aggregate = await worker.ledger.aggregated(worker.book)
    return worker.aggregate


async def period_start(worker: ReportSource) -> int:
    """Since when (ms) the period is open, which is all that a seller may look back on; 0 in a book without a Z and
    certifications."""
    return (await _aggregate(worker)).period_start


async def last_z(worker: MachineWorker) -> int:
    """The number of the last Z, 0 for none; reports read afterwards are of the period after it, or of a later one."""
    number = worker.ledger.peek(book_state, worker.book).z_number
    worker.aggregate = await worker.ledger.aggregated(worker.book)
    return number


async def x_report(worker: ReportSource) -> fiscal_reports.XReport:
    """The open period as the last tick left it."""
    aggregate = await _aggregate(worker)
    cash = worker.ledger.peek(cash_of_period, worker.book, aggregate.period_start)
    isfs = await worker.ledger.read(isfs_of_period, worker.book)
    waiting = (await worker.ledger.read(deferred.backlog, worker.book)).waiting
    now = worker.now()
    stands_for = worker.ledger.peek(take_overs.stands_for, worker.book, aggregate.period_start or now, now)
    return fiscal_reports.x_report(
        worker.book, aggregate, now, cash=cash, labels=worker.labels, isfs=isfs, waiting=waiting, stands_for=stands_for
    )


async def x_between(worker: ReportSource, start: int, end: int) -> fiscal_reports.XReport:
    """A look at `start <= t < end` (ms) in the shape of X; it closes nothing and does not care where Z closures lie."""
    aggregate = await worker.ledger.read(aggregate_between, worker.book, start, end)
    return fiscal_reports.x_report(worker.book, aggregate, end, **await _beside(worker, start, end))


async def a_report(worker: ReportSource, start: int, end: int) -> fiscal_reports.AReport:
    """Certifications by their time in `start <= t < end` (ms), and the closures created in that range."""
    tally = await worker.ledger.read(tally_between, worker.book, start, end)
    closures = await worker.ledger.read(closures_between, worker.book, start=start, end=end)
    return fiscal_reports.a_report(worker.book, tally, closures, start, end, **await _beside(worker, start, end))


async def _beside(worker: ReportSource, start: int, end: int) -> dict[str, Any]:
    """What those two have beside their totals."""
    return {
        "cash": await worker.ledger.read(cash_between, worker.book, start, end),
        "isfs": await worker.ledger.read(isfs_between, worker.book, start, end),
        "labels": worker.labels,
        "stands_for": worker.ledger.peek(take_overs.stands_for, worker.book, start, end),
    }


async def closure(worker: ReportSource, reference: str) -> Closure:
    """A stored Z by its number or its `report_id`, which may be of the pair's other machine; NotFound."""
    if (number := parse_integer(reference)) is not None:
        return await worker.ledger.read(find_closure, worker.book, number)
    return await worker.ledger.read(find_closure_by_id, worker.book, reference)


async def history(
    worker: ReportSource, start: int, end: int, after: int, limit: int
) -> list[fiscal_reports.HistoryRecord]:
    closures = await worker.ledger.read(closures_between, worker.book, start=start, end=end, after=after, limit=limit)
    return [fiscal_reports.history_record(closure) for closure in closures]


def net_total(tally: Tally) -> int:
    """Sales less credit notes, whole XOF."""
    sums = Counter(tally)  # what does not occur is 0
    return sum(sums[f"{kind}.ttc"] for kind in SALES) - sum(sums[f"{kind}.ttc"] for kind in CREDITS)


async def articles_report(worker: MachineWorker, start: int, end: int) -> ArticlesReport:
    """Certified articles in `start <= t < end` (ms), as of the last tick like X and A (decision 13). InvalidRequest if
    there are too many articles for one report."""
    articles = await _add_up(worker, start, end, 0)
    return await _report(worker, articles, start, end)


async def articles_since(worker: MachineWorker) -> tuple[Articles, ArticlesReport]:
    """Articles certified since the last closed report of articles, or ever; with the report's sums."""
    last = await worker.ledger.read(last_closed, worker.book)
    before = last.entry if last and isinstance(last.entry, ReportAct) else ReportAct("articles", "")
    articles = await _add_up(worker, *EVER, before.upto_seq)
    # A time that was repaired since is that of the entry.
    start = articles.first_at or worker.now()
    if last:
        until = msgspec.json.decode(before.body, type=ArticlesReport).to
        start = min(millis(datetime.fromisoformat(until)), last.at)
    return articles, await _report(worker, articles, start, worker.now())


async def _add_up(worker: MachineWorker, start: int, end: int, after_seq: int) -> Articles:
    extent = await worker.journal.read(read_extent, worker.book)
    aggregated = await worker.ledger.aggregated(worker.book)
    extent = msgspec.structs.replace(extent, seq=aggregated.seq)
    articles = Articles()
    articles.upto_seq = aggregated.seq
    async for part in read_in_slices(worker, Page(start, end, state="certified", after_seq=after_seq), extent):
        articles.add(record for record, _ in part)
    return articles


async def _report(worker: MachineWorker, articles: Articles, start: int, end: int) -> ArticlesReport:
    letterhead = await letterhead_of(worker.ledger, worker.book, worker.defaults.letterhead)
    # Sorting thousands is no business of the loop's.
    return await asyncio.to_thread(
        articles.report, worker.book, start, end, at=worker.now(), ifu=worker.ifu, letterhead=letterhead
    )


class Sales(msgspec.Struct, frozen=True):
    """Whole XOF; groups and payments are net of credit notes."""

    count: int
    """of sales"""
    groups: tuple[GroupTotal, ...]
    total: int
    """net of credit notes"""
    payments: tuple[PaymentTotal, ...]
    credits: int
    """how many credit notes"""
    credited: int

    @property
    def average(self) -> int:
        return divide_half_up(self.total + self.credited, self.count) if self.count else 0


async def sales_between(worker: MachineWorker, start: int, end: int) -> Sales:
    """Sales of the machine and its spare in `start <= t < end` (ms), including those after the last tick."""
    tally: Tally = {}
    for each in worker.pair:
        tally = add(tally, await each.ledger.read(tally_between, each.book, start, end))
        for record in await _not_yet(each, start, end):
            tally = add(tally, contribution(record))
    return _sales(worker, tally)


async def totals_by_hour(worker: MachineWorker, start: int, hours: int, cache: dict[tuple[int, int], int]) -> list[int]:
    """The net total of each hour from `start` (ms); completed hours go into `cache`, by book and time."""
    now = worker.now()
    end = start + hours * HOUR
    # Read before and after the totals: a tick in between may move a record out of both, so such an hour is not cached.
    unsure = {(record.ended_at - start) // HOUR for record in await _not_yet(worker, start, end)}
    found = []
    for number, at in enumerate(range(start, end, HOUR)):
        key = (worker.book.id, at)
        if at > now:
            found.append(0)
        elif key in cache:
            found.append(cache[key])
        else:
            found.append(net_total(await worker.ledger.read(tally_between, worker.book, at, at + HOUR)))
            if at + 2 * HOUR < now and number not in unsure:
                cache[key] = found[-1]
    while len(cache) > CACHE_HOURS:
        del cache[next(iter(cache))]
    for record in await _not_yet(worker, start, end):
        found[(record.ended_at - start) // HOUR] += net_total(contribution(record))
    return found


async def open_periods(worker: MachineWorker) -> list[fiscal_reports.XReport]:
    """Of the machine and of its spare, whose days end together."""
    return [await x_report(each) for each in worker.pair]


def drawer(periods: Sequence[fiscal_reports.XReport]) -> CashDrawer:
    """There is one, whichever machine certifies."""
    cash = [msgspec.structs.astuple(each.cash) for each in periods if each.cash]
    return CashDrawer(*map(sum, zip(*cash, strict=True)))


async def latest(worker: MachineWorker, limit: int) -> Sequence[Record]:
    """Newest first, to the last one."""
    return await worker.journal.page(worker.book, Page(-EVER[1], EVER[1], limit=limit))


async def _not_yet(worker: MachineWorker, start: int, end: int) -> Sequence[Record]:
    seq = (await worker.ledger.aggregated(worker.book)).seq
    records = await worker.journal.page(worker.book, Page(start, end, after_seq=seq, limit=NOT_YET))
    return [record for record in records if record.state != "damaged"]


def _sales(worker: MachineWorker, tally: Tally) -> Sales:
    report = fiscal_reports.a_report(worker.book, tally, (), 0, 0, labels=worker.labels)
    return Sales(
        count=sum(entry.count for entry in report.by_type if entry.invoice_type in SALES),
        total=report.total_ttc,
        credits=report.credit_notes.count,
        credited=report.credit_notes.total,
        groups=report.by_group,
        payments=report.by_payment,
    )
