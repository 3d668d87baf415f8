"""A book that a wrong clock has moved ahead, and what sets it right again (decision 21)."""

from pathlib import Path

import pytest
from support.ledgers.ledger import MINUTE, START, Till, opened, opened_till, query, tamper

from daemon.core.clock import DAY, HOUR
from daemon.core.errors import NotFound
from daemon.core.ledger.entries import TimeRepair
from daemon.core.report.receipt import receipt
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.closures import closures_between
from daemon.store.tables.book.entries import repair_time
from daemon.store.tables.book.totals import tally_between

YEARS = 3653 * DAY


async def poison(path: Path, ahead: int = YEARS) -> Till:
    """Three sales and a Z with the right clock, then sales, a Z and sales with one that is ahead; `at` is the right time."""
    async with opened_till(path) as (store, till):
        for _ in range(3):
            await till.sell()
        await till.close()
        till.at += ahead
        for _ in range(70):
            await till.sell()
        await till.close()
        await till.sell()
        await store.ledger.aggregate(till.book)
        till.at -= ahead
    return till


@pytest.mark.parametrize("ahead", [YEARS, 5 * HOUR])
async def test_a_book_that_was_moved_ahead_is_set_right(path: Path, ahead: int) -> None:
    """Today's report counts today's sales again, those before the repair and those after it; `verify` finds nothing, and the hashes hold."""
    till = await poison(path, ahead)
    right = till.at + 10 * MINUTE
    async with opened(path) as store:
        hashes = query(path, "SELECT seq, hash FROM certification ORDER BY seq")
        await store.decisions.write(repair_time, till.book, now=right, ahead=ahead, reason="wrong year")
        state = store.ledger.peek(book_state, till.book)
        assert (state.last_at, state.time_repairs) == (right, 1)
        tally = await store.ledger.read(tally_between, till.book, START, right + 1)
        assert tally["FV.n"] == 74
        assert query(path, "SELECT seq, hash FROM certification ORDER BY seq") == hashes
        till.store, till.at = store, right
        await till.sell()
        closure = await till.close()
        assert closure.period_start < right < closure.created_at
        closures = await store.ledger.read(closures_between, till.book, start=START, end=closure.created_at + 1)
        assert [closure.z_number for closure in closures] == [1, 2, 3]
        await store.ledger.aggregate(till.book)
    assert verify(path).problems == ()


async def test_a_receipt_keeps_the_time_that_was_told(path: Path) -> None:
    """Found by the simulation: a till that asks again after the repair gets the bytes that it got at first."""
    till = await poison(path)
    async with opened(path) as store:
        first = [receipt(store.ledger.peek(attempts.find_record, till.book, at)) for at in (1, 4, 74)]
        await store.decisions.write(repair_time, till.book, now=till.at + HOUR, ahead=YEARS, reason="x")
        assert [receipt(store.ledger.peek(attempts.find_record, till.book, at)) for at in (1, 4, 74)] == first


async def test_a_book_that_is_right_is_left_alone(store: Store, till: Till) -> None:
    """NotFound, and nothing written."""
    await till.sell()
    for later in (0, 1):
        with pytest.raises(NotFound):
            await store.decisions.write(repair_time, till.book, now=till.at + later, ahead=HOUR, reason="x")
    assert (store.ledger.peek(book_state, till.book)).time_repairs == 0


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE certification SET ended_at = ended_at - 1000 WHERE seq = 20",
        "UPDATE certification SET chained_at = NULL WHERE seq = 20",
        "UPDATE certification SET chained_at = ended_at, ended_at = ended_at - 5 WHERE seq = 2",
        "UPDATE entry SET body = cast(replace(body, '315619200000', '315619200001') AS BLOB)",
        "UPDATE entry SET chained_at = at, at = at - 5",
        "DELETE FROM entry",
    ],
)
async def test_verify_computes_the_repair_again(path: Path, change: str) -> None:
    """Another time, another repair or none: each is found."""
    till = await poison(path)
    async with opened(path) as store:
        await store.decisions.write(repair_time, till.book, now=till.at + HOUR, ahead=YEARS, reason="x")
    tamper(path, change)
    assert not verify(path).clean


async def test_the_last_day_of_the_calendar_can_be_ticked_and_repaired(path: Path) -> None:
    """A clock in the year 9999: the tick and the Z go on, and so does the repair."""
    till = await poison(path, 253_402_290_000_000 - START - 10 * DAY)
    async with opened(path) as store:
        till.store = store
        await till.close()
        await store.decisions.write(
            repair_time, till.book, now=till.at + HOUR, ahead=253_402_290_000_000 - START - 10 * DAY, reason="x"
        )
        await store.ledger.aggregate(till.book)
    assert verify(path).problems == ()


async def test_a_repair_says_what_it_concerns(store: Store, till: Till, path: Path) -> None:
    """Where only cash was moved with the wrong clock: no record that is there and no Z, but all that would come after them."""
    for _ in range(3):
        last = await till.sell()
    till.at += YEARS
    await till.move_cash()
    now = last.ended_at + MINUTE
    placed = await store.decisions.write(repair_time, till.book, now=now, ahead=YEARS, reason="wrong year")
    assert placed.entry == TimeRepair(4, 1, YEARS, last.ended_at, "wrong year")
    assert (placed.at, (store.ledger.peek(book_state, till.book)).time_repairs) == (now, 1)
    assert verify(path).problems == ()
