"""What a small mistake in the order of things would undo, each of which no test saw once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.memory_shop import DEFAULTS, LAST, MemoryShop, around_write, in_service
from support.shop import invoice

from daemon.core.errors import (
    CreditExceedsOriginal,
    LineLost,
    MachineBusy,
    MachineError,
    MachineOffline,
    StorageError,
)
from daemon.core.invoice.rules import PSVB_RATES, Rules, StampDuty
from daemon.store.ledger import Ledger
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import attempts
from daemon.usecases.certification.certify import certify, dry_run
from daemon.usecases.certification.idempotency import answered_once
from daemon.usecases.worker.machine_worker import Limits
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers


@pytest.mark.parametrize(("key", "times"), [("k", 1), ("", 2)])
async def test_what_is_done_outside_the_ledger_is_done_once_under_its_key(tmp_path: Path, key: str, times: int) -> None:
    """A print, say, whose request is repeated; over a restart too."""
    done: list[bytes] = []

    async def act() -> bytes:
        done.append(b"paper %d" % len(done))
        return done[-1]

    answers = []
    for _ in range(2):
        async with MemoryShop(tmp_path / "ledger") as shop:
            answers.append(await answered_once(shop.worker, shop.call({}, key), act, "print"))
    assert ([answer.value for answer in answers], answers[1].replayed) == ([done[0], done[-1]], bool(key))
    assert len(done) == times


async def test_a_z_without_its_machine_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the disk nor the line: the operator hears at once that the machine is away."""
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
    tries: list[float] = []

    async def end(write: Callable[[], Awaitable[Any]]) -> Any:
        tries.append(asyncio.get_running_loop().time())
        return await write()

    around_write(monkeypatch, "end", end)
    async with in_service(tmp_path / "ledger") as shop:
        shop.session.plan.add("nonsense@33#1")
        sale = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(3)
        await shop.intents(1)
        await shop.disk(writable=False)
        shop.resume()
        with pytest.raises(MachineError):
            await sale
        await shop.until(lambda: len(tries) >= 4, "the fourth try to store the end")
        assert tries[3] - tries[1] >= 0.01
        await shop.disk(writable=True)
        assert (await shop.certify("B")).value.state == "certified"
        assert not shop.store.ledger.peek(attempts.unfinished, shop.worker.book)


async def test_nothing_is_judged_before_the_operator_has_decided(tmp_path: Path) -> None:
    """A book in attention with an attempt that has no end yet, after a restart: the attempt is as it was until somebody has decided,
    although the machine could tell what became of it."""
    async with in_service(tmp_path / "ledger") as shop:
        sale = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(LAST, "after")
        shop.unplug(3600)
        await shop.until(lambda: not shop.worker.connected, "the outage")
        await shop.worker.close(0)
        with pytest.raises(LineLost):
            await sale
        await shop.store.ledger.set_attention(shop.worker.book, "somebody has to look", at=shop.worker.now())
    shop.session.resume()
    shop.session.plug()
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        assert "somebody has to look" in shop.worker.attention
        assert [record.number for record in shop.store.ledger.peek(attempts.unfinished, shop.worker.book)] == ["A"]


@pytest.mark.logs("machine.unexplained")
async def test_somebody_else_s_invoice_during_an_outage_is_counted(shop: MemoryShop) -> None:
    """A line that comes back with more than was known before: while this process has met the machine, that is no attention."""
    await shop.certify("A")
    shop.unplug(0.02)
    await shop.until(lambda: not shop.worker.connected, "the outage")
    shop.session.machine.certify_foreign(total=500)
    await shop.connected()
    assert not shop.worker.attention
    await shop.certify("B")
    assert (await shop.close_period()).value.unexplained == 1


async def test_the_last_sale_before_a_stop_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put off until the answers are out is done at the stop, however soon it comes: the event of the last sale is not lost."""
    monkeypatch.setattr("daemon.usecases.worker.machine_worker.ANSWERS_FIRST", 3600.0)
    messages: list[str] = []
    async with in_service(tmp_path / "ledger") as shop:
        shop.worker.on_event = lambda event: messages.append(event.type)
        await shop.certify("A")
        assert messages == []
        await shop.worker.close(10.0)
        assert messages == ["cert.issued"]


async def test_two_credit_notes_of_one_invoice_while_the_disk_refuses(shop: MemoryShop) -> None:
    """The machine has certified the first one, and it is not in the ledger yet: the second waits for it to be there before it is compared with
    what is left of the original, and is refused."""
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


async def test_a_credit_note_without_vat_is_compared_by_the_machine_s_total(tmp_path: Path) -> None:
    """Three francs without VAT are 3.54 F, of which a machine that rounds down makes 3 and one that rounds up 4 (decision 24): the same line is credited
    in full, at what was certified, and with a franc more nothing is. So with a machine that rounds as we do, in both modes."""
    for vat, total in (("down", 3), ("half-up", 4)):
        options = SimulatorOptions(vat=vat, credit_check=0)  # type: ignore[arg-type]  # one of its words
        async with in_service(tmp_path / vat, options=options) as shop:
            line: dict[str, Any] = {"priceMode": "HT", "items": [{"name": "x", "taxGroup": "B", "unitPrice": 3}]}
            sale = (await shop.certify("A", **line, payments=[{"method": "E", "amount": 4}])).value
            assert sale.total_ttc == total
            credit: dict[str, Any] = {"credit": True, "invoiceType": "FA", "creditNoteRef": "EL02000015-1-1"}
            with pytest.raises(CreditExceedsOriginal):
                await shop.certify("K-0", total + 1, **credit)
            more: dict[str, Any] = {**line, "items": [{**line["items"][0], "unitPrice": 4}]}
            with pytest.raises(CreditExceedsOriginal):
                await shop.certify("K-1", **more, payments=[{"method": "E", "amount": 5}], **credit)
            paid = [{"method": "E", "amount": total}]
            assert (await shop.certify("K-2", **line, payments=paid, **credit)).value.total_ttc == total
            with pytest.raises(CreditExceedsOriginal):
                await shop.certify("K-3", **line, payments=paid, **credit)
            assert [entry.total for entry in shop.on_machine] == [total, total]


async def test_the_stamp_duty_is_on_what_the_machine_has_in_cash(tmp_path: Path) -> None:
    """4 238 F without VAT are 5 000.84 F: of a machine that rounds down 5 000, which carry 30 F (Tax Code, art. 519), not the 50 F of 5 001. What
    the till itself names stays."""
    defaults = msgspec.structs.replace(DEFAULTS, rules=Rules(stamp_duty=StampDuty(is_charged=True)))
    options = SimulatorOptions(vat="down", credit_check=0)
    async with in_service(tmp_path / "ledger", options=options, defaults=defaults) as shop:
        line: dict[str, Any] = {"priceMode": "HT", "items": [{"name": "x", "taxGroup": "B", "unitPrice": 4238}]}
        paid = [{"method": "E", "amount": 5001}]
        sale = (await shop.certify("A", **line, payments=paid)).value
        assert (sale.total_ttc, sale.invoice.stamp_duty) == (5000, 30)
        named = (await shop.certify("B", **line, payments=paid, stampDuty=40)).value
        assert (named.total_ttc, named.invoice.stamp_duty) == (5000, 40)


@pytest.mark.parametrize(("is_charged", "duty"), [(True, 30), (False, 0)])
async def test_a_duty_that_begins_at_the_machines_total_is_of_sales_alone(
    tmp_path: Path, *, is_charged: bool, duty: int
) -> None:
    """847 F without VAT are 999.46 F: of a machine that rounds up 1 000, where the duty begins. None on a credit note, nor where the shop charges none."""
    defaults = msgspec.structs.replace(DEFAULTS, rules=Rules(stamp_duty=StampDuty(is_charged=is_charged)))
    options = SimulatorOptions(vat="up", credit_check=0)
    async with in_service(tmp_path / "ledger", options=options, defaults=defaults) as shop:
        line: dict[str, Any] = {"priceMode": "HT", "items": [{"name": "x", "taxGroup": "B", "unitPrice": 847}]}
        paid = [{"method": "E", "amount": 999}]
        sale = (await shop.certify("A", **line, payments=paid)).value
        assert (sale.total_ttc, sale.invoice.stamp_duty) == (1000, duty)
        credit: dict[str, Any] = {"credit": True, "invoiceType": "FA", "creditNoteRef": "EL02000015-1-1"}
        note = (await shop.certify("K", **line, payments=paid, **credit)).value
        assert (note.total_ttc, note.invoice.stamp_duty) == (1000, 0)


async def test_only_a_credit_note_of_one_invoice_is_compared_with_it(shop: MemoryShop) -> None:
    """Neither a sale nor a rebate on no single invoice is warned about an original; a credit note of an unknown one is."""
    sale = (await shop.certify("A", 1000)).value
    credit = {"credit": True, "invoiceType": "FA", "creditNoteNature": "COR"}
    rebate = (await shop.certify("K-1", 500, creditNoteRef="RRR", **{**credit, "creditNoteNature": "RRR"})).value
    unknown = (await shop.certify("K-2", 500, creditNoteRef="EL02000099-1-1", **credit)).value
    rows = [[warning.code for warning in record.invoice.warnings] for record in (sale, rebate, unknown)]
    assert rows == [[], [], ["ORIGINAL_NOT_CHECKED"]]


async def test_an_intent_that_was_refused_while_it_waited_is_nothing_to_the_machine(tmp_path: Path) -> None:
    """The disk refuses it before its turn has come: the till hears so, and no frame is sent for it."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
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


async def test_a_sale_whose_turn_was_never_near_leaves_its_number_free(tmp_path: Path) -> None:
    """It waited in vain behind more sales than prepare their turn: nothing was written of it, and it is certified once the machine has time."""
    limits = Limits(patience=0.3, doubt_patience=5.0, aggregation_delay=0.01)
    async with in_service(tmp_path / "ledger", limits=limits, heartbeat=3600.0) as shop:
        with shop.worker.queue.join_first():
            sales = [shop.certify(f"S-{number}") for number in range(shop.worker.queue.ahead + 2)]
            answers = await asyncio.gather(*sales, return_exceptions=True)
        assert {type(answer) for answer in answers} == {MachineBusy}
        assert (await shop.certify(f"S-{len(sales) - 1}")).value.state == "certified"


async def test_a_credit_note_takes_off_what_its_sale_withheld(tmp_path: Path) -> None:
    """The rate of the sale counts after a change of the shop's, also in a dry run, and nothing of it is left in the totals; another sale has the
    present rate."""
    async with in_service(tmp_path / "ledger") as shop:
        worker = shop.worker
        sale = (await shop.certify("A", 10_000, psvbGroup="B")).value
        rules = msgspec.structs.replace(worker.defaults.rules, psvb_rates={**PSVB_RATES, "B": 150})
        worker.defaults = msgspec.structs.replace(worker.defaults, rules=rules)
        credit = invoice("C", 10_000, psvbGroup="B", invoiceType="FA", creditNoteRef=f"{sale.nim}-{sale.counters.fvc}")
        dry = await dry_run(worker, credit, shop.call(credit), credit=True)
        credited = (await certify(worker, credit, shop.call(credit), credit=True)).value
        assert dry.psvb == credited.invoice.psvb == sale.invoice.psvb is not None
        sold = (await shop.certify("D", 10_000, psvbGroup="B")).value
        assert (sold.invoice.psvb.rate, sold.invoice.psvb.amount) == (150, 150)
    assert verify(tmp_path / "ledger").clean
