"""Sales that wait go one by one between the tills: few of those find one of them at the machine."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import Till, invoice, opened
from support.ledgers.worker import worker_of

from daemon.core.invoice.invoice import Invoice
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.machine.state import FiscalCounters
from daemon.usecases.deferred.certify_waiting import ASLEEP, AT_ONCE, BUSY, LOOK, PACE, QUIET, SalesThatWait
from daemon.usecases.worker.machine_worker import MachineWorker

SALE = DeferredSale(1, "k", b"f", "r", "W-1", "FV", 590, sold_at=0, address="a", invoice=invoice("W-1"))


class Looking(SalesThatWait):
    """One that finds a sale whenever it looks, and is `at` a time (s) of the test's."""

    at: float = ASLEEP * 10
    done: int = 0

    def _now(self) -> float:
        return self.at

    def _next(self, now: float) -> DeferredSale | None:  # noqa: ARG002  the shape of the original
        return msgspec.structs.replace(SALE, sold_at=self.worker.now())

    async def _certify(self, sale: DeferredSale, invoice: Invoice) -> None:  # noqa: ARG002
        self.done += 1
        certified(self.worker)

    async def look_for(self, seconds: float, *, till_every: float = 0.0) -> int:
        """How many go in that time, while a till comes every so many seconds, between two looks."""
        before, until, till_at = self.done, self.at + seconds, self.at
        while self.at < until:
            if till_every and self.at >= till_at:
                certified(self.worker)
                till_at += till_every
            await self.step()
            self.at += LOOK
        return self.done - before


def certified(worker: MachineWorker) -> None:
    counters = worker.counters
    worker.attempts.counters = FiscalCounters(counters.tc + 1, counters.fvc + 1, counters.frc)


@pytest.fixture
async def looking(tmp_path: Path):
    async with opened(tmp_path / "ledger.sqlite3") as store:
        worker = worker_of(await Till.of(store))
        worker.machine = object()  # type: ignore[assignment]  # it is there, and is not asked
        yield Looking(worker)


async def test_a_few_go_at_once_and_the_others_at_their_pace(looking: Looking) -> None:
    """In a shop whose till comes now and then; a till between two looks is noticed by what the machine has counted."""
    first = await looking.look_for(60, till_every=2)
    assert AT_ONCE <= first <= AT_ONCE + 60 / PACE + 1
    assert 60 / PACE - 1 <= await looking.look_for(60, till_every=2) <= 60 / PACE + 1


async def test_a_shop_that_never_stops_selling_has_one_now_and_then(looking: Looking) -> None:
    """Where no till ever leaves a second."""
    assert await looking.look_for(10 * BUSY, till_every=QUIET / 2) in range(9, 12)


async def test_all_of_them_go_where_nobody_has_sold_for_a_while(looking: Looking) -> None:
    """At night: one at each look."""
    await looking.look_for(1, till_every=1)
    assert await looking.look_for(ASLEEP - 1) < 2 * ASLEEP / PACE
    await looking.look_for(2)
    assert await looking.look_for(60) == 60 / LOOK
