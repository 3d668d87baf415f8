"""X, A and the history: answers from totals that are kept up, never from the certifications of a period."""

from __future__ import annotations

from daemon.core import reports
from daemon.core.closure import Aggregate
from daemon.usecases.desk import Desk


async def _aggregate(desk: Desk) -> Aggregate:
    if desk.aggregate is None:
        desk.aggregate = await desk.ledger.aggregated(desk.book)
    return desk.aggregate


async def x_report(desk: Desk) -> reports.XReport:
    """The open period as the last tick left it."""
    return reports.x_report(desk.book, await _aggregate(desk), desk.now(), labels=desk.labels)


async def x_between(desk: Desk, start: int, end: int) -> reports.XReport:
    """A look at `start <= t < end` (ms) in the shape of X; it closes nothing and does not care where Z closures lie."""
    aggregate = await desk.ledger.aggregate_between(desk.book, start, end)
    return reports.x_report(desk.book, aggregate, end, labels=desk.labels)


async def a_report(desk: Desk, start: int, end: int) -> reports.AReport:
    """Certifications by their time in `start <= t < end` (ms), and the closures created in that range."""
    tally = await desk.ledger.tally_between(desk.book, start, end)
    closures = await desk.ledger.closures(desk.book, start=start, end=end, limit=None)
    return reports.a_report(desk.book, tally, closures, start, end, labels=desk.labels)


async def history(desk: Desk, start: int, end: int, after: int, limit: int) -> list[reports.HistoryRecord]:
    closures = await desk.ledger.closures(desk.book, start=start, end=end, after=after, limit=limit)
    return [reports.history_record(closure) for closure in closures]
