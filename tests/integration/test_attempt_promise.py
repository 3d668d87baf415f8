"""Ways in which an invoice that the machine certified got lost, or was certified twice; each was reproduced once (docs/reliability.md)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.memory_shop import LAST, MemoryShop, around_write, in_service
from support.shop import NIM

from bridge.machine import LinkedMachine
from bridge.replies.answers import Closed
from daemon.core.audit import Actor, Call
from daemon.core.errors import LineLost, MachineRefused, OutcomeNotStored
from daemon.store.tables.audit import broken_entry, newest_entries
from daemon.usecases.reports import inspect
from simulator.machine.fiscal_memory import RememberedInvoice
from simulator.machine.options import SimulatorOptions
from simulator.machine.working_state import Stage

pytestmark = pytest.mark.quick_timers


async def test_a_stop_during_disk_trouble_lets_nothing_past_an_outcome_that_is_not_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A is certified and the disk does not take it; its till asks again, B waits before its 38h, and the daemon is stopped: B is not
    certified over A, so the next start finds A as the machine's last invoice."""
    async with in_service(tmp_path / "ledger") as shop:
        monkeypatch.setattr("daemon.usecases.certification.attempt.STORE_PATIENCE", 0.1)
        first = asyncio.ensure_future(shop.certify("A", key="a"))
        await shop.stop_at(LAST)
        second = asyncio.ensure_future(shop.certify("B", key="b"))
        await shop.intents(2)
        await shop.disk(writable=False)
        shop.resume()
        with pytest.raises(OutcomeNotStored):
            await first
        again = asyncio.ensure_future(shop.certify("A", key="a"))
        await shop.until(lambda: shop.session.machine.stage is Stage.PAID, "B ready to be closed")
        await asyncio.sleep(0.05)
        await shop.worker.close(0.3)
        await asyncio.gather(again, second, return_exceptions=True)
        await shop.disk(writable=True)
    assert [entry.number for entry in shop.on_machine] == ["A"]
    monkeypatch.undo()
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        assert [record.number for record in await shop.certified()] == ["A"]
        answered = await shop.certify("A", key="a")
        assert (answered.value.code, answered.replayed) == (shop.on_machine[0].code, True)
        await shop.certify("B", key="b")
    assert [entry.number for entry in shop.on_machine] == ["A", "B"]


async def test_an_intent_that_is_being_committed_is_no_concern_of_recover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is found again in the moment between the commit of an intent and the news of it: the attempt is certified, and is not
    abandoned in the ledger."""
    committed, result = asyncio.Event(), asyncio.Event()

    async def begin(write: Callable[[], Awaitable[int]]) -> int:
        attempt_id = await write()
        committed.set()
        await result.wait()
        return attempt_id

    async with in_service(tmp_path / "ledger") as shop:
        first = asyncio.ensure_future(shop.certify("A", key="a"))
        await shop.stop_at(3)
        around_write(monkeypatch, "begin", begin)
        second = asyncio.ensure_future(shop.certify("B", key="b"))
        await committed.wait()
        shop.unplug(0.02)
        await shop.until(lambda: len(shop.ports) > 1 and shop.worker.connected, "a new connection")
        await asyncio.sleep(0.05)
        result.set()
        with pytest.raises(LineLost, match="nothing was certified"):
            await first
        assert (await second).value.code == shop.on_machine[0].code
        assert [record.number for record in await shop.certified()] == ["B"]
        assert [entry.number for entry in shop.on_machine] == ["B"]


@pytest.mark.logs("certification.found")
async def test_a_machine_that_says_number_already_certified_is_believed(shop: MemoryShop) -> None:
    """The ledger holds the first attempt as abandoned, wrongly; the machine refuses the second because it has certified the number. Its
    last invoice is that one, with our total and type: that certification is the answer, and nothing is certified under another number."""
    shop.session.plan.add("cut-before:0.02@38#1")
    with pytest.raises(Exception, match="nothing was certified"):
        await shop.certify("A", key="a")
    await shop.connected()
    entry = shop.session.machine.certify_foreign(number="A", total=15000)
    answered = await shop.certify("A", key="a")
    assert answered.value.code == entry.code
    assert len(shop.on_machine) == 1
    assert [record.number for record in await shop.certified()] == ["A"]


@pytest.mark.parametrize(("on_machine", "query"), [(15000, 7000), (7000, 15000), (7000, 7000)])
async def test_a_number_that_the_machine_has_certified_for_another_amount_is_refused(
    shop: MemoryShop, on_machine: int, query: int
) -> None:
    """Its last invoice is that of the earlier attempt, or of this one, or neither; only what is both is our certification."""
    shop.session.plan.add("cut-before:0.02@38#1")
    with pytest.raises(Exception, match="nothing was certified"):
        await shop.certify("A", 15000)
    await shop.connected()
    shop.session.machine.certify_foreign(number="A", total=on_machine)
    with pytest.raises(MachineRefused):
        await shop.certify("A", query)
    assert not await shop.certified()


async def test_an_answer_to_an_earlier_38h_is_not_this_one_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes seconds late, after a restart, and its SEQ is the same by chance: C1h has the code of our invoice, and that is the answer."""
    messages: list[Closed] = []
    real = LinkedMachine.close_invoice

    async def close_invoice(machine: LinkedMachine, total: int, *, credit: bool) -> Closed:
        messages.append(await real(machine, total, credit=credit))
        return messages[0]

    monkeypatch.setattr(LinkedMachine, "close_invoice", close_invoice)
    async with in_service(tmp_path / "ledger") as shop:
        records = [(await shop.certify(number)).value for number in ("F-1", "F-2", "F-3")]
        assert [record.code for record in records] == [entry.code for entry in shop.on_machine]


async def test_somebody_elses_invoice_seen_by_the_heartbeat_is_known_from_then_on(tmp_path: Path) -> None:
    """A look at the idle machine finds it: a doubt afterwards is decided by the counters, a restart is no attention, and the next Z says
    that there was one."""
    async with in_service(tmp_path / "ledger") as shop:
        await shop.certify("F-1")
        shop.session.machine.certify_foreign(number="X-1", total=500)
        await shop.until(lambda: shop.worker.counters.fvc == 2, "the look")
        sale = asyncio.ensure_future(shop.certify("F-2", key="k"))
        await shop.stop_at(LAST, "after")
        shop.unplug(0.02)
        assert (await sale).value.code == shop.on_machine[-1].code
        shop.session.machine.certify_foreign(number="X-2", total=500)
        await shop.until(lambda: shop.worker.counters.fvc == 4, "the look")
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        assert not shop.worker.attention
        assert (await shop.close_period()).value.unexplained == 2


@pytest.mark.logs("machine.left_open")
async def test_an_invoice_that_somebody_left_open_is_cancelled_once(shop: MemoryShop) -> None:
    """C0h is refused because an invoice is open: it is cancelled, ours is entered, and the till hears nothing of it. So is one
    that is open at the next connection."""
    shop.session.machine.leave_open()
    assert shop.session.machine.stage is Stage.OPEN
    assert (await shop.certify("A")).value.code == shop.on_machine[0].code
    shop.session.machine.leave_open()
    shop.unplug(0.02)
    await shop.until(lambda: not shop.worker.connected, "the loss")
    await shop.connected()
    assert shop.session.machine.stage is not Stage.OPEN


async def test_who_cancelled_an_open_invoice_is_in_the_audit_log(shop: MemoryShop) -> None:
    """Once, with key and address; asking again when nothing is open is no act and no entry."""
    machine = shop.session.machine
    machine.execute(0xC0, f"1,Caisse 1,{machine.options.ifu},FV,TTC,1,LEFT-OPEN".encode())
    query = Call("r-1", key="k-1", fingerprint=b"cancel", by=Actor("key:3", "192.168.1.20"))
    first = await inspect.cancel_pending(shop.worker, query)
    again = await inspect.cancel_pending(shop.worker, query)
    nothing = await inspect.cancel_pending(shop.worker, Call("r-2", by=Actor("key:4")))
    assert [b'"wasPending":true' in done.value for done in (first, again, nothing)] == [True, True, False]
    found = [
        entry for entry in await shop.store.ledger.read(newest_entries, 100) if entry.action == "pending.cancelled"
    ]
    rows = [(entry.actor, entry.address, entry.subject) for entry in found]
    assert rows == [("key:3", "192.168.1.20", f"{shop.worker.book.nim} live")]
    assert await shop.store.ledger.read(broken_entry) is None


@pytest.mark.parametrize(("number", "code", "kind"), [("X,1", "", "FV"), ("X-1", "", "FV"), ("X-1", "C" * 24, "ZZ")])
async def test_a_strangers_last_invoice_does_not_make_the_machine_unreadable(
    shop: MemoryShop, number: str, code: str, kind: str
) -> None:
    """A comma in its number, no code, a type that we do not know: C1h is read all the same, and our invoices go on."""
    fiscal = shop.session.machine.fiscal
    fiscal.last = RememberedInvoice(number, code, "20260101000000", kind, 500)
    shop.unplug(0.02)
    await shop.until(lambda: len(shop.ports) > 1 and shop.worker.connected, "a new connection")
    assert (await shop.certify("A")).value.code == shop.on_machine[0].code


async def test_intents_that_were_never_sent_are_not_counted_as_incomplete(tmp_path: Path) -> None:
    """A crash with one invoice on the line and two waiting: one incomplete sale at most stands in the next Z."""
    async with in_service(tmp_path / "ledger") as shop:
        sales = [asyncio.ensure_future(shop.certify(number)) for number in ("A", "B", "C")]
        await shop.stop_at(LAST)
        await shop.intents(3)
        await shop.disk(writable=False)  # as a power cut would: nothing more is written down
    await asyncio.gather(*sales, return_exceptions=True)
    shop.session.cut_power(0.0, 0.0)
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        closed = (await shop.store.ledger.aggregate(shop.worker.book)).running
        assert closed == {"incomplete": 1}


async def test_a_credit_reference_beyond_any_counter_is_not_checked(shop: MemoryShop) -> None:
    """One that names no sale of the ledger, however great: the machine is asked, and refuses it."""
    await shop.certify("F-1")
    with pytest.raises(MachineRefused):
        await shop.certify("A-1", credit=True, invoiceType="FA", creditNoteRef=f"{NIM}-{10**18 - 1}")


async def test_the_intent_is_durable_before_38h_and_nothing_waits_for_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 29: C3h to 35h go out while the disk is still at the intent; 38h does not, until it is durable."""
    durable = asyncio.Event()

    async def begin(write: Callable[[], Awaitable[int]]) -> int:
        await durable.wait()
        return await write()

    around_write(monkeypatch, "begin", begin)
    async with in_service(tmp_path / "ledger") as shop:
        sale = asyncio.ensure_future(shop.certify("A"))
        await shop.until(lambda: shop.session.machine.stage is Stage.PAID, "everything but 38h")
        await asyncio.sleep(0.05)
        assert not shop.on_machine
        durable.set()
        assert (await sale).value.code == shop.on_machine[0].code


@pytest.mark.logs("machine.unexplained", "machine.reconciled", "certification.ended")
async def test_somebody_else_s_invoice_before_an_export_is_counted(tmp_path: Path) -> None:
    """On a machine that counts exports in TC alone the invoice of another program is not taken for the export: the Z tells it."""
    options = SimulatorOptions(nim=NIM, fvc_local=True)
    async with in_service(tmp_path / "ledger", options=options) as shop:
        sale = asyncio.ensure_future(shop.certify("A", invoiceType="EV"))
        await shop.stop_at(1)
        shop.session.machine.certify_foreign(invoice_type="FA", total=500)
        shop.resume()
        await sale
        assert (await shop.close_period()).value.unexplained == 1
