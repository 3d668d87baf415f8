"""A Z: what is known after it, and whom it waits for."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from support.memory_shop import in_service

from common.language import Text
from daemon.core.errors import PeriodEnded, StorageError
from daemon.core.ledger.phases import Phase, Step
from daemon.core.machine.state import FiscalCounters
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.reports.close_period import close_period
from daemon.usecases.worker.machine_worker import Limits

pytestmark = pytest.mark.quick_timers

NO_TICK = Limits(aggregation_delay=3600.0)


async def test_what_the_machine_says_at_a_z_is_known_from_then_on(tmp_path: Path) -> None:
    """Its counters, with an invoice of somebody else in them, and its clock; X shows the empty period at once."""
    messages: list[int] = []
    async with in_service(tmp_path / "ledger", heartbeat=3600.0, limits=NO_TICK) as shop:
        await shop.certify("A", 1000)
        shop.session.machine.certify_foreign(total=500)
        shop.clock.offset = timedelta(hours=1)
        shop.worker.on_event = lambda event: messages.append(event.ref) if event.type == "closure.created" else None
        closure = (await shop.close_period()).value
        assert (closure.certs_count, closure.unexplained, closure.counters) == (1, 1, FiscalCounters(*shop.counters))
        assert shop.worker.counters == closure.counters
        assert shop.worker.time.drift is not None
        assert abs(shop.worker.time.drift + 3600) < 60
        x = shop.worker.aggregate
        assert x == await shop.store.ledger.aggregated(shop.worker.book)
        assert (x.running == x.closed, x.period_start) == (True, closure.period_end)
        assert messages == [1]


async def test_what_somebody_else_certified_is_in_one_z_though_the_totals_cannot_be_read_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Z is stored, and its caller gets an error: what it counted as unexplained is not counted by the next one."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0, limits=NO_TICK) as shop:
        shop.session.machine.certify_foreign(total=500)
        with monkeypatch.context() as patch:

            async def unreadable(_: object) -> None:
                raise StorageError(Text("the disk"))

            patch.setattr(shop.worker.ledger, "aggregated", unreadable)
            with pytest.raises(StorageError):
                await shop.close_period()
        closure = (await shop.close_period()).value
        assert (closure.z_number, closure.unexplained) == (2, 0)


async def test_a_z_waits_for_an_end_that_is_on_its_way_to_the_disk(tmp_path: Path) -> None:
    """That attempt belongs to the period: the machine is asked once it is stored."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0, limits=NO_TICK) as shop:
        live = shop.worker.attempts.intend("A")
        live.phase = Phase.ENDING
        frames = shop.session.frames_in
        closing = asyncio.ensure_future(shop.close_period())
        await shop.until(lambda: shop.worker.waiting, "the Z at the machine")
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert shop.session.frames_in == frames
        shop.worker.attempts.step(live, Step.STORED)
        assert (await closing).value.z_number == 1


async def test_two_who_mean_the_same_period_close_it_once(tmp_path: Path) -> None:
    """The second is refused under the closing's lock, however they come together; what it counted is in no Z. One that
    names no last Z closes the empty period."""
    async with in_service(tmp_path / "ledger", limits=NO_TICK) as shop:
        for after in (0, 1):
            await shop.certify(f"A{after}", 1000)
            worker, calls = shop.worker, [shop.call({"count": count}) for count in (1, 2)]
            done = await asyncio.gather(
                *(close_period(worker, call, 1000, after) for call in calls), return_exceptions=True
            )
            assert [each.value.z_number for each in done if isinstance(each, Answered)] == [after + 1]
            assert [str(each) for each in done if isinstance(each, PeriodEnded)] == [str(PeriodEnded(after + 1))]
        assert (await shop.close_period()).value.z_number == 3
