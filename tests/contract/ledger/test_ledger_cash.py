"""Cash put into the drawer and taken out: entries of the book's chain, each in exactly one Z (decision 34)."""

import json
from functools import partial
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import MINUTE, Till, opened_till, query

from daemon.core.audit import Actor, Call
from daemon.core.clock import DAY
from daemon.core.errors import TooManyActs
from daemon.core.ledger.entries import CashMove, CashTotal, Placed, ReportAct
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import acts
from daemon.store.tables.book.acts import cash_between, cash_moves, cash_of_period
from daemon.store.tables.book.entries import hours_ahead, repair_time


def deposit(amount: int) -> CashMove:
    return CashMove("deposit", amount, "float", "1", "Caisse 1")


def withdrawal(amount: int) -> CashMove:
    return CashMove("withdrawal", amount, "bank", "1", "Caisse 1")


async def move(till: Till, what: CashMove, *, later: int = MINUTE, key: str = "") -> bytes:
    till.at += later
    return await till.store.ledger.write(
        acts.move_cash,
        till.book,
        what,
        at=till.at,
        answer=lambda placed: str(placed.id).encode(),
        call=Call(key=key, fingerprint=b"same"),
    )


async def drawer_of_open_period(till: Till) -> CashTotal:
    aggregate = await till.store.ledger.aggregate(till.book)
    return till.store.ledger.peek(cash_of_period, till.book, aggregate.period_start)


async def test_what_was_counted_in_the_drawer_is_in_the_audit_trail_of_the_z(store: Store, till: Till) -> None:
    """Where somebody has counted it; the Z says by how much it is not what should be there."""
    await move(till, deposit(20_000))
    close = partial(store.ledger.close_period, till.book, counters=till.counters, unexplained=0)
    closed = [await close(at=till.at, counted=counted) for counted in (15_000, None)]
    found = [json.loads(closure.body).get("cash_count") for closure in closed]
    assert found == [{"counted": 15_000, "difference": -5_000}, None]
    trail = [entry.detail.get("counted") for entry in await store.ledger.read(newest_entries, 2)]
    assert trail == [None, "15000"]


async def test_each_movement_is_in_exactly_one_z(till: Till, path: Path) -> None:
    """Before anything was certified, between sales, in the very millisecond before a Z and in the one after it."""
    await move(till, deposit(20_000))
    assert await drawer_of_open_period(till) == CashTotal(20_000, 0)
    await till.sell(15_000)
    await move(till, withdrawal(5_000))
    till.at += MINUTE
    await move(till, deposit(1), later=0)
    till.at -= MINUTE  # `close` adds it again: the same millisecond
    first = await till.close()
    await move(till, deposit(7), later=0)
    assert await drawer_of_open_period(till) == CashTotal(7, 0)
    second = await till.close()
    third = await till.close()
    cash = [json.loads(closure.body)["cash"] for closure in (first, second, third)]
    assert cash == [
        {"deposits": 20_001, "withdrawals": 5_000, "expected": 30_001},
        {"deposits": 7, "withdrawals": 0, "expected": 7},
        {"deposits": 0, "withdrawals": 0, "expected": 0},
    ]
    assert verify(path).problems == ()


async def test_movements_are_listed_by_time(store: Store, till: Till) -> None:
    """A range counts what lies in it; a page goes on where the last one ended."""
    for amount in (1, 2, 3):
        await move(till, deposit(amount))
    start, end = till.at - MINUTE, till.at + 1
    assert await store.ledger.read(cash_between, till.book, start, end) == CashTotal(5, 0)
    listed = await store.ledger.read(cash_moves, till.book, start=0, end=end, after=0, limit=2)
    rest = await store.ledger.read(cash_moves, till.book, start=0, end=end, after=listed[-1].id, limit=2)
    assert [_amount(placed) for placed in (*listed, *rest)] == [1, 2, 3]


def _amount(placed: Placed) -> int:
    assert isinstance(placed.entry, CashMove)
    return placed.entry.amount


async def test_a_movement_of_a_wrong_clock_is_set_right_with_its_book(store: Store, till: Till, path: Path) -> None:
    """It counts at the repaired time, and the chain still holds what was written."""
    await till.sell()
    till.at += 3653 * DAY
    await move(till, deposit(9))
    await till.sell()
    await store.ledger.aggregate(till.book)
    right = till.at - 3653 * DAY + MINUTE
    await store.decisions.write(
        repair_time, till.book, now=right, ahead=hours_ahead(till.at, right), reason="wrong year"
    )
    assert await store.ledger.read(cash_between, till.book, 0, right + 1) == CashTotal(9, 0)
    assert query(path, "SELECT count(*) FROM entry WHERE chained_at IS NOT NULL") == [(1,)]
    assert verify(path).problems == ()


class Noting:
    """Movements as a key sends them; `box_at` is the box's clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.box_at = 1_765_000_000_000

    async def note(self, count: int, by: str = "key:3", *, key: str = "") -> int:
        """How long the first of them that was refused has to wait, in seconds; 0 when all were taken."""
        async with opened_till(self.path) as (store, till):
            for at in range(count):
                call = Call(key=key and f"{key}{at}", fingerprint=b"same", by=Actor(by))
                try:
                    await store.ledger.write(
                        acts.move_cash,
                        till.book,
                        deposit(1),
                        at=till.at,
                        answer=lambda _: b"x",
                        call=call,
                        limit=acts.ActLimit(60, self.box_at),
                    )
                except TooManyActs as refused:
                    return refused.retry_after
                self.box_at += 1000
        return 0


async def test_cash_is_moved_sixty_times_an_hour_at_the_most(path: Path) -> None:
    """By one key or one person, counted in the book: a restart begins no new hour, and each other key or person has its own."""
    noting = Noting(path)
    assert await noting.note(30) == 0
    assert await noting.note(30) == 0
    assert await noting.note(1) == 3600 - 60
    assert await noting.note(1) == 3600 - 60
    assert await noting.note(60, "user:awa") == 0
    assert await noting.note(1, "user:awa") == 3600 - 60
    noting.box_at += 3600_000 - 121_000
    assert await noting.note(1) == 1
    noting.box_at += 1000
    assert await noting.note(1) == 0
    assert verify(path).clean


async def test_each_kind_of_act_has_a_limit_of_its_own(store: Store, till: Till) -> None:
    """A report on paper is stored whole, and a duplicate is an entry: who may only look must not fill the disk. Who has printed much may still move cash."""
    call, limit = Call(by=Actor("key:3")), acts.ActLimit(2, 1_765_000_000_000)

    async def give() -> None:
        act = ReportAct("X", "{}")
        await store.ledger.write(acts.insert_report, till.book, act, at=till.at, call=call, limit=limit)

    async def copy() -> int:
        return await store.ledger.write(acts.make_copy, till.book, "CODE", "F-1", at=till.at, call=call, limit=limit)

    for act in (give, copy):
        await act()
        await act()
        with pytest.raises(TooManyActs) as refused:
            await act()
        assert refused.value.retry_after == 3600
    await store.ledger.write(
        acts.move_cash, till.book, deposit(1), at=till.at, answer=lambda _: b"x", call=call, limit=limit
    )
    other = msgspec.structs.replace(call, by=Actor("key:4"))
    await store.ledger.write(acts.make_copy, till.book, "CODE", "F-1", at=till.at, call=other, limit=limit)
    assert store.ledger.peek(acts.copies, till.book, "CODE") == 3


async def test_a_clock_that_was_ahead_keeps_nobody_from_moving_cash(path: Path) -> None:
    """The book's time stands still until that moment has passed; the hour is one of the box's clock, and a movement of the future is not within it."""
    noting = Noting(path)
    noting.box_at += 30 * DAY
    assert await noting.note(60) == 0
    noting.box_at -= 30 * DAY
    assert await noting.note(60) == 0
    assert await noting.note(1) == 3600 - 60


async def test_what_is_refused_leaves_nothing(path: Path) -> None:
    """Neither an entry nor what its Idempotency-Key stands for: the same request is noted later."""
    noting = Noting(path)
    await noting.note(60)
    assert await noting.note(1, key="late") > 0
    assert query(path, "SELECT count(*) FROM entry") == [(60,)]
    assert query(path, "SELECT count(*) FROM idempotency") == [(0,)]
    noting.box_at += 3600_000
    assert await noting.note(1, key="late") == 0
