"""Where a recovery could go wrong: what ends between two questions, what breaks off, what another program did."""

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.memory_shop import LAST, MemoryShop, broken_once, in_service
from support.shop import NIM

from daemon.core.errors import CreditExceedsOriginal, LineLost, MachineAttention, MachineRefused, StorageFull
from daemon.core.machine.state import FiscalCounters
from daemon.store.tables.book.attempts import unfinished
from daemon.store.tables.book.books import book_state
from daemon.usecases.worker.book_clock import BoxClock
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers
ROUNDS_DOWN = SimulatorOptions(nim=NIM, vat="down")
"""38h of an invoice with one item, counted from C3h."""


async def test_a_credit_note_that_is_certified_while_we_ask_is_found(tmp_path: Path) -> None:
    """The line is lost while the tax server checks; the check ends after the C1h of the new connection and before our cancellation."""
    async with in_service(tmp_path / "ledger", options=SimulatorOptions(nim=NIM, credit_check=30.0)) as shop:
        await shop.certify("F-1")
        credit = asyncio.ensure_future(
            shop.certify("A-1", credit=True, invoiceType="FA", creditNoteRef=f"{NIM}-1", key="k")
        )
        await shop.stop_at(LAST, "after", "out")
        shop.unplug(0.05)
        await shop.stop_at(3)
        shop.clock.offset += timedelta(seconds=31)
        shop.resume()
        assert (await credit).value.code == shop.on_machine[-1].code
        assert [i.number for i in shop.on_machine] == ["F-1", "A-1"]


async def test_an_invoice_of_which_the_machine_made_another_total_is_recognised(
    tmp_path: Path,
) -> None:
    """HT: a machine that rounds VAT down certifies a franc less than we computed (decision 24); its answer is lost; C1h settles it, in no time by
    a box whose clock stands."""
    now = time.time_ns() // 1_000_000
    box = BoxClock(lambda: now, lambda: True)
    async with in_service(tmp_path / "ledger", options=ROUNDS_DOWN, box=box) as shop:
        item = {"name": "Riz", "taxGroup": "B", "unitPrice": 103, "quantity": 1}
        sale = asyncio.ensure_future(
            shop.certify("H", items=[item], priceMode="HT", payments=[{"method": "E", "amount": 122}])
        )
        await shop.stop_at(LAST, "after")
        shop.unplug(0.05)
        record = (await sale).value
        assert (record.code, record.total_ttc, record.duration_ms) == (shop.on_machine[0].code, 121, 0)
        assert [(line.ht, line.tva, line.ttc) for line in record.invoice.taxes] == [(103, 18, 121)]
        assert record.invoice.payments[0].amount == 121


async def test_how_a_machine_rounds_is_logged_once(tmp_path: Path) -> None:
    """At its first invoice with another VAT than ours, and not at one with the same."""
    item = {"name": "Riz", "taxGroup": "B", "unitPrice": 103, "quantity": 1}
    rounded = {"items": [item], "priceMode": "HT", "payments": [{"method": "E", "amount": 122}]}
    async with in_service(tmp_path / "ledger", options=ROUNDS_DOWN) as shop:
        found = []
        for number, body in (("A", {}), ("B", rounded), ("C", rounded)):
            with capture_logs() as logs:
                await shop.certify(number, **body)
            found.append(["machine_and_ours" in line for line in logs if line["event"] == "machine.habit"])
    assert found == [[], [True], []]


async def test_nothing_is_certified_over_an_end_that_is_not_stored(shop: MemoryShop) -> None:
    """A refusal cannot be stored: the next invoice, begun before, is not closed on the machine until it is."""
    shop.session.plan.add("lose-invoice@31#1")
    refused = asyncio.ensure_future(shop.certify("A"))
    task = asyncio.ensure_future(shop.stop_at(3))
    second = asyncio.ensure_future(shop.certify("B"))
    await task
    await shop.disk(writable=False)
    shop.resume()
    with pytest.raises(LineLost):
        await refused
    await asyncio.sleep(0.3)
    assert not shop.on_machine
    await shop.disk(writable=True)
    assert (await second).value.code == shop.on_machine[0].code
    ended = [record.state async for record in shop.store.journal.iterate(shop.worker.book, 0, 1 << 60, 0)]
    assert ended == ["abandoned", "certified"]


async def test_a_key_whose_attempt_waits_for_an_operator_is_told_so(tmp_path: Path) -> None:
    """Attempts left unfinished by a machine in attention are never answered as if they were certified."""
    async with in_service(tmp_path / "ledger") as shop:
        sales = [asyncio.ensure_future(shop.certify(number, key=number)) for number in ("A", "B")]
        await shop.stop_at(LAST, "after")
        await shop.intents(2)
    machine = shop.session.machine
    await asyncio.gather(*sales, return_exceptions=True)
    shop.session.resume()
    machine.certify_foreign(total=500)
    async with MemoryShop(tmp_path / "ledger", on=shop.session) as shop:
        await shop.until(lambda: shop.worker.attention, "attention")
        for number in ("A", "B"):
            with pytest.raises(MachineAttention):
                await shop.certify(number, key=number)
        with pytest.raises(MachineAttention):
            await shop.close_period()
        assert [
            record.number for record in await shop.store.decisions.read(unfinished, shop.worker.book, "disputed")
        ] == ["A"]


async def test_a_strangers_invoice_before_one_of_unknown_outcome_is_found_at_the_next_start(tmp_path: Path) -> None:
    """Ours is certified, the other one counts as unexplained, and a person is asked."""
    async with in_service(tmp_path / "ledger") as shop:
        shop.session.plan.add("foreign@C0#1")
        sale = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(LAST + 1, "after")  # with a C1h, since the counters differ
    await asyncio.gather(sale, return_exceptions=True)
    shop.session.resume()
    async with MemoryShop(tmp_path / "ledger", on=shop.session) as shop:
        await shop.until(lambda: shop.worker.attention, "attention")
        assert [record.number for record in await shop.certified()] == ["A"]
        assert shop.store.ledger.peek(book_state, shop.worker.book).unexplained == 1


async def test_a_z_over_counters_that_went_down_closes_nothing(shop: MemoryShop) -> None:
    """The same found by the Z itself."""
    await shop.certify("A")
    shop.session.machine.fiscal.fvc -= 1
    with pytest.raises(LineLost):
        await shop.close_period()
    assert not shop.worker.connected
    await shop.until(lambda: "went down" in shop.worker.attention, "attention")
    assert (shop.store.ledger.peek(book_state, shop.worker.book)).z_number == 0


async def test_a_machine_that_says_nothing_of_its_server_is_put_into_service(tmp_path: Path) -> None:
    """C2h answered with rubbish is a warning, not a reason to leave a machine out of service."""
    async with in_service(tmp_path / "ledger", faults="nonsense@C2") as shop:
        assert (await shop.certify("A")).value.state == "certified"


async def test_a_mistake_of_ours_does_not_end_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception during the recovery is logged, and the line is tried again."""
    breaks = broken_once(monkeypatch, "reconcile")
    async with in_service(tmp_path / "ledger") as shop:
        assert not breaks
        assert (await shop.certify("A")).value.state == "certified"


@pytest.mark.parametrize("step", ["amend", "end", "certify"])
@pytest.mark.logs("attempt.failed")
async def test_a_mistake_of_ours_in_an_attempt_leaves_it_to_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The till hears that something failed; the attempt gets its true end, its number is free or taken as the machine says."""
    broken_once(monkeypatch, step)
    item = {"name": "Riz", "taxGroup": "B", "unitPrice": 103, "quantity": 1}
    sale = {"items": [item], "priceMode": "HT", "payments": [{"method": "E", "amount": 122}]}
    async with in_service(tmp_path / "ledger", options=ROUNDS_DOWN) as shop:
        if step == "end":
            shop.session.plan.add("lose-invoice@31#1")
        with pytest.raises(ZeroDivisionError):
            await shop.certify("A", **sale)
        await shop.until(lambda: shop.worker.attempts.find("A") is None and shop.worker.connected, "the recovery")
        if step == "certify":
            assert [r.code for r in await shop.certified()] == [shop.on_machine[0].code]
        else:
            assert (await shop.certify("A", **sale)).value.code == shop.on_machine[0].code
        assert len(shop.on_machine) == 1


async def test_a_certification_that_cannot_be_stored_is_found_under_its_key_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The till hears that the machine certified and what to do; once the disk takes it, the same request gets the certification."""
    monkeypatch.setattr("daemon.usecases.certification.attempt.STORE_PATIENCE", 0.1)
    async with in_service(tmp_path / "ledger") as shop:
        sale = asyncio.ensure_future(shop.certify("A", key="k"))
        await shop.disk_lost_at(LAST)
        with pytest.raises(StorageFull, match="certified the invoice"):
            await sale
        retry = asyncio.ensure_future(shop.certify("A", key="k"))
        await asyncio.sleep(0.05)
        await shop.disk(writable=True)
        answered = await retry
        assert (answered.value.code, answered.replayed) == (shop.on_machine[0].code, True)
        assert len(shop.on_machine) == 1


@pytest.mark.parametrize("faults", ["lose-invoice@38#1", "lose-invoice@33#1,unplug:0.02@38#1"])
async def test_a_machine_that_lost_the_invoice_has_nothing_against_it(shop: MemoryShop, faults: str) -> None:
    """It says E: to 38h, or to 33h with the cable pulled before it can be asked whether an invoice is open, but only because it
    restarted: the till gets an error to come again, not a refusal."""
    shop.session.plan.add(faults)
    with pytest.raises(LineLost):
        await shop.certify("A", key="k")
    await shop.connected()
    assert (await shop.certify("A", key="k")).value.code == shop.on_machine[0].code


async def test_a_line_that_is_lost_at_a_cancellation_has_that_as_its_reason(tmp_path: Path) -> None:
    """The machine's total of a credit note is above the sale's, and the cable is pulled before it is cancelled."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
        line, note = {"name": "x", "taxGroup": "B", "unitPrice": 3}, {"credit": True, "invoiceType": "FA"}
        await shop.certify("F-1", priceMode="HT", items=[line], payments=[{"method": "E", "amount": 4}])
        shop.session.plan.add("unplug-before:0.05@38#1")
        with pytest.raises(CreditExceedsOriginal):
            await shop.certify(
                *("A-1",), priceMode="HT", items=[line | {"unitPrice": 4}], payments=[{"method": "E", "amount": 5}],
                creditNoteRef=f"{NIM}-1", **note,
            )  # fmt: skip
        assert "could not be cancelled" in shop.worker.offline_reason
        await shop.until(lambda: shop.session.machine.invoice is None, "the cancellation at the next connection")


async def test_a_refusal_of_38h_is_told_in_the_machines_words(tmp_path: Path) -> None:
    """A credit note that the tax server cannot check: refused, cancelled, and its number free. What the machine counted meanwhile is known."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
        await shop.certify("F-1")
        fiscal = shop.session.machine.fiscal
        fiscal.reachable = False
        fiscal.tc += 1
        with pytest.raises(MachineRefused, match="No contact"):
            await shop.certify("A-1", credit=True, invoiceType="FA", creditNoteRef=f"{NIM}-1")
        assert shop.worker.counters == FiscalCounters(*shop.counters)
        shop.session.machine.fiscal.reachable = True
        await shop.certify("A-1", credit=True, invoiceType="FA", creditNoteRef=f"{NIM}-1")
        assert [entry.number for entry in shop.on_machine] == ["F-1", "A-1"]


async def test_counters_that_went_down_are_noticed_before_the_next_invoice(shop: MemoryShop) -> None:
    """An idle machine was reset or exchanged under the same NIM: attention at the next look, and nothing is certified on it."""
    before = shop.session.machine.snapshot()
    await shop.certify("F-1")
    shop.session.machine.restore(before)
    await shop.until(lambda: shop.worker.attention, "attention")
    assert "went down" in shop.worker.attention
    await shop.connected()
    with pytest.raises(MachineAttention):
        await shop.certify("F-2")
    assert [entry.number for entry in shop.on_machine] == ["F-1"]
