"""Stopping: what is on the line ends and is stored, waiting requests are answered at once, and the next start begins where this one ended."""

import asyncio
from pathlib import Path

import pytest
from support.memory_shop import LAST, MemoryShop, in_service

from daemon.core.errors import LineLost, MachineBusy
from daemon.store.tables.book import attempts
from daemon.usecases.worker.machine_worker import Limits

pytestmark = pytest.mark.quick_timers


async def stopped(shop: MemoryShop) -> None:
    """A stop that may take as long as it likes: that it ends at all, within the time of a test, says that it waits for nothing else."""
    await shop.worker.close(3600.0)


async def test_a_stop_lets_the_invoice_on_the_line_end_and_sends_the_others_away(shop: MemoryShop) -> None:
    """Its till gets its certification; those behind it get an error: nothing was sent."""
    sales = [asyncio.ensure_future(shop.certify(number)) for number in ("A", "B", "C")]
    await shop.stop_at(LAST)
    stop = asyncio.ensure_future(stopped(shop))
    for waiting in sales[1:]:
        with pytest.raises(MachineBusy, match="stopping"):
            await waiting
    shop.resume()
    await stop
    assert (await sales[0]).value.code == shop.on_machine[0].code
    assert [record.number for record in await shop.certified()] == ["A"]
    assert not shop.store.ledger.peek(attempts.unfinished, shop.worker.book)


async def test_a_stop_waits_for_an_outcome_that_is_being_stored(shop: MemoryShop) -> None:
    """The line is free already, the till has no answer yet."""
    sale = asyncio.ensure_future(shop.certify("A"))
    await shop.disk_lost_at(LAST)
    await shop.until(lambda: shop.on_machine and not shop.worker.waiting, "certified")
    stop = asyncio.ensure_future(stopped(shop))
    await asyncio.wait({stop}, timeout=0.1)
    assert not stop.done()
    await shop.disk(writable=True)
    await stop
    assert (await sale).value.code == shop.on_machine[0].code


async def test_a_stop_does_not_wait_for_a_machine_that_is_away(tmp_path: Path) -> None:
    """Neither for its return nor for the outcome that only it can tell: who waits for that an hour is sent away too."""
    patient = Limits(doubt_patience=3600, patience=5.0, aggregation_delay=0.01)
    async with in_service(tmp_path / "ledger", limits=patient) as shop:
        sales = [asyncio.ensure_future(shop.certify(number)) for number in ("A", "B")]
        await shop.stop_at(LAST, "after")
        shop.unplug(3600)
        await shop.until(lambda: not shop.worker.connected, "the outage")
        await stopped(shop)
        with pytest.raises(LineLost):
            await sales[0]
        with pytest.raises(MachineBusy, match="stopping"):
            await sales[1]
    shop.session.plug()
    shop.session.resume()
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        ended = [
            (record.number, record.state)
            async for record in shop.store.journal.iterate(shop.worker.book, 0, 1 << 60, 0)
        ]
        assert ended == [("B", "abandoned"), ("A", "certified")]


async def test_a_stop_that_is_cut_short_leaves_the_rest_to_the_next_start(tmp_path: Path) -> None:
    """The machine does not come to an end in time: the till gets an unknown outcome, and the next start settles it."""
    async with in_service(tmp_path / "ledger") as shop:
        sale = asyncio.ensure_future(shop.certify("A", key="k"))
        await shop.stop_at(LAST, "after")
        await shop.worker.close(0.05)
        with pytest.raises(LineLost):
            await sale
    shop.session.resume()
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        answered = await shop.certify("A", key="k")
        assert (answered.value.code, answered.replayed) == (shop.on_machine[0].code, True)
        assert len(shop.on_machine) == 1
