"""Sales that wait go one by one between the tills: of a hundred tills' sales, one at the most finds one of them at the machine."""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, repeat
from types import MappingProxyType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledgers.ledger import invoice

from daemon.core.clock import HOUR
from daemon.core.errors import MachineNonsense, MachineOffline
from daemon.core.invoice.invoice import Invoice
from daemon.core.ledger.deferred import AMBER, DeferredBacklog, DeferredSale
from daemon.core.machine.state import FiscalCounters
from daemon.usecases.deferred import certify_waiting
from daemon.usecases.deferred.certify_waiting import (
    FACTOR,
    IN_A_RUSH,
    LONGEST,
    LOOK,
    PAUSE,
    SPACING,
    SPACING_LATE,
    UNMET,
    SalesThatWait,
)

TOOK = 0.16
"""Seconds of a sale at the machine."""
QUEUE = 10_000


@dataclass
class FakeShop:
    """The worker; `gaps`: seconds from the end of a till's sale to its next. A sale that is over has the next arrival in its place."""

    gaps: Iterator[float]
    at: float = 0.0
    free_at: float = 0.0
    sold: int = 0
    met: int = 0
    worked_off: int = 0

    connected, obstacle, closing, is_in_use = True, "", False, True
    book, names, rates = SimpleNamespace(mode="live"), MappingProxyType({"nim": "EL02000015-1"}), MappingProxyType({})

    def __post_init__(self) -> None:
        self.arrives = self.at + next(self.gaps)

    @property
    def queue(self) -> SimpleNamespace:
        return SimpleNamespace(invoices=int(self.arrives <= self.at))

    @property
    def counters(self) -> FiscalCounters:
        count = self.sold + self.worked_off
        return FiscalCounters(count, count, 0)

    def now(self) -> int:
        return round(self.at * 1000)

    def go_on(self, until: float) -> None:
        while (end := max(self.arrives, self.free_at) + TOOK) <= until:
            self.sold += 1
            self.free_at, self.arrives = end, end + next(self.gaps)
        self.at = until

    def certify_one(self) -> None:
        if self.queue.invoices:  # behind the till that is there
            self.go_on(max(self.arrives, self.free_at) + TOOK)
        self.at = self.free_at = self.at + TOOK
        self.worked_off += 1
        self.met += self.queue.invoices


class Looking(SalesThatWait):
    age: int = 0
    """Of the oldest sale (ms)."""

    @property
    def shop(self) -> FakeShop:
        return self.worker  # type: ignore[return-value]

    def _now(self) -> float:
        return self.shop.at

    def _next(self, now: float) -> DeferredSale | None:  # noqa: ARG002  the shape of the original
        sold_at = self.shop.now() - self.age
        return DeferredSale(1, "k", b"f", "r", "W-1", "FV", 590, sold_at=sold_at, address="a", invoice=invoice("W-1"))

    async def _certify(self, sale: DeferredSale, invoice: Invoice) -> None:  # noqa: ARG002
        self.shop.certify_one()

    async def look_until(self, is_over: Callable[[FakeShop], bool]) -> FakeShop:
        while not is_over(self.shop):
            await self.step()
            self.shop.go_on(self.shop.at + LOOK)
        return self.shop


def looking(gaps: Iterator[float], *, age: int = 0) -> Looking:
    found = Looking(FakeShop(gaps))  # type: ignore[arg-type]
    found.age = age
    return found


def at_random(dice: random.Random, mean: float) -> Iterator[float]:
    while True:
        yield dice.expovariate(1 / mean)


def test_the_law_gives_two_days_and_people_are_warned_before() -> None:
    """Counted from the sale; of a book from its oldest one."""
    backlog = DeferredBacklog(1, 590, oldest_at=1, doubtful=0)
    assert (
        backlog.due_at
        == DeferredSale(1, "k", b"f", "r", "W-1", "FV", 590, sold_at=1, address="a").due_at
        == 1 + 48 * HOUR
    )
    urgencies = [backlog.urgency(1 + age) for age in (24 * HOUR - 1, 24 * HOUR, 40 * HOUR - 1, 40 * HOUR)]
    assert urgencies == ["", "amber", "amber", "red"]
    assert DeferredBacklog(0, 0, oldest_at=0, doubtful=0).urgency(50 * HOUR) == ""


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1 << 32), st.floats(0.3, 20))
def test_few_tills_that_come_at_random_meet_one(seed: int, mean: float) -> None:
    """Beside the five after which the pause is the longest."""
    shop = run(looking(at_random(random.Random(seed), mean)), lambda shop: shop.sold >= 1000)
    assert shop.met <= 5 + shop.sold / 100
    assert shop.worked_off >= shop.at / (SPACING * IN_A_RUSH) - 1


@pytest.mark.parametrize(("age", "spacing"), [(0, SPACING), (AMBER, SPACING_LATE)])
@pytest.mark.parametrize("gap", [0.0, PAUSE / 2])
def test_a_shop_that_never_stops_selling_has_one_now_and_then(gap: float, age: int, spacing: float) -> None:
    shop = run(looking(repeat(gap), age=age), lambda shop: shop.at >= 20 * spacing)
    assert shop.worked_off in range(round(20 / IN_A_RUSH) - 3, round(20 / IN_A_RUSH) + 2)


def test_between_tills_that_are_a_pause_apart_they_go_sooner_than_in_a_rush() -> None:
    policy = looking(repeat(2 * PAUSE))
    policy.pause = LONGEST
    shop = run(policy, lambda shop: shop.at >= 20 * SPACING)
    assert shop.worked_off in range(17, 21)


def test_the_pause_shrinks_once_so_many_tills_were_not_met() -> None:
    """Counted from the machine's first invoice on."""
    policy = looking(repeat(HOUR))
    policy.pause = LONGEST
    for sold, expected in ((UNMET - 1, LONGEST), (UNMET - 1, LONGEST), (UNMET, LONGEST / FACTOR)):
        policy.shop.sold = sold
        policy._look_for_tills(0.0)
        assert (policy.pause, policy.unmet) == (expected, sold % UNMET)


def test_all_of_them_go_at_night() -> None:
    """After a day in which the pause became the longest."""
    policy = looking(iter([9 * HOUR / 1000]))
    policy.pause = LONGEST
    shop = run(policy, lambda shop: shop.worked_off >= QUEUE)
    assert shop.at < 2 * HOUR / 1000


@pytest.mark.logs("sale.put_off")
def test_what_the_machine_refuses_is_tried_again_later_and_later() -> None:
    policy = looking(repeat(HOUR))
    sale = policy._next(0)
    assert sale is not None
    for minutes in (1, 5, 15, 15):
        asyncio.run(policy._refused(sale, MachineNonsense("the subtotal differs")))
        assert policy.again_at == policy.shop.at + 60 * minutes
        policy.shop.at = policy.again_at


def run(policy: Looking, is_over: Callable[[FakeShop], bool]) -> FakeShop:
    return asyncio.run(policy.look_until(is_over))


@pytest.mark.parametrize(
    ("error", "rest"),
    [
        pytest.param(MachineOffline("gone"), 5.0, marks=pytest.mark.logs("sale.put_off")),
        pytest.param(ZeroDivisionError(), 60.0, marks=pytest.mark.logs("sale.failed")),
    ],
)
async def test_after_an_error_none_is_tried_for_a_while(
    monkeypatch: pytest.MonkeyPatch, error: Exception, rest: float
) -> None:
    """Longer after a mistake of ours."""
    tried: list[float] = []

    class Failing(Looking):
        async def step(self) -> None:
            self.shop.at += 1.0
            await super().step()

        async def _certify(self, sale: DeferredSale, invoice: Invoice) -> None:  # noqa: ARG002
            tried.append(self.shop.at)
            raise error if len(tried) < 3 else asyncio.CancelledError

    monkeypatch.setattr(certify_waiting, "LOOK", 0.0)
    with suppress(asyncio.CancelledError):
        await Failing(FakeShop(repeat(HOUR))).run()  # type: ignore[arg-type]
    assert [later - before for before, later in pairwise(tried)] == [rest, rest]
