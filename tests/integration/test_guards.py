"""What a small mistake in the order of things would undo, each of which no test saw once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.memory_shop import MemoryShop, around_write

from daemon.core.errors import (
    CreditExceedsOriginal,
    KeyReused,
    LineLost,
    MachineBusy,
    MachineError,
    MachineOffline,
    StorageError,
)
from daemon.core.machine.state import FiscalCounters
from daemon.store.ledger import Ledger
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import book_state
from daemon.usecases.worker.machine_worker import Limits

pytestmark = pytest.mark.quick_timers

LAST = 6
"""38h of an invoice with one item, counted from C3h."""


async def test_a_z_without_its_machine_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the disk nor the line: the operator is told at once that the machine is away."""
    calls: list[object] = []

    async def check_free_space(*_: object) -> None:
        calls.append("the disk")

    monkeypatch.setattr(Ledger, "check_free_space", check_free_space)
    async with MemoryShop(tmp_path / "ledger") as shop:
        with pytest.raises(MachineOffline):
            await shop.close_period()
        assert calls == []
        await shop.connected()
        assert (await shop.close_period()).value.z_number == 1
        assert calls == ["the disk"]


async def test_an_end_that_cannot_be_stored_is_tried_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk stays full for longer than one more try: the attempt's end is stored once there is room, and the next sale is certified
    without a restart."""
    monkeypatch.setattr("daemon.usecases.certification.attempt.STORE_RETRY", 0.01)
    tries = 0

    async def end(write: Callable[[], Awaitable[Any]]) -> Any:
        nonlocal tries
        tries += 1
        return await write()

    around_write(monkeypatch, "end", end)
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        shop.session.plan.add("nonsense@33#1")
        sale = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(3)
        await shop.intents(1)
        await shop.disk(writable=False)
        shop.resume()
        with pytest.raises(MachineError):
            await sale
        await shop.until(lambda: tries >= 4, "the fourth try to store the end")
        await shop.disk(writable=True)
        assert (await shop.certify("B")).value.state == "certified"
        assert not shop.store.ledger.peek(attempts.unfinished, shop.worker.book)


async def test_nothing_is_judged_before_the_operator_has_decided(tmp_path: Path) -> None:
    """A book in attention with an attempt that has no end yet, after a restart: the attempt is as it was until somebody has decided,
    although the machine could tell what became of it."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        sale = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(LAST, "after")
        shop.session.unplug(asyncio.get_running_loop().time(), 3600)
        shop.port.pump()
        await shop.until(lambda: not shop.worker.connected, "the outage")
        await shop.worker.close(0)
        with pytest.raises(LineLost):
            await sale
        await shop.store.ledger.set_attention(shop.worker.book, "somebody has to look", at=shop.worker.now())
    shop.session.resume()
    shop.session.plug()
    async with MemoryShop(tmp_path / "ledger", on=shop.session) as shop:
        await shop.connected()
        assert "somebody has to look" in shop.worker.attention
        assert [record.number for record in shop.store.ledger.peek(attempts.unfinished, shop.worker.book)] == ["A"]


async def test_somebody_else_s_invoice_during_an_outage_is_counted(tmp_path: Path) -> None:
    """A line that comes back with more than was known before: while this process has met the machine, that is no attention."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        await shop.certify("A")
        shop.session.unplug(asyncio.get_running_loop().time(), 0.02)
        shop.port.pump()
        await shop.until(lambda: not shop.worker.connected, "the outage")
        shop.session.machine.certify_foreign(total=500)
        await shop.connected()
        assert not shop.worker.attention
        await shop.certify("B")
        assert (await shop.close_period()).value.unexplained == 1


async def test_a_key_in_use_is_refused_to_another_request_at_once(tmp_path: Path) -> None:
    """While the first request of a key is on the line, one with another body is told so; it does not wait for the end of the first."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        sale = asyncio.ensure_future(shop.certify("A", key="k"))
        await shop.stop_at(LAST)
        with pytest.raises(KeyReused):
            await shop.certify("B", key="k")
        assert not sale.done()
        shop.resume()
        assert (await sale).value.number == "A"
        assert len(shop.on_machine) == 1


async def test_the_last_sale_before_a_stop_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put off until the answers are out is done at the stop, however soon it comes: the event of the last sale is not lost."""
    monkeypatch.setattr("daemon.usecases.worker.machine_worker.ANSWERS_FIRST", 3600.0)
    messages: list[str] = []
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        shop.worker.on_event = lambda event: messages.append(event.type)
        await shop.certify("A")
        assert messages == []
        await shop.worker.close(10.0)
        assert messages == ["cert.issued"]


async def test_two_credit_notes_of_one_invoice_while_the_disk_refuses(tmp_path: Path) -> None:
    """The machine has certified the first one, and it is not in the ledger yet: the second waits for it to be there before it is compared with
    what is left of the original, and is refused."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        await shop.certify("A", 1000)
        credit = {"credit": True, "invoiceType": "FA", "creditNoteRef": "EL02000015-1-1"}
        notes = [asyncio.ensure_future(shop.certify(number, 1000, **credit)) for number in ("K-1", "K-2")]
        await shop.stop_at(LAST)
        await shop.intents(2)
        await shop.disk(writable=False)
        shop.resume()
        await shop.until(lambda: len(shop.on_machine) == 2 and len(shop.worker.queue) == 1, "the second one's turn")
        await asyncio.sleep(0.05)  # for what it must not do meanwhile
        await shop.disk(writable=True)
        assert (await notes[0]).value.state == "certified"
        with pytest.raises(CreditExceedsOriginal):
            await notes[1]
        assert len(shop.on_machine) == 2


async def test_only_a_credit_note_of_one_invoice_is_compared_with_it(tmp_path: Path) -> None:
    """Neither a sale nor a rebate on no single invoice is warned about an original; a credit note of an unknown one is."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        sale = (await shop.certify("A", 1000)).value
        credit = {"credit": True, "invoiceType": "FA", "creditNoteNature": "COR"}
        rebate = (await shop.certify("K-1", 500, creditNoteRef="RRR", **{**credit, "creditNoteNature": "RRR"})).value
        unknown = (await shop.certify("K-2", 500, creditNoteRef="EL02000099-1-1", **credit)).value
        rows = [[warning.code for warning in record.invoice.warnings] for record in (sale, rebate, unknown)]
        assert rows == [[], [], ["ORIGINAL_NOT_CHECKED"]]


async def test_a_sale_is_told_how_long_it_took(tmp_path: Path) -> None:
    """In milliseconds, from its arrival until it was about to be stored: no more than the till waited, and at the
    machine no more than that."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        began = asyncio.get_running_loop().time()
        record = (await shop.certify("A")).value
        waited = asyncio.get_running_loop().time() - began
        assert 0 < record.duration_ms <= 1000 * waited + 1
        assert 0 <= record.line_ms <= record.duration_ms + 1


async def test_a_screen_is_told_of_all_that_happens(tmp_path: Path) -> None:
    """A sale, a Z, an outage, the line that is back, and what an operator has to look at, once, with what it is about."""
    messages: list[tuple[str, int, str]] = []
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        shop.worker.on_event = lambda event: messages.append((event.type, event.ref, event.detail))
        sale = (await shop.certify("A")).value
        await shop.until(lambda: messages, "the sale's event")
        closure = (await shop.close_period()).value
        shop.session.unplug(asyncio.get_running_loop().time(), 0.02)
        shop.port.pump()
        await shop.until(lambda: not shop.worker.connected, "the outage")
        await shop.connected()
        await shop.store.ledger.set_attention(shop.worker.book, "look", at=shop.worker.now())
        for _ in range(2):
            shop.worker.take_state(shop.store.ledger.peek(book_state, shop.worker.book))
    types = ["cert.issued", "closure.created", "mcf.disconnected", "mcf.connected", "mcf.attention"]
    assert [type_ for type_, _, _ in messages[:5]] == types
    assert [ref for _, ref, _ in messages[:2]] == [sale.id, closure.z_number]
    assert messages[2][2]
    assert messages[4][2] == "look"
    assert [type_ for type_, _, _ in messages].count("mcf.attention") == 1


async def test_a_repeat_waits_for_the_first_only_so_long(tmp_path: Path) -> None:
    """The same request under the same key, while the first one is on the line: told that it still runs once its patience is over."""
    async with MemoryShop(tmp_path / "ledger", limits=Limits(patience=0.1, doubt_patience=0.1)) as shop:
        await shop.connected()
        sale = asyncio.ensure_future(shop.certify("A", key="k"))
        await shop.stop_at(LAST)
        with pytest.raises(MachineBusy, match="still running"):
            await shop.certify("A", key="k")
        shop.resume()
        assert (await sale).value.state == "certified"


async def test_a_z_at_a_machine_that_counts_anew_ends_the_connection(tmp_path: Path) -> None:
    """Nothing is closed, and nobody gets that machine before it was asked what it is."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        shop.worker.attempts.counters = FiscalCounters(9, 9, 9)
        with pytest.raises(LineLost, match="went down"):
            await shop.close_period()
        assert not shop.worker.connected
        assert not shop.store.ledger.peek(attempts.unfinished, shop.worker.book)


async def test_an_intent_that_was_refused_while_it_waited_is_nothing_to_the_machine(tmp_path: Path) -> None:
    """The disk refuses it before its turn has come: the till is told so, and no frame is sent for it."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=3600.0) as shop:
        await shop.connected()
        with shop.worker.queue.join():
            await shop.disk(writable=False)
            sale = asyncio.ensure_future(shop.certify("A"))
            await shop.until(lambda: len(shop.worker.queue) == 2, "its place in the line")
            await shop.until(lambda: shop.worker.attempts.find("A") is None, "the refusal of its intent")
            frames = shop.session.frames_in
        with pytest.raises(StorageError):
            await sale
        assert shop.session.frames_in == frames
        await shop.disk(writable=True)
        assert (await shop.certify("A")).value.state == "certified"
