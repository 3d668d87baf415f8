"""The register of outages of a machine that comes and goes, kept by itself (arrêté 2025-0049, articles 6 and 7)."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from support.memory_shop import LAST, MemoryShop, around_write
from support.spare import paired

from daemon.core.errors import MachineAttention, MachineOffline, MachineRefused, StorageFull
from daemon.core.ledger.outage import Outage
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import outages
from daemon.store.tables.book.books import book_state
from daemon.usecases import outages as watch
from daemon.usecases.worker.machine_worker import Limits

pytestmark = pytest.mark.quick_timers
NEVER = 3600.0
SOON = 0.3


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look each hundredth of a second, and a sign of life with each."""
    monkeypatch.setattr(watch, "LOOK", 0.01)
    monkeypatch.setattr(watch, "SIGN_EVERY", 0.0)


def shop_of(path: Path, after: float = NEVER, **options: object) -> MemoryShop:
    limits = Limits(doubt_patience=5.0, patience=5.0, aggregation_delay=0.01, outage=after)
    return MemoryShop(path / "ledger", limits=limits, keeps_register=True, **options)


@asynccontextmanager
async def selling(path: Path, after: float = NEVER, **options: object) -> AsyncIterator[MemoryShop]:
    """Connected, with a sale; its ledger is sound at the end."""
    async with shop_of(path, after, **options) as shop:
        await shop.connected()
        await shop.certify("A")
        yield shop
    assert verify(path / "ledger").clean


async def unplug(shop: MemoryShop) -> None:
    shop.unplug(NEVER)
    await shop.until(lambda: not shop.worker.connected, "the machine's loss")


async def refused(shop: MemoryShop, number: str = "B") -> Outage:
    with pytest.raises(MachineOffline):
        await shop.certify(number)
    return await begun(shop)


def register(shop: MemoryShop) -> list[Outage]:
    return shop.store.ledger.peek(outages.outages_between, shop.worker.book, start=0, end=1 << 60, after=0, limit=100)


def lasting(shop: MemoryShop) -> Outage | None:
    return shop.store.ledger.peek(outages.open_outage, shop.worker.book)


async def begun(shop: MemoryShop) -> Outage:
    await shop.until(lambda: lasting(shop), "the outage")
    outage = lasting(shop)
    assert outage is not None
    return outage


async def over(shop: MemoryShop) -> Outage:
    """The only one of the register."""
    await shop.until(lambda: lasting(shop) is None, "the end of the outage")
    (only,) = register(shop)
    return only


async def signed(shop: MemoryShop) -> None:
    await shop.until(
        lambda: shop.store.ledger.peek(outages.sign_of_life, shop.worker.book) > 0, "the first sign of life"
    )


async def test_a_till_that_is_refused_begins_an_outage(tmp_path: Path) -> None:
    """At once, since when the machine was lost; it ends when the machine is back. A short absence that no till has met is none."""
    async with selling(tmp_path) as shop:
        await unplug(shop)
        lost_at = shop.worker.offline_since
        await asyncio.sleep(0.05)
        assert register(shop) == []
        outage = await refused(shop)
        assert (outage.reason, outage.since, outage.refused) == ("line_lost", lost_at, True)
        shop.session.plug()
        await over(shop)
        assert shop.worker.connected
        (only,) = register(shop)
        assert only.until > only.since
        await unplug(shop)
        shop.session.plug()
        await shop.connected()
        await asyncio.sleep(0.05)
        assert register(shop) == [only]
        await shop.certify("B")


async def test_a_machine_that_certifies_before_the_next_look_has_one_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it certified has ended the outage; the look that comes then does not find it again."""
    async with selling(tmp_path) as shop:
        await signed(shop)
        await unplug(shop)
        await refused(shop)
        await asyncio.sleep(0.05)
        monkeypatch.setattr(watch, "LOOK", 0.5)
        await asyncio.sleep(0.02)
        shop.session.plug()
        await shop.connected()
        await shop.certify("C")
        assert lasting(shop) is None
        await asyncio.sleep(0.6)
        assert [outage.number for outage in register(shop)] == [1]


async def test_an_outage_begins_when_the_machine_was_lost_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it was back in between for too short a time for a look, and no sign of life was ever given."""
    monkeypatch.setattr(watch, "LOOK", NEVER)
    async with shop_of(tmp_path) as shop:
        await shop.connected()
        for number in ("A", "B"):
            await shop.certify(number)
            await asyncio.sleep(0.05)
            await unplug(shop)
            outage = await refused(shop, "C")
            assert outage.since == shop.worker.offline_since
            shop.session.plug()
            await shop.connected()


async def test_a_machine_that_was_never_in_service_is_not_out_of_order(tmp_path: Path) -> None:
    """A box that is being set up has no outage, also when a till is refused, and once its machine comes."""
    async with shop_of(tmp_path, 0.05) as shop:
        shop.session.unplug(asyncio.get_running_loop().time(), NEVER)
        with pytest.raises(MachineOffline):
            await shop.certify("A")
        await asyncio.sleep(0.2)
        assert register(shop) == []
        shop.session.plug()
        await signed(shop)
        assert register(shop) == []


async def test_an_outage_that_nobody_notices_begins_after_its_time(tmp_path: Path) -> None:
    """No till was refused: after the configured time, and it began when the machine was lost. It is one until its return, over a restart."""
    async with shop_of(tmp_path, SOON) as shop:
        await shop.connected()
        await unplug(shop)
        began = await begun(shop)
        assert (began.since, began.refused) == (shop.worker.offline_since, False)
        assert shop.worker.now() - began.since >= SOON * 1000
    async with shop_of(tmp_path, SOON, on=shop.session) as shop:
        await asyncio.sleep(0.1)
        assert lasting(shop) == began
        shop.session.plug()
        only = await over(shop)
        assert (only.number, only.since) == (1, began.since)
    assert verify(tmp_path / "ledger").clean


async def test_a_box_that_was_off_is_seen_at_its_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its last sign of life until its machine is back, where that is longer than the configured time; else not at all.
    Beginning and end are stored together: a power cut between them would make it last until the next start."""
    async with shop_of(tmp_path, 600.0) as shop:
        await shop.connected()
        await shop.certify("A")
        await signed(shop)
    alive = _last_sign(shop)
    async with shop_of(tmp_path, 600.0, on=shop.session) as shop:
        shop.box_offset = 300_000
        await shop.connected()
        await shop.until(lambda: shop.store.ledger.peek(outages.sign_of_life, shop.worker.book) > alive + 200_000)
        assert register(shop) == []
    alive = _last_sign(shop)

    async def late(write: Callable[[], Awaitable[Any]]) -> Any:
        await asyncio.sleep(0.2)
        return await write()

    around_write(monkeypatch, "end_outage", late)
    async with shop_of(tmp_path, 600.0, on=shop.session) as shop:
        shop.box_offset = 8 * 3_600_000
        await shop.until(lambda: register(shop), "the outage")
        (only,) = register(shop)
        assert (only.reason, only.since, only.refused) == ("box_off", alive, False)
        assert only.until > alive + 7 * 3_600_000
    assert verify(tmp_path / "ledger").clean


def _last_sign(shop: MemoryShop) -> int:
    with closing(sqlite3.connect(shop.path)) as connection:
        return outages.sign_of_life(connection, shop.worker.book)


async def test_an_outage_does_not_begin_before_what_was_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine certifies after a start, and is lost before the watch looks at it: the outage begins with the loss, not with the box that was off."""
    async with selling(tmp_path) as shop:
        await signed(shop)
    monkeypatch.setattr(watch, "LOOK", NEVER)
    async with shop_of(tmp_path, on=shop.session) as shop:
        await shop.connected()
        await shop.certify("B")
        await unplug(shop)
        outage = await refused(shop, "C")
        assert (outage.reason, outage.since) == ("line_lost", shop.worker.offline_since)


async def test_a_disk_that_is_full_is_an_outage(tmp_path: Path) -> None:
    """It is written down once there is room, from the moment on at which a till was refused."""
    async with selling(tmp_path) as shop:
        await shop.disk(writable=False)
        before = shop.worker.now()
        with pytest.raises(StorageFull):
            await shop.certify("B")
        with pytest.raises(StorageFull):
            await shop.certify("C")
        await asyncio.sleep(0.05)
        room_at = shop.worker.now()
        await shop.disk(writable=True)
        await shop.until(lambda: register(shop), "the outage")
        only = await over(shop)
        assert (only.reason, only.refused) == ("disk", True)
        assert before <= only.since <= room_at
        await shop.certify("B")


async def test_a_full_disk_is_in_the_register_before_the_machine_certifies_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where something else is stored first, and the machine is still returning: its next certification would leave
    nothing of the outage."""
    async with selling(tmp_path) as shop:
        await shop.disk(writable=False)
        with pytest.raises(StorageFull):
            await shop.certify("B")
        with shop.worker.queue.join_first() as entry:
            await entry.wait_turn(asyncio.get_running_loop().time() + 5.0)
            await unplug(shop)
            shop.session.plug()
            await shop.until(lambda: shop.worker.returning, "the machine's return")
            monkeypatch.setattr(watch, "LOOK", 0.2)
            await asyncio.sleep(0.05)
            await shop.disk(writable=True)
            await shop.store.ledger.write(outages.store_sign_of_life, shop.worker.book, shop.worker.now())
            await shop.until(lambda: register(shop), "the outage")
            assert (lasting(shop).reason, lasting(shop).refused) == ("disk", True)
            assert not shop.worker.connected
        await over(shop)


async def test_a_full_disk_is_in_the_register_also_after_a_certification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That came before the next look at the disk: the outage has lasted until then; as well where the disk is full again."""
    async with selling(tmp_path) as shop:
        monkeypatch.setattr(watch, "LOOK", 0.3)
        for number in "BC":
            await asyncio.sleep(0.35)
            await shop.disk(writable=False)
            began = shop.worker.now()
            with pytest.raises(StorageFull):
                await shop.certify(number)
            await asyncio.sleep(0.02)
            await shop.disk(writable=True)
            record = (await shop.certify(number)).value
        await shop.disk(writable=False)
        with pytest.raises(StorageFull):
            await shop.certify("D")
        await shop.disk(writable=True)
        await shop.until(lambda: len(register(shop)) == 3, "the outages")
        second = register(shop)[1]
        assert began <= second.since < second.until <= record.ended_at


@pytest.mark.parametrize(("full", "tries"), [(2, (1, 2, 5, 6)), (3, (1, 2, 3, 7))])
async def test_outages_that_the_disk_did_not_take_are_stored_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: int, tries: tuple[int, ...]
) -> None:
    """It takes none before the third or the fourth one: with that, those that are over, the oldest first."""
    tried = 0

    async def full_at_first(write: Callable[[], Awaitable[Any]]) -> Any:
        nonlocal tried
        try:
            if tried < full:
                raise StorageFull("no room")
            return await write()
        finally:
            tried += 1

    around_write(monkeypatch, "begin_outage", full_at_first)
    monkeypatch.setattr(watch, "LOOK", NEVER)
    lost_at = []
    async with selling(tmp_path) as shop:
        for number, count in zip("BCDE", tries, strict=True):
            await unplug(shop)
            lost_at.append(shop.worker.offline_since)
            with pytest.raises(MachineOffline):
                await shop.certify(number)
            await shop.until(lambda count=count: tried >= count, "the tries to store it")
            shop.session.plug()
            await shop.connected()
            await shop.certify(number)
        assert [outage.since for outage in register(shop)] == lost_at


async def test_attention_is_an_outage(tmp_path: Path) -> None:
    """Until an operator has decided, the machine certifies nothing, although it answers."""
    async with shop_of(tmp_path, SOON) as shop:
        await shop.connected()
        await shop.store.ledger.set_attention(shop.worker.book, "somebody has to look", at=shop.worker.now())
        shop.worker.apply_state(shop.store.ledger.peek(book_state, shop.worker.book))
        outage = await begun(shop)
        assert outage.reason == "attention"


async def test_a_till_that_asks_again_for_an_outcome_and_is_refused_begins_an_outage(tmp_path: Path) -> None:
    """A crash has left its sale begun, and a person has to decide: it could sell nothing meanwhile."""
    async with selling(tmp_path) as shop:
        lost = asyncio.ensure_future(shop.certify("B", key="b"))
        await shop.stop_at(LAST)
        await shop.intents(1)
        await shop.store.ledger.set_attention(shop.worker.book, "somebody has to look", at=shop.worker.now())
        await shop.disk(writable=False)
    await asyncio.gather(lost, return_exceptions=True)
    shop.session.cut_power(0.0, 0.5)
    async with shop_of(tmp_path, on=shop.session) as shop:
        with pytest.raises(MachineAttention):
            await shop.certify("B", key="b")
        assert await begun(shop)


@pytest.mark.parametrize("refused", [0, 2])
async def test_what_was_open_in_a_copy_is_over_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """Of the time after the copy was made the ledger knows nothing: the outage ends there, and what lasts now is another one. So too where the
    disk first takes nothing."""
    left = [StorageFull("no room")] * refused

    async def full_at_first(write: Callable[[], Awaitable[Any]]) -> Any:
        if left:
            raise left.pop()
        return await write()

    path = tmp_path / "ledger"
    async with selling(tmp_path, SOON) as shop:
        await unplug(shop)
        began = await begun(shop)
        backup(path, tmp_path / "copy", at=shop.worker.now())
        shop.session.plug()
        await over(shop)
        await unplug(shop)
    restore(tmp_path / "copy", path, at=time.time_ns() // 1_000_000)
    around_write(monkeypatch, "end_outage", full_at_first)
    async with shop_of(tmp_path, SOON, on=shop.session) as shop:
        await shop.until(lambda: not register(shop)[0].is_open, "the end of the first outage")
        second = await begun(shop)
        first, _ = register(shop)
        assert first.since == began.since
        assert second.number == 2
        assert second.since >= first.until
    assert verify(path).clean


async def test_a_clock_that_goes_back_makes_no_outage_end_before_it_began(tmp_path: Path) -> None:
    """The book's time stands still meanwhile."""
    async with selling(tmp_path) as shop:
        await unplug(shop)
        await refused(shop)
        shop.box_offset = -3_600_000
        shop.session.plug()
        only = await over(shop)
        assert only.until >= only.since


async def test_the_outage_of_a_former_taxpayer_ends_with_its_book(tmp_path: Path) -> None:
    async with selling(tmp_path) as shop:
        await unplug(shop)
        await refused(shop)
        former = shop.worker.book
        shop.session.machine.change(ifu="00099999X")
        shop.session.plug()
        await shop.until(lambda: shop.worker.book.id != former.id, "the other taxpayer's book")
        peek = shop.store.ledger.peek
        await shop.until(lambda: peek(outages.open_outage, former) is None, "the end of the outage")
        await shop.connected()


async def test_the_outage_of_a_spare_ends_when_its_machine_is_back(tmp_path: Path) -> None:
    """An unused spare need not be connected."""
    async with paired(tmp_path / "ledger") as shop:
        peek, book = shop.store.ledger.peek, shop.spare.worker.book
        register = asyncio.ensure_future(watch.OutageWatch(shop.spare.worker).run())
        await shop.take_over()
        await shop.certify("A")
        await shop.unplug(shop.spare)
        with pytest.raises(MachineOffline):
            await shop.certify("B")
        await shop.spare.until(lambda: peek(outages.open_outage, book), "the outage")
        await shop.take_back()
        await shop.spare.until(lambda: peek(outages.open_outage, book) is None, "the end of the outage")
        register.cancel()


async def test_what_the_machine_refuses_is_no_outage(tmp_path: Path) -> None:
    """Of a till for what it contains: the machine works. Of sales that wait, at night: whether it refuses all is not known before a till tries."""
    async with selling(tmp_path, SOON) as shop:
        for number in "EF":
            shop.session.plan.add("refuse@31h#1")
            with pytest.raises(MachineRefused):
                await shop.certify(number)
        shop.worker.refused_numbers |= {"B", "C"}
        await asyncio.sleep(2 * SOON)
        assert register(shop) == []
        await shop.certify("D")
        assert not shop.worker.refuses_all
