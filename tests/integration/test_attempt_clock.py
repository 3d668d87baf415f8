"""Clocks that are wrong, on either side, while a shop sells (decision 21)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.memory_shop import MemoryShop, in_service
from support.random_month import served
from support.shop import NIM

from daemon.core.clock import DAY, millis
from daemon.core.errors import MachineAttention
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import entries
from daemon.store.tables.book.books import accept_time
from daemon.usecases.reports.acts import close_articles
from daemon.usecases.reports.report import articles_since, x_report
from daemon.usecases.worker.book_clock import BoxClock
from simulator.line.faults import FaultPlan
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import MachineClock, SimulatorOptions, digits14

pytestmark = pytest.mark.quick_timers

YEAR = 365 * DAY
MINUTE = 60_000


def now() -> int:
    return millis(datetime.now(UTC))


@pytest.mark.parametrize("wrong", [timedelta(days=3653), timedelta(days=-3653), timedelta(hours=1)])
async def test_a_machine_with_a_wrong_clock_does_not_move_the_book(tmp_path: Path, wrong: timedelta) -> None:
    """Ten years ahead or behind, or in another zone: certifications and Z carry the box's time, before and after a restart."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        shop.clock.offset = wrong
        await shop.connected()
        record = (await shop.certify("A")).value
        closure = (await shop.close_period()).value
        assert abs(record.ended_at - now()) < MINUTE
        assert abs(closure.created_at - now()) < MINUTE
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        assert abs((await shop.certify("B")).value.ended_at - now()) < MINUTE
    assert verify(tmp_path / "ledger").clean


async def test_time_that_nobody_vouches_for_is_asked_about(tmp_path: Path) -> None:
    """Box and machine two years after the book: nothing is certified until an operator has said that this is right, and then it goes on
    by itself."""
    async with in_service(tmp_path / "ledger") as shop:
        await shop.certify("A")
    async with MemoryShop(tmp_path / "ledger", on=shop.session) as shop:
        shop.box_offset = 2 * YEAR
        shop.session.machine.clock.offset = timedelta(milliseconds=2 * YEAR)
        await shop.connected()
        for ask in (lambda: shop.certify("B"), shop.close_period):
            with pytest.raises(MachineAttention, match="mcfd time accept"):
                await ask()
        await shop.store.decisions.write(accept_time, now() + 2 * YEAR + DAY)
        await shop.until(lambda: not shop.worker.obstacle, "service")
        assert abs((await shop.certify("B")).value.ended_at - now() - 2 * YEAR) < MINUTE
        assert len(shop.on_machine) == 2


async def test_a_clock_that_is_fast_until_it_is_synchronised_does_not_move_the_book(tmp_path: Path) -> None:
    """Weeks ahead after the start, with the machine met and reports read: what is certified after NTP has set it carries the right time."""
    async with in_service(tmp_path / "ledger") as shop:
        await shop.certify("A")
    late = MemoryShop(tmp_path / "ledger", on=shop.session)
    late.box_offset = 20 * DAY
    async with late as shop:
        await shop.connected()
        assert (await x_report(shop.worker)).certs_count == 1
        shop.box_offset, shop.synchronised = 0, True
        assert abs((await shop.certify("B")).value.ended_at - now()) < MINUTE
        assert abs((await shop.close_period()).value.created_at - now()) < MINUTE
    assert verify(tmp_path / "ledger").clean


async def test_the_report_of_articles_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    """Also where the clock was weeks ahead then, and the time is repaired since: what is sold after it is in the next one."""
    ahead = 20 * DAY
    async with MemoryShop(tmp_path / "ledger") as shop:
        shop.box_offset, shop.synchronised = ahead, True
        await shop.connected()
        await shop.certify("A")
        await shop.until(lambda: shop.worker.aggregate and shop.worker.aggregate.seq == 1, "the tick")
        await close_articles(shop.worker, shop.call({}))
        await shop.store.decisions.write(
            entries.repair_time, shop.worker.book, now=now(), ahead=ahead, reason="the clock was ahead"
        )
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        await shop.certify("B")
        await shop.until(lambda: shop.worker.aggregate and shop.worker.aggregate.seq == 2, "the tick")
        _, found = await articles_since(shop.worker)
        assert (found.certs_count, found.total_ttc) == (1, 15000)
        assert found.from_ < found.to
    assert verify(tmp_path / "ledger").clean


async def test_what_is_shown_of_a_machine_goes_by_the_time_of_its_book(tmp_path: Path) -> None:
    """A box that woke up in 1970 says for how long the machine has not met the tax server, in /health/ready and in the metrics."""
    machine = SimulatedMachine(SimulatorOptions(nim=NIM), MachineClock())
    machine.fiscal.reachable = False
    machine.fiscal.last_contact = digits14(datetime.now(UTC) - timedelta(days=8, hours=1))
    session = LineSession(machine, plan=FaultPlan("", 0))
    box = BoxClock(lambda: DAY, lambda: False)
    async with served(tmp_path / "ledger", on=session, box=box) as (shop, client):
        await shop.connected()
        ready = (await client.get(str(client.base_url.copy_with(path="/health/ready")))).json()
        metrics = (await client.get(str(client.base_url.copy_with(path="/metrics")))).text
    assert ready["machines"][0]["taxServerDays"] == 8
    (silence,) = (line for line in metrics.splitlines() if line.startswith("mcfd_tax_server_silence_seconds{"))
    assert 8 < float(silence.split()[-1]) / 86_400 < 9


async def test_the_time_is_not_before_what_the_book_has(tmp_path: Path) -> None:
    """A clock that is right by a service is set back by a minute just after a certification."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        shop.synchronised = True
        await shop.connected()
        record = (await shop.certify("A")).value
        shop.box_offset = -MINUTE
        assert shop.worker.now() >= record.ended_at
