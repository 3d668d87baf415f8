"""Sales by article: the one report that reads the certifications themselves, as the totals do not hold their lines."""

from __future__ import annotations

import asyncio

import msgspec

from daemon.core.report.articles import Articles, ArticlesReport
from daemon.core.report.journal import Page
from daemon.usecases.reports.journal import read_in_slices
from daemon.usecases.reports.letterhead import letterhead_of
from daemon.usecases.worker.machine_worker import MachineWorker


async def articles_report(worker: MachineWorker, start: int, end: int) -> ArticlesReport:
    """What was certified in `start <= t < end` (ms), of all that the last tick brought in, as in X and A (decision 13). InvalidRequest when
    there are more articles than one report holds."""
    extent = await worker.journal.extent(worker.book)
    extent = msgspec.structs.replace(extent, seq=(await worker.ledger.aggregated(worker.book)).seq)
    articles = Articles()
    async for part in read_in_slices(worker, Page(start, end, state="certified"), extent):
        articles.add(record for record, _ in part)
    letterhead = await letterhead_of(worker, worker.defaults.letterhead)
    # Sorting thousands is no business of the loop's.
    return await asyncio.to_thread(
        articles.report, worker.book, start, end, at=worker.now(), ifu=worker.ifu, letterhead=letterhead
    )
