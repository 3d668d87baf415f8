"""The aggregation tick: what it closes besides."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.ledgers.ledger import Till, opened
from support.ledgers.worker import worker_of

from daemon.core.audit import Call
from daemon.core.clock import millis
from daemon.core.ledger.book import Closure
from daemon.core.ledger.entries import CalendarClosed, CalendarKind
from daemon.core.machine.state import FiscalCounters
from daemon.store.tables.book.calendar_closures import calendar_list
from daemon.usecases.reports.close_period import close_period
from daemon.usecases.worker.aggregate import tick


def at(year: int, month: int) -> int:
    return millis(datetime(year, month, 10, tzinfo=UTC))


@pytest.mark.parametrize("is_retired", [False, True])
async def test_the_year_of_a_machine_with_which_nobody_sells_any_more_is_closed(
    tmp_path: Path, is_retired: bool
) -> None:
    """0047 art. 23: there is an archive of it. Of one in use the next sale closes it; and no empty months go on for ever."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        till = await Till.of(store)
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=at(2025, 11))
        till.at = at(2025, 11)
        await till.sell()
        await till.close()
        worker = worker_of(till)
        worker.is_retired = is_retired
        till.at = at(2026, 4)
        for _ in range(2):
            await tick(worker)

        def closed(kind: CalendarKind) -> list[str]:
            return [
                each.entry_of(CalendarClosed).period
                for each in store.ledger.peek(calendar_list, till.book, kind, limit=9)
            ]

        assert closed("month") == (["2025-11", "2025-12"] if is_retired else [])
        assert closed("year") == (["2025"] if is_retired else [])


async def test_a_z_without_the_machine_leaves_what_the_machine_says_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that a spare has replaced may come back while its book is closed: what it has counted since is not forgotten."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        till = await Till.of(store)
        await till.sell()
        worker = worker_of(till)
        worker.is_retired = True
        before, since = worker.counters, FiscalCounters(9, 5, 4)
        close = store.ledger.close_period

        async def close_and_come_back(*args: Any, **named: Any) -> Closure:
            closure = await close(*args, **named)
            worker.attempts.counters = since
            return closure

        monkeypatch.setattr(store.ledger, "close_period", close_and_come_back)
        closure = (await close_period(worker, Call("request-1"))).value
        assert (closure.counters, worker.counters) == (before, since)
