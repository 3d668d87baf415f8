"""Sales as a screen shows them, from a real ledger."""

import sqlite3
from pathlib import Path

import pytest
from support.ledgers.ledger import START, invoice, opened_till
from support.ledgers.worker import worker_of

from daemon.core.clock import DAY
from daemon.core.ledger.book import Book, Tally
from daemon.store.decisions import DecisionNote
from daemon.store.tables.book.totals import tally_between
from daemon.usecases.reports import report
from daemon.usecases.reports.report import HOUR, Sales, articles_report, latest, sales_between, totals_by_hour

EVER = 1 << 53


def figures(found: Sales) -> tuple[int, ...]:
    return found.count, found.total, found.credits, found.credited, found.average


@pytest.mark.parametrize("is_brought_in", [True, False])
async def test_sales_to_the_last_one_whether_or_not_a_tick_has_come(tmp_path: Path, is_brought_in: bool) -> None:
    """Net of credit notes; what failed is nothing; the average is of what was sold, halves up, and none of nothing."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (store, till):
        worker = worker_of(till)
        assert figures(await sales_between(worker, 0, EVER)) == (0, 0, 0, 0, 0)
        first = await till.sell(1000)
        await till.sell(2001)
        await till.certify(invoice("C-1", type_="FA", amounts=(("B", 500),), reference="EL02000015-1-1"))
        await till.fail(invoice("X-1"))
        if is_brought_in:
            await store.ledger.aggregate(till.book)
        found = await sales_between(worker, 0, EVER)
        assert figures(found) == (2, 2501, 1, 500, 1501)
        assert [(each.method, each.amount) for each in found.payments] == [("E", 2501)]
        at = first.ended_at
        assert figures(await sales_between(worker, at, at + 1))[:2] == (1, 1000)
        assert figures(await sales_between(worker, at + 1, EVER))[:2] == (1, 1501)
        assert [record.number for record in await latest(worker, 2)] == ["X-1", "C-1"]


@pytest.mark.parametrize("is_brought_in", [True, False])
async def test_what_was_taken_over_from_the_machine_is_in_no_report(tmp_path: Path, is_brought_in: bool) -> None:
    """Its lines are not known: the screen does not show it until the tick, and the report of articles counts what X counts."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (store, till):
        await till.sell(1000)
        foreign = invoice("FOREIGN-1")
        till.word(foreign)
        note = DecisionNote("looked", till.at)
        await store.decisions.write(store.decisions.adopt, till.book, till.state(foreign), unexplained=1, note=note)
        if is_brought_in:
            await store.ledger.aggregate(till.book)
        worker = worker_of(till)
        assert figures(await sales_between(worker, 0, EVER))[:2] == (1, 1000)
        assert sum(await totals_by_hour(worker, START, 2, {})) == 1000
        await store.ledger.aggregate(till.book)
        sold = await articles_report(worker, 0, START + DAY)
        assert (sold.certs_count, sold.total_ttc) == ((await report.x_report(worker)).certs_count, 1000)


@pytest.mark.parametrize("is_brought_in", [True, False])
async def test_hour_by_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_brought_in: bool) -> None:
    """Each in its own; what is to come is not asked for, and what is not long over or has no tick yet is looked at again."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (store, till):
        worker = worker_of(till)
        expected: dict[tuple[int, int], int] = {}
        for total, hours in ((100, 1), (20, 2), (3, 0)):
            await till.sell(total)
            till.at += hours * HOUR
        if is_brought_in:
            await store.ledger.aggregate(till.book)
        assert await totals_by_hour(worker, START, 6, expected) == [100, 20, 0, 3, 0, 0]
        remembered = [START, START + HOUR] if is_brought_in else []
        assert sorted(expected) == [(till.book.id, at) for at in remembered]
        calls: list[int] = []

        def counted(connection: sqlite3.Connection, book: Book, start: int, end: int) -> Tally:
            calls.append(start)
            return tally_between(connection, book, start, end)

        monkeypatch.setattr(report, "tally_between", counted)
        await till.sell(7)
        assert await totals_by_hour(worker, START, 6, expected) == [100, 20, 0, 10, 0, 0]
        assert calls == [at for at in range(START, START + 4 * HOUR, HOUR) if at not in remembered]
        await store.ledger.aggregate(till.book)
        assert await totals_by_hour(worker, START, 6, expected) == [100, 20, 0, 10, 0, 0]
