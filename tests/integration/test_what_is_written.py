"""Everything that a till or a person can have written to a book: refused without room on the disk, announced once it is there."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.memory_shop import MemoryShop, in_service
from support.shop import invoice

from daemon.core import events
from daemon.core.audit import Call
from daemon.core.clock import DAY
from daemon.core.errors import MachineOffline, MachineRefused, StorageFull
from daemon.core.ledger.attempt import Record
from daemon.store.ledger import Ledger
from daemon.usecases.certification.certify import certify
from daemon.usecases.certification.idempotency import find_request
from daemon.usecases.deferred.accept import certify_or_defer
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from daemon.usecases.outages import note_notified
from daemon.usecases.reports.acts import close_articles, make_copy, move_cash, printed_copy, store_report
from daemon.usecases.reports.close_period import close_calendar, close_period
from daemon.usecases.worker.machine_worker import MachineWorker

pytestmark = pytest.mark.quick_timers
Act = Callable[[MachineWorker, Record, Call], Awaitable[Any]]
DEPOSIT = {"kind": "deposit", "amount": 500, "reason": "float"}
ACTS: dict[str, Act] = {
    "sale": lambda worker, _, call: certify(worker, invoice("B"), call),
    "sale for later": lambda worker, _, call: certify_or_defer(worker, invoice("B"), call, is_async=True),
    "Z": lambda worker, _, call: close_period(worker, call),
    "month": lambda worker, _, call: close_calendar(worker, "month", "", call),
    "articles": lambda worker, _, call: close_articles(worker, call),
    "cash": lambda worker, _, call: move_cash(worker, dict(DEPOSIT), call),
    "notification": lambda worker, _, call: note_notified(worker, 1, {"who": "distributor", "reference": "R"}, call),
    "duplicate": make_copy,
    "duplicate in the printer": lambda worker, sale, call: printed_copy(worker, sale, call).__aenter__(),
    "report": lambda worker, sale, call: store_report(worker, "x", sale.invoice, call),
}


async def sold_before(shop: MemoryShop) -> Record:
    """A sale, and an outage that is over; then a month ends."""
    sale = (await shop.certify("A")).value
    at = shop.worker.now()
    await shop.store.ledger.begin_outage(
        shop.worker.book, "line_lost", at=at, lasted=0, refused=True, incident="", is_over=False
    )
    await shop.store.ledger.end_outage(shop.worker.book, at=at, until=at)
    shop.synchronised, shop.box_offset = True, 32 * DAY
    return sale


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_nothing_is_written_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Act) -> None:
    async def full(*_: object) -> None:
        raise StorageFull("no room")

    async with in_service(tmp_path / "ledger") as shop:
        sale = await sold_before(shop)
        monkeypatch.setattr(Ledger, "check_free_space", full)
        with pytest.raises(StorageFull, match="no room"):
            await act(shop.worker, sale, shop.call({}, "key"))


async def test_what_became_of_a_request(tmp_path: Path) -> None:
    """It waits, was refused, left nothing, or has its answer."""
    async with in_service(tmp_path / "ledger") as shop:
        shop.session.plan.add("refuse@31h#1")
        with pytest.raises(MachineRefused):
            await shop.certify("A", key="sale")
        with shop.worker.queue.join_first():
            closing = asyncio.ensure_future(shop.close_period(key="Z"))
            await shop.until(lambda: shop.worker.waiting == 2, "the Z in the line")
            found = [await find_request(shop.worker, key) for key in ("sale", "Z", "unknown")]
        await closing
        found.append(await find_request(shop.worker, "Z"))
        assert [each and each.status for each in found] == ["refused", "waiting", None, "answered"]


async def test_every_event_is_announced_to_screens(tmp_path: Path) -> None:
    """As often as the ledger has it: a day with each kind of trouble."""
    published: Counter[str] = Counter()
    async with MemoryShop(tmp_path / "ledger", keeps_register=True) as shop:
        shop.worker.on_event = lambda event: published.update([event.type])
        await shop.connected()
        await shop.certify("A")
        waiting = asyncio.ensure_future(SalesThatWait(shop.worker, pause=0.1).run())
        shop.session.plan.add("refuse@31h#1")
        with pytest.raises(MachineRefused):
            await shop.certify("B")
        shop.session.plan.add("refuse@31h#1")
        await certify_or_defer(shop.worker, invoice("C"), shop.call({}, "C"), is_async=True)
        await shop.until(lambda: published[events.REFUSED] == 2, "the refusal of the sale that waits")
        shop.session.plan.add("cut-executed:0.02@38h#1")
        await shop.certify("D")
        shop.unplug(0.5)
        await shop.until(lambda: not shop.worker.connected, "the loss")
        with pytest.raises(MachineOffline):
            await shop.certify("E")
        await shop.until(lambda: published[events.BACK], "the return")
        await shop.close_period()
        waiting.cancel()
        counts = "SELECT type, count(*) FROM event WHERE type NOT IN ('mcf.connected', 'mcf.disconnected') GROUP BY 1"
        stored = await shop.store.ledger.read(lambda connection: dict(connection.execute(counts)))
    assert {kind: published[kind] for kind in stored} == stored
    assert stored.keys() == {
        *(events.CERTIFIED, events.REFUSED, events.DEFERRED, events.OUTAGE, events.BACK, events.CLOSURE)
    }
