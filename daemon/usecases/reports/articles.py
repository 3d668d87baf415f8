"""Sales by article: the one report that reads the certifications themselves, as the totals do not hold their lines."""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from daemon.core.clock import millis
from daemon.core.ledger.entries import ReportGiven
from daemon.core.report.articles import Articles, ArticlesReport
from daemon.core.report.journal import Page
from daemon.usecases.reports.inspect import letterhead_of
from daemon.usecases.reports.journal import read_in_slices
from daemon.usecases.worker.machine_worker import MachineWorker

_EVER = 1 << 53


async def articles_report(worker: MachineWorker, start: int, end: int) -> ArticlesReport:
    """What was certified in `start <= t < end` (ms), of all that the last tick brought in, as in X and A (decision 13). InvalidRequest when
    there are more articles than one report holds."""
    articles = await _add_up(worker, start, end, 0)
    return await _report(worker, articles, start, end)


async def articles_since(worker: MachineWorker) -> tuple[Articles, ArticlesReport]:
    """What was certified since the last report of articles that was closed, or ever, and the totals that it is made of."""
    last = await worker.ledger.last_articles(worker.book)
    before = last.entry if last and isinstance(last.entry, ReportGiven) else ReportGiven("articles", "")
    articles = await _add_up(worker, before.upto_at, _EVER, before.upto_seq)
    start = _end_of(before) if last else articles.first_at or worker.now()
    return articles, await _report(worker, articles, start, worker.now())


def _end_of(closed: ReportGiven) -> int:
    """In ms."""
    return millis(datetime.fromisoformat(msgspec.json.decode(closed.body, type=ArticlesReport).to))


async def _add_up(worker: MachineWorker, start: int, end: int, after_seq: int) -> Articles:
    extent = await worker.journal.extent(worker.book)
    aggregated = await worker.ledger.aggregated(worker.book)
    extent = msgspec.structs.replace(extent, seq=aggregated.seq)
    articles = Articles()
    articles.upto_seq, articles.upto_at = aggregated.seq, aggregated.at
    async for part in read_in_slices(worker, Page(start, end, state="certified"), extent):
        articles.add(record for record, _ in part if record.seq > after_seq)
    return articles


async def _report(worker: MachineWorker, articles: Articles, start: int, end: int) -> ArticlesReport:
    letterhead = await letterhead_of(worker, worker.defaults.letterhead)
    # Sorting thousands is no business of the loop's.
    return await asyncio.to_thread(
        articles.report, worker.book, start, end, at=worker.now(), ifu=worker.ifu, letterhead=letterhead
    )
