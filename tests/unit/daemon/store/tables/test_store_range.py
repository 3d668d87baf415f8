"""What lies in a range of time, in the shape of a period (`aggregate_between`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.ledgers.ledger import MINUTE, START, Till, invoice, opened

from daemon.core.ledger.book import Aggregate
from daemon.core.machine.state import FiscalCounters
from daemon.store import Store
from daemon.store.tables.book.totals import aggregate_between

EVER = 1 << 50


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path / "ledger.sqlite3") as store:
        yield store


@pytest.fixture
async def till(store: Store) -> Till:
    return await Till.of(store)


async def look(till: Till, start: int, end: int) -> Aggregate:
    await till.store.ledger.aggregate(till.book)
    return await till.store.ledger.read(aggregate_between, till.book, start, end)


async def test_a_range_counts_its_own_and_knows_its_sales(till: Till) -> None:
    """Its first and last sale give the range of the FVC; a Z in the middle of it does not matter."""
    records = [await till.sell() for _ in range(3)]
    await till.close()
    records += [await till.sell() for _ in range(200)]
    found = await look(till, records[1].ended_at, records[150].ended_at)
    assert found.running["FV.n"] == 149
    assert (found.fvc_start, found.fvc_end) == (2, 150)
    assert (found.period_start, found.closed) == (records[1].ended_at, {})
    later = await look(till, records[100].ended_at, records[150].ended_at)
    assert (later.running["FV.n"], later.fvc_start, later.fvc_end) == (50, 101, 150)


async def test_the_ends_of_a_range(till: Till) -> None:
    """The start is inside, the end outside."""
    record = await till.sell()
    at = record.ended_at
    found = await look(till, at, at + 1)
    assert (found.running["FV.n"], found.fvc_start) == (1, 1)
    assert (await look(till, at + 1, at + 2)).running == {}
    assert (await look(till, at - 1, at)).running == {}


async def test_without_a_sale_both_ends_are_the_last_fvc_known(till: Till) -> None:
    """By certifications and closures before its end: none yet, a sale, and what a Z read on the machine."""
    first = await till.sell()
    credit = await till.certify(invoice("A-1", type_="FA", reference="RRR"))
    till.counters = FiscalCounters(9, 5, 1)
    closure = await till.close(unexplained=4)
    later = await till.sell()
    assert later.counters == FiscalCounters(10, 6, 1)
    for start, end, fvc in (
        (0, START, 0),
        (first.ended_at + 1, credit.ended_at + 1, 1),
        (credit.ended_at + 1, closure.created_at, 1),
        (closure.created_at, closure.created_at + MINUTE, 5),
        (later.ended_at + 1, EVER, 6),
    ):
        found = await look(till, start, end)
        assert (found.fvc_start, found.fvc_end) == (0, fvc), (start, end)


async def test_failed_attempts_and_credit_notes_are_no_sales(till: Till) -> None:
    """They are in the totals of the range, not at the ends of its FVC."""
    await till.fail(invoice("R-1"))
    sale = await till.sell()
    await till.certify(invoice("A-1", type_="EA", reference="RRR"))
    await till.fail(invoice("R-2"), "abandoned")
    found = await look(till, 0, EVER)
    assert found.running == {**found.running, "FV.n": 1, "EA.n": 1, "incomplete": 2}
    assert sale.counters is not None
    assert (found.fvc_start, found.fvc_end) == (1, 1)


async def test_nothing_is_ahead_of_the_tick(till: Till) -> None:
    """Decision 13: the range shows the same state as the totals."""
    await till.sell()
    await till.store.ledger.aggregate(till.book)
    await till.sell()
    found = await till.store.ledger.read(aggregate_between, till.book, 0, EVER)
    assert (found.running["FV.n"], found.fvc_end) == (1, 1)


async def test_books_do_not_mix(store: Store, till: Till) -> None:
    """The sandbox of the same NIM has a range of its own."""
    await till.sell()
    sandbox = await Till.of(store, mode="test")
    assert (await look(sandbox, 0, EVER)).running == {}


async def test_a_range_that_is_not_over_ends_with_the_machine_s_last_fvc(till: Till) -> None:
    """Somebody else's sale is in no total, and counts there; a range that ended before it does not know of it."""
    sale = await till.sell()
    await till.store.ledger.aggregate(till.book)
    till.word(invoice("somebody else's"))
    await till.store.ledger.reconcile(till.book, till.state(), unexplained=1, at=till.at)
    for end, fvc in ((sale.ended_at, 0), (EVER, 2)):
        found = await look(till, sale.ended_at - 1 if end == sale.ended_at else sale.ended_at + 1, end)
        assert (found.fvc_start, found.fvc_end) == (0, fvc)
