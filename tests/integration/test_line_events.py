"""What an idle machine is asked, and what comes of it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.memory_shop import LAST, MemoryShop, in_service

from daemon.core.clock import DAY, HOUR
from daemon.core.errors import LineLost
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.machine.state import FiscalCounters
from daemon.store.decisions import DecisionNote
from daemon.store.ledger import Ledger
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.settlements import read_evidence
from daemon.usecases import line_events
from daemon.usecases.line_events import ALERT_EVERY
from daemon.usecases.worker.attempts import Attempts
from daemon.usecases.worker.machine_worker import Limits

pytestmark = pytest.mark.quick_timers


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[MemoryShop]:
    """Looked at when a test says so."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
        yield shop


def silent_for(shop: MemoryShop, days: int) -> None:
    fiscal = shop.session.machine.fiscal
    fiscal.reachable = False
    fiscal.last_contact = (datetime.now(UTC) - timedelta(days=days, hours=1)).strftime("%Y%m%d%H%M%S")


async def looked_at(shop: MemoryShop) -> None:
    """The next heartbeat, of ours."""
    await shop.keeper.heartbeat()


async def counters_gone_down(shop: MemoryShop) -> None:
    """Found at a look, and it has come back since."""
    await shop.connected()
    await shop.certify("A")
    shop.session.machine.fiscal.fvc -= 1
    await looked_at(shop)
    assert not shop.worker.connected
    assert "went down" in shop.worker.offline_reason
    await shop.connected()


async def test_a_tax_server_s_silence_is_told_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the days, at the first look and then at none before nearly a day has gone; of a server that answers there is no event."""
    monkeypatch.setattr(line_events, "SERVER_CHECK_SECONDS", 0.0)
    messages: list[str] = []
    async with MemoryShop(tmp_path / "ledger", heartbeat=3600.0) as shop:
        shop.synchronised = True
        shop.worker.on_event = lambda event: messages.append(event.detail) if event.type == "taxserver.alert" else None
        await shop.connected()
        await looked_at(shop)
        assert messages == []
        silent_for(shop, 9)
        for later, count in (
            (0, 1),
            (HOUR, 1),
            (ALERT_EVERY - HOUR, 1),
            (ALERT_EVERY + 1, 2),
            (ALERT_EVERY + DAY // 2, 2),
        ):
            shop.box_offset = later
            await looked_at(shop)
            assert len(messages) == count, later
    assert messages == ["9", "10"]


async def test_a_tax_server_is_asked_about_hourly(shop: MemoryShop) -> None:
    """At the connection, and not at each look at the machine."""
    link = shop.worker.server_link
    assert link is not None
    silent_for(shop, 9)
    await looked_at(shop)
    assert shop.worker.server_link is link


async def test_what_a_machine_did_alone_is_known_after_a_look(shop: MemoryShop) -> None:
    """Its own reports move TC, which explains itself; an invoice of somebody else is counted; other rates are taken."""
    await shop.certify("A", 1000)
    await shop.certify("K", 500, credit=True, invoiceType="FA", creditNoteRef=f"{shop.nim}-1")
    fiscal = shop.session.machine.fiscal
    fiscal.tc += 1
    await looked_at(shop)
    assert shop.worker.counters == FiscalCounters(*shop.counters)
    assert (shop.store.ledger.peek(book_state, shop.worker.book)).unexplained == 0
    shop.session.machine.certify_foreign(total=500)
    await looked_at(shop)
    assert shop.worker.counters == FiscalCounters(*shop.counters)
    assert (shop.store.ledger.peek(book_state, shop.worker.book)).unexplained == 1
    assert not shop.worker.attention


async def test_rates_and_a_clock_of_now_are_taken_at_a_look(shop: MemoryShop) -> None:
    """Also where nothing was counted since the last one. Rates are in the ledger: sales that are deferred after a start without the machine are read with
    them."""
    shop.worker.rates = {}
    shop.clock.offset = timedelta(hours=1)
    assert abs(shop.worker.time.drift or 0.0) < 60
    await looked_at(shop)
    assert shop.worker.rates["B"] == 1800
    assert shop.worker.time.drift is not None
    assert abs(shop.worker.time.drift + 3600) < 60
    machine = shop.session.machine
    machine.change(rates={**machine.options.rates, "B": 2000})
    await looked_at(shop)
    assert shop.store.ledger.peek(book_state, shop.worker.book).rates["B"] == shop.worker.rates["B"] == 2000


@pytest.mark.parametrize("is_answered", [True, False])
async def test_what_was_settled_is_taken_up_at_its_turn(tmp_path: Path, is_answered: bool) -> None:
    """The request at the machine finishes first; then the machine is asked, and serves again. Where it gives no answer, it serves no till until
    its next connection."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=3600.0) as shop:
        await counters_gone_down(shop)
        book = shop.worker.book
        evidence = await shop.store.decisions.read(read_evidence, book)
        await shop.store.decisions.write(
            shop.store.decisions.adopt, book, evidence.state, unexplained=0, note=DecisionNote("a reset", evidence.at)
        )
        with shop.worker.queue.join():
            frames = shop.session.frames_in
            look = asyncio.ensure_future(looked_at(shop))
            await shop.until(lambda: shop.worker.waiting == 2, "the look in the line")
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert shop.session.frames_in == frames
            if not is_answered:
                shop.session.plan.add("nonsense@c1h#1")
        await look
        assert shop.session.frames_in > frames
        assert shop.worker.connected == is_answered
        await shop.connected()
        assert not shop.worker.attention


@pytest.mark.parametrize("is_lost_again", [False, True])
async def test_who_comes_while_a_machine_tells_what_became_of_an_invoice_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_lost_again: bool
) -> None:
    """The till whose invoice it was may have its answer before the machine is free, and sends its next one: no error, nor is a Z, and a retry
    waits for the outcome; also when the machine is lost once more before it is free."""
    calls: list[asyncio.Future[None]] = []
    real = Ledger.reconcile

    async def blocked_call(*arguments: Any, **named: Any) -> Any:
        calls.append(asyncio.get_running_loop().create_future())
        await calls[-1]
        return await real(*arguments, **named)

    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
        first = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(LAST, "after")
        monkeypatch.setattr(Ledger, "reconcile", blocked_call)
        shop.unplug(0.02)
        await shop.until(lambda: len(calls) == 1, "the machine is asked")
        tills = [
            asyncio.ensure_future(work) for work in (shop.certify("A"), shop.certify("B"), shop.close_period("Z-1"))
        ]
        await shop.until(lambda: shop.worker.waiting == 3, "sale and Z in the line, behind who asks")
        if is_lost_again:
            calls[0].set_exception(LineLost("once more"))
            await shop.until(lambda: len(calls) == 2, "the machine is asked again")
        assert [till.done() for till in tills] == [True, False, False]
        calls[-1].set_result(None)
        assert (await first).value.number == "A"
        with pytest.raises(DuplicateInvoice):
            await tills[0]
        assert (await tills[1]).value.number == "B"
        assert (await tills[2]).value.certs_count == 2
        assert [each.number for each in shop.on_machine] == ["A", "B"]


async def test_a_till_that_asks_again_after_a_start_hides_nothing_from_who_asks_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon that sent 38h is gone, and the till sends its invoice again, without a key, while the machine is asked what became of it: it waits
    for that, and the attempt before it is the one that is judged, and found certified."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
        gone = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(LAST, "after")
        session = shop.session
        session.unplug(asyncio.get_running_loop().time(), 0.02)
        shop.resume()
    gone.cancel()
    query: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    has_question = asyncio.Event()
    real = Attempts.all_durable

    async def blocked_call(*arguments: Any, **named: Any) -> Any:
        if shop.worker.returning:
            has_question.set()
            await query
        return await real(*arguments, **named)

    shop = MemoryShop(tmp_path / "ledger", on=session, heartbeat=3600.0)
    monkeypatch.setattr(Attempts, "all_durable", blocked_call)
    async with shop:
        await has_question.wait()
        tills = [asyncio.ensure_future(shop.certify(number)) for number in ("A", "B")]
        await shop.until(lambda: shop.worker.waiting == 2, "the other invoice in the line, behind who asks")
        query.set_result(None)
        with pytest.raises(DuplicateInvoice):
            await tills[0]
        assert (await tills[1]).value.number == "B"
        assert not shop.worker.attention
        assert [each.number for each in shop.on_machine] == ["A", "B"]


async def test_a_busy_machine_is_not_looked_at(tmp_path: Path) -> None:
    """Its work looks at it: the look does not wait for its turn, whose end is not known."""
    limits = Limits(patience=24 * 3600.0)
    async with in_service(tmp_path / "ledger", heartbeat=3600.0, limits=limits) as shop:
        frames = shop.session.frames_in
        with shop.worker.queue.join():
            await looked_at(shop)
        assert shop.session.frames_in == frames
        await looked_at(shop)
        assert shop.session.frames_in > frames
