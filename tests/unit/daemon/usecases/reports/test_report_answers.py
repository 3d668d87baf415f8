"""X, A and sales by article, from a real ledger: what each of them counts."""

from pathlib import Path

import pytest
from support.ledgers.ledger import MINUTE, START, opened_till
from support.ledgers.worker import worker_of

from daemon.core.audit import INTERNAL
from daemon.core.clock import millis_text
from daemon.core.errors import InvalidRequest
from daemon.usecases.reports.close_period import close_calendar
from daemon.usecases.reports.report import a_report, articles_report, articles_since, x_between, x_report

EVER = START + 365 * 24 * 60 * MINUTE


async def test_each_report_has_what_is_its_own(tmp_path: Path) -> None:
    """X the open period as of the last tick; a look at a range whatever Z lie in it; A with the Z that were made in the range."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (store, till):
        worker = worker_of(till)
        first = await till.sell(1000)
        await till.close()
        second = await till.sell(2000)
        await store.ledger.aggregate(till.book)
        await till.sell(4000)
        x = await x_report(worker)
        assert (x.total_ttc, x.certs_count) == (2000, 1)
        range_ = first.ended_at, second.ended_at + 1
        between = await x_between(worker, *range_)
        assert (between.total_ttc, between.certs_count) == (3000, 2)
        assert (await x_between(worker, first.ended_at + 1, second.ended_at)).certs_count == 0
        a = await a_report(worker, *range_)
        assert (a.total_ttc, [each.z_number for each in a.closures]) == (3000, [1])
        assert (await articles_since(worker))[1].from_ == millis_text(first.ended_at)
        for kind, period in (("month", "2026"), ("month", "2026-13"), ("year", "2026-01")):
            with pytest.raises(InvalidRequest):
                await close_calendar(worker, kind, period, INTERNAL)
        articles = await articles_report(worker, 0, EVER)
        assert sum(each.amount for each in articles.articles) == 3000
