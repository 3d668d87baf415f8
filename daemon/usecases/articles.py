"""Sales by article: the one report that reads the certifications themselves, as the totals do not hold their lines."""

from __future__ import annotations

from daemon.core.articles import Articles, ArticlesReport
from daemon.core.journal import Page
from daemon.usecases.desk import Desk
from daemon.usecases.journal import walk


async def articles_report(desk: Desk, start: int, end: int) -> ArticlesReport:
    """What was certified in `start <= t < end` (ms), of all that the last tick brought in, as in X and A (decision 13)."""
    last_seq = (await desk.ledger.aggregated(desk.book)).seq
    articles = Articles()
    async for part in walk(desk, Page(start, end, state="certified")):
        articles.add(record for record, _ in part if record.seq <= last_seq)
    return articles.report(desk.book, start, end)
