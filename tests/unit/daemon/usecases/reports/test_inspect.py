"""What a machine says of itself is told as far as it says it."""

import asyncio
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from support.memory_shop import MemoryShop

from common.language import Text
from daemon.core.errors import MachineOffline, StorageFull
from daemon.core.report.machine_info import TaxServer
from daemon.core.report.report_parts import Letterhead
from daemon.store.ledger import Ledger
from daemon.usecases.reports.inspect import CACHE_SECONDS, cancel_pending, info, learn_taxpayer, read
from daemon.usecases.worker.machine_worker import Limits

pytestmark = pytest.mark.quick_timers


async def test_a_machine_that_says_nothing_sensible_of_the_tax_server_is_shown_all_the_same(tmp_path: Path) -> None:
    """C2h cannot be read: counters and trade name are told, nothing is made up of the tax server, and the reason stands where its error does."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        shop.session.plan.add("nonsense@c2h#1")
        machine = await info(shop.worker)
        assert machine.merchant.commercial_name == "MAISON FASO"
        reason = machine.tax_server.last_error
        assert reason
        assert machine.tax_server == TaxServer("", 0, 0, "", reason, None, alert=False)
        unknown = shop.worker.reading
        assert (unknown.link.acknowledged, unknown.link.documents) == (0, 0)
        assert shop.worker.server_link.state == "DIS"


async def test_what_a_machine_said_within_the_last_second_is_not_asked_again(tmp_path: Path) -> None:
    """Polling screens do not take the line from tills; what is older is, and whose it is only once. A look waits for its turn: the holder of the machine finishes first."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=3600.0) as shop:
        await shop.connected()
        with shop.worker.queue.join():
            await learn_taxpayer(shop.worker)
            assert shop.worker.taxpayer == ()
            look = asyncio.ensure_future(info(shop.worker))
            await shop.until(lambda: shop.worker.waiting == 2 or look.done(), "the look in the line")
            assert not look.done()
        assert (await look).merchant.commercial_name == "MAISON FASO"
        first = await read(shop.worker)
        taxpayer = shop.worker.taxpayer
        shop.worker.reading = None
        await learn_taxpayer(shop.worker)
        assert shop.worker.reading is None
        shop.worker.taxpayer, shop.clock.offset = (), timedelta(hours=1)
        await learn_taxpayer(shop.worker)
        assert shop.worker.taxpayer == taxpayer
        assert round((shop.worker.time.drift or 0) / 3600) == -1
        first, taxpayer = await read(shop.worker), shop.worker.taxpayer
        assert await read(shop.worker) is first
        shop.worker.reading = msgspec.structs.replace(first, at=first.at - CACHE_SECONDS)
        again = await read(shop.worker)
        assert again.at > first.at
        assert shop.worker.reading is again
        assert shop.worker.taxpayer is taxpayer
        assert taxpayer == shop.session.machine.options.taxpayer


async def test_the_shop_is_read_by_itself_and_again_when_the_machine_comes_back(tmp_path: Path) -> None:
    """Paper has name and address though nobody looks, and the new ones once they were changed on the machine; the old ones until then."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=0.05) as shop:
        await shop.connected()
        worker, machine = shop.worker, shop.session.machine
        worker.compose_letterhead = lambda taxpayer: Letterhead(taxpayer=taxpayer)
        await shop.until(lambda: worker.stored_taxpayer == machine.options.taxpayer, "the shop")
        before = worker.stored_taxpayer
        moved = ("MAISON FASO", "Rue 12.34", *before[2:])
        machine.options = msgspec.structs.replace(machine.options, taxpayer=moved)
        worker.drop(worker.present(), Text("another cable"))
        assert worker.stored_taxpayer == before
        await shop.until(lambda: worker.stored_taxpayer == moved, "the new address")


async def test_a_machine_that_is_away_is_not_waited_for(tmp_path: Path) -> None:
    """Freeing it and its state are answered at once; what it said a moment ago is not told either."""
    async with MemoryShop(tmp_path / "ledger", limits=Limits(patience=3600.0)) as shop:
        await shop.connected()
        await read(shop.worker)
        shop.session.unplug(asyncio.get_running_loop().time(), 3600)
        shop.port.pump()
        await shop.until(lambda: not shop.worker.connected, "the outage")
        with pytest.raises(MachineOffline):
            async with asyncio.timeout(60):
                await cancel_pending(shop.worker, shop.call({}))
        with pytest.raises(MachineOffline):
            async with asyncio.timeout(60):
                await info(shop.worker)
        assert not shop.worker.waiting


async def test_a_machine_is_freed_whatever_the_disk_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a live machine nothing has to be written down for it; the answer of a sandbox is."""

    async def full(*_: object) -> None:
        raise StorageFull("no room")

    monkeypatch.setattr(Ledger, "check_free_space", full)
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        freed = await cancel_pending(shop.worker, shop.call({}))
        assert freed.value == b'{"wasPending":false,"message":"no invoice was open"}'
        shop.worker.book = msgspec.structs.replace(shop.worker.book, mode="test")
        with pytest.raises(StorageFull):
            await cancel_pending(shop.worker, shop.call({}))
