"""Sales as a screen shows them: to the last certification, not to the last tick, and hour by hour."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from daemon.core.invoice.invoice import SALES
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Tally
from daemon.core.ledger.tally import add, contribution
from daemon.core.report.fiscal_reports import a_report
from daemon.core.report.journal import Page
from daemon.core.report.report_parts import GroupTotal, PaymentTotal
from daemon.usecases.reports.report import net_total
from daemon.usecases.worker.machine_worker import MachineWorker

HOUR = 3_600_000
NOT_YET = 200
"""Records at the most that the next tick will bring in: a tick comes every two seconds."""
EVER = 1 << 53
CACHE_HOURS = 24 * 7 * 3


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
        return (self.total + self.credited) // self.count if self.count else 0


async def sales_between(worker: MachineWorker, start: int, end: int) -> Sales:
    """What was certified in `start <= t < end` (ms), with what no tick has brought in yet."""
    tally = await worker.ledger.tally_between(worker.book, start, end)
    for record in await _not_yet(worker, start, end):
        tally = add(tally, contribution(record))
    return _sales(worker, tally)


async def totals_by_hour(worker: MachineWorker, start: int, hours: int, cache: dict[tuple[int, int], int]) -> list[int]:
    """The net total of each of so many hours from `start` (ms). Hours that are over, and of which a tick had brought in everything, are
    remembered in `cache`, by book and time."""
    now = worker.now()
    end = start + hours * HOUR
    # Asked before the totals and behind them: what a tick brings in between may be in neither, and what was looked at then is not remembered.
    unsure = {(record.ended_at - start) // HOUR for record in await _not_yet(worker, start, end)}
    found = []
    for number, at in enumerate(range(start, end, HOUR)):
        key = (worker.book.id, at)
        if at > now:
            found.append(0)
        elif key in cache:
            found.append(cache[key])
        else:
            found.append(net_total(await worker.ledger.tally_between(worker.book, at, at + HOUR)))
            if at + 2 * HOUR < now and number not in unsure:
                cache[key] = found[-1]
    while len(cache) > CACHE_HOURS:
        del cache[next(iter(cache))]
    for record in await _not_yet(worker, start, end):
        found[(record.ended_at - start) // HOUR] += net_total(contribution(record))
    return found


async def latest(worker: MachineWorker, limit: int) -> Sequence[Record]:
    """Newest first, to the last one."""
    return await worker.journal.page(worker.book, Page(-EVER, EVER, limit=limit))


async def _not_yet(worker: MachineWorker, start: int, end: int) -> Sequence[Record]:
    seq = (await worker.ledger.aggregated(worker.book)).seq
    records = await worker.journal.page(worker.book, Page(start, end, after_seq=seq, limit=NOT_YET))
    return [record for record in records if record.state != "damaged"]


def _sales(worker: MachineWorker, tally: Tally) -> Sales:
    report = a_report(worker.book, tally, (), 0, 0, labels=worker.labels)
    return Sales(
        count=sum(entry.count for entry in report.by_type if entry.invoice_type in SALES),
        total=report.total_ttc,
        credits=report.credit_notes.count,
        credited=report.credit_notes.total,
        groups=report.by_group,
        payments=report.by_payment,
    )
