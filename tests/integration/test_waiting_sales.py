"""Sales that are certified later: none of them holds up those behind it, and none is taken on for a client that has given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.memory_shop import LAST, MemoryShop, quick
from support.shop import NIM, invoice

from daemon.core.audit import Actor, key_hash_of
from daemon.core.errors import MachineNonsense, MachineRefused, NothingDone, RequestExpired
from daemon.core.invoice.invoice import Deferral, Invoice
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.deferred import DeferredSale, NotWaiting, NumberWaits
from daemon.core.machine.agreement import agree
from daemon.core.machine.state import Subtotal
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import deferred, uniqueness
from daemon.store.tables.events import events_after
from daemon.usecases.certification import enter_invoice
from daemon.usecases.certification.certify import dry_run
from daemon.usecases.deferred import certify_waiting
from daemon.usecases.deferred.accept import certify_or_defer, release, take_back
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers
PERSON = Actor("user:awa")
NEVER = 3600.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK", "PAUSE", "AFTER_ERROR"):
        monkeypatch.setattr(certify_waiting, name, 0.01)


@asynccontextmanager
async def working(path: Path, on: MemoryShop | None = None, **options: Any) -> AsyncIterator[MemoryShop]:
    """A shop that certifies what waits."""
    async with MemoryShop(path, on=on.session if on else None, **options) as shop:
        waiting = asyncio.ensure_future(SalesThatWait(shop.worker, pause=0.1).run())
        try:
            yield shop
        finally:
            waiting.cancel()
            await asyncio.wait([waiting])


async def defer(shop: MemoryShop, number: str, *prices: int, **changes: Any) -> DeferredSale:
    body = invoice(number, *prices, **changes)
    answered = await certify_or_defer(shop.worker, body, shop.call(body, number), is_async=True)
    assert isinstance(answered.value, DeferredSale)
    return answered.value


async def back_up_with_one_that_waits(shop: MemoryShop, path: Path, saved: Path) -> None:
    """Sale A waits in the copy, and the machine is away."""
    await shop.connected()
    await unplug(shop)
    await defer(shop, "A")
    assert backup(path, saved, at=1).clean


async def unplug(shop: MemoryShop) -> None:
    shop.session.unplug(asyncio.get_running_loop().time(), NEVER)
    shop.port.pump()
    await shop.until(lambda: not shop.worker.connected, "the machine's loss")


def state(shop: MemoryShop, number: str) -> str:
    sale = shop.store.ledger.peek(deferred.by_key, shop.worker.book, key_hash_of(number))
    return sale.state


def answers_with_nonsense(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The machine does, to sale A; its number for each time."""
    answered: list[str] = []

    def odd(sale: Invoice, subtotal: Subtotal) -> Invoice:
        if sale.number != "A":
            return agree(sale, subtotal)
        answered.append(sale.number)
        raise MachineNonsense("the subtotal differs")

    monkeypatch.setattr(enter_invoice, "agree", odd)
    return answered


async def test_one_that_the_machine_answers_with_nonsense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not hold up those behind it, and is refused once the machine has answered it so again."""
    answered = answers_with_nonsense(monkeypatch)
    async with working(tmp_path / "ledger") as shop:
        await shop.connected()
        for number in "ABC":
            await defer(shop, number)
        await shop.until(lambda: state(shop, "C") == "certified", "those behind it certified")
        await shop.until(lambda: state(shop, "A") == "refused", "its refusal")
        assert len(answered) == 2
        assert [entry.number for entry in shop.on_machine] == ["B", "C"]
    assert verify(tmp_path / "ledger").clean


async def test_a_machine_that_rounds_another_total_than_was_sold_for(tmp_path: Path) -> None:
    item = {"name": "Riz", "taxGroup": "B", "unitPrice": 103, "quantity": 1}
    async with working(tmp_path / "ledger", options=SimulatorOptions(nim=NIM, vat="down")) as shop:
        await shop.connected()
        sale = await defer(shop, "H", items=[item], priceMode="HT", payments=[{"method": "E", "amount": 122}])
        await shop.until(lambda: state(shop, "H") == "certified", "its certification")
        assert (sale.total_ttc, shop.on_machine[0].total) == (122, 121)
    assert verify(tmp_path / "ledger").problems == ()


async def test_a_look_at_the_machine_is_no_till(tmp_path: Path) -> None:
    """What waits is certified in the first pause of the tills, however often the machine is looked at."""
    async with working(tmp_path / "ledger") as shop:
        await shop.connected()

        async def look() -> None:
            while True:
                with shop.worker.queue.join() as entry:
                    await entry.wait_turn(asyncio.get_running_loop().time() + NEVER)
                    await asyncio.sleep(0.02)

        looks = asyncio.ensure_future(look())
        for number in "ABC":
            await defer(shop, number)
        await shop.until(lambda: state(shop, "C") == "certified", "all of them certified")
        looks.cancel()
    assert verify(tmp_path / "ledger").clean


@pytest.mark.logs("sale.released")
async def test_one_whose_number_the_machine_has_certified(tmp_path: Path) -> None:
    """The copy that was put back has a sale that was taken back since, and its number was used again. A person has it wait again all the same: it is
    given up, and those behind it are certified."""
    path, saved = tmp_path / "ledger", tmp_path / "saved"
    async with working(path) as before:
        await back_up_with_one_that_waits(before, path, saved)
        await take_back(before.worker, "A", by=PERSON)
        before.session.plug()
        await before.connected()
        await before.certify("A", 2000)
    restore(saved, path, at=2)
    async with working(path, on=before) as shop:
        worker = shop.worker
        await shop.decide("adopt")
        sale = shop.store.ledger.peek(deferred.by_key, worker.book, key_hash_of("A"))
        assert sale is not None
        with pytest.raises(NotWaiting):  # by its till: only a person can tell what became of it
            await take_back(worker, "A", by=PERSON)
        await release(worker, sale, "its paper is not there", by=PERSON)
        await defer(shop, "B")
        await shop.until(lambda: state(shop, "B") == "certified", "the one behind it certified")
        assert state(shop, "A") == "withdrawn"
        assert [entry.number for entry in shop.on_machine] == ["A", "B"]
    assert verify(path).clean


async def test_one_that_a_restored_copy_adopts_has_its_lines(tmp_path: Path) -> None:
    """The machine's last invoice is the sale that waits in the copy, so its lines are known: it stands in the totals, and is no foreign invoice."""
    path, saved = tmp_path / "ledger", tmp_path / "saved"
    async with working(path) as before:
        await before.connected()
        first = (await before.certify("0")).value
        await back_up_with_one_that_waits(before, path, saved)
        before.session.plug()
        await before.until(lambda: state(before, "A") == "certified", "its certification")
        receipt = before.store.ledger.peek(uniqueness.find_key, before.worker.book, key_hash_of("A"))
    restore(saved, path, at=2)
    async with working(path, on=before) as shop:
        worker, ledger = shop.worker, shop.store.ledger
        await shop.decide("adopt")
        use = ledger.peek(uniqueness.find_key, worker.book, key_hash_of("A"))
        assert receipt
        assert receipt.record
        assert use
        assert use.record
        assert use.record.invoice.items == receipt.record.invoice.items
        assert use.record.invoice.deferred is not None
        closure = (await shop.close_period()).value
        total = first.total_ttc + use.record.total_ttc
        assert (closure.certs_count, closure.total_ttc, closure.unexplained) == (2, total, 0)
        assert [event.type for event in ledger.peek(events_after, worker.book, 0, 100)].count("cert.issued") == 2
    assert verify(path).clean


async def test_rates_that_changed_while_sales_waited(tmp_path: Path) -> None:
    """A machine takes its present rates alone. With VAT in the price the customer pays the same, so the sale is certified at the present rate,
    which a warning says; a specific tax is folded. Without VAT he would owe another sum: the prices become prices with VAT."""
    taxed = {
        "name": "Bière",
        "taxGroup": "C",
        "unitPrice": 1000,
        "quantity": 2,
        "amountTtc": 2110,
        "specificTax": 100,
        "specificTaxRate": 50,
    }
    item = {"name": "Hôtel", "taxGroup": "C", "unitPrice": 1000, "quantity": 1, "taxRate": 10}
    async with working(tmp_path / "ledger") as shop:
        await shop.connected()
        await unplug(shop)
        await defer(shop, "A", items=[item], payments=[{"method": "E", "amount": 1000}])
        await defer(shop, "T", items=[taxed], payments=[{"method": "E", "amount": 2110}])
        await defer(shop, "H", items=[item], priceMode="HT", payments=[{"method": "E", "amount": 1100}])
        machine = shop.session.machine
        machine.change(rates={**machine.options.rates, "C": 500})
        shop.session.plug()
        await shop.until(lambda: state(shop, "H") == "certified", "the end of all")
        use = shop.store.ledger.peek(uniqueness.find_key, shop.worker.book, key_hash_of("A"))
        assert use
        assert use.record
        invoice = use.record.invoice
        assert (use.record.state, use.record.total_ttc) == ("certified", 1000)
        assert [(line.rate, line.ht, line.tva) for line in invoice.taxes] == [(500, 952, 48)]
        assert [warn.code for warn in invoice.warnings] == ["VAT_RATE_CHANGED"]
        assert [(entry.number, entry.total) for entry in shop.on_machine] == [("A", 1000), ("T", 2110), ("H", 1100)]
        in_ht = shop.store.ledger.peek(uniqueness.find_key, shop.worker.book, key_hash_of("H"))
        assert in_ht
        assert in_ht.record
        (line,) = in_ht.record.invoice.taxes
        assert (in_ht.record.invoice.price_mode, line.rate, line.ht, line.tva, line.ttc) == ("TTC", 500, 1048, 52, 1100)
    assert verify(tmp_path / "ledger").clean


async def test_rates_that_changed_since_the_last_look_at_the_machine(tmp_path: Path) -> None:
    """The machine refuses the line. That is no reason to give up a sale that was paid: it is certified at the rates that the machine has now."""
    async with working(tmp_path / "ledger", heartbeat=NEVER) as shop:
        await shop.connected()
        machine = shop.session.machine
        machine.change(rates={**machine.options.rates, "B": 2000})
        await defer(shop, "A")
        await shop.until(lambda: state(shop, "A") in ("certified", "refused"), "its end")
        assert [(entry.number, entry.total) for entry in shop.on_machine] == [("A", 15000)]
        use = shop.store.ledger.peek(uniqueness.find_key, shop.worker.book, key_hash_of("A"))
        assert use
        assert use.record
        assert [warn.code for warn in use.record.invoice.warnings] == ["VAT_RATE_CHANGED"]
    assert verify(tmp_path / "ledger").clean


async def test_a_till_meets_rates_that_changed_once(tmp_path: Path) -> None:
    """The machine's refusal shows them: the next request is read with the new ones."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=NEVER) as shop:
        await shop.connected()
        machine = shop.session.machine
        machine.change(rates={**machine.options.rates, "B": 2000})
        with pytest.raises(MachineRefused):
            await shop.certify("A")
        sold = (await shop.certify("A")).value
        assert [line.rate for line in sold.invoice.taxes] == [2000]


async def test_a_credit_note_shows_too_that_the_machine_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the machine has refused is tried again after any certification, and not before its time otherwise."""
    answered = answers_with_nonsense(monkeypatch)
    async with working(tmp_path / "ledger") as shop:
        await shop.connected()
        sold = (await shop.certify("S", 1000)).value
        await defer(shop, "A")
        await shop.until(lambda: answered, "its first try")
        reference = f"{sold.nim}-{sold.counters.fvc}"
        await shop.certify("C", 1000, credit=True, invoiceType="FA", creditNoteRef=reference)
        await shop.until(lambda: state(shop, "A") == "refused", "its second try")
        assert len(answered) == 2


async def test_none_is_taken_on_once_its_time_is_over(tmp_path: Path) -> None:
    """It waits for its turn until its client has given up, and then the machine dies: no client is left that wants it certified (decision 46)."""
    async with MemoryShop(tmp_path / "ledger", timers=quick(20)) as shop:
        shop.worker.defers = True
        await shop.connected()
        first = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(6)
        body, clock = invoice("B"), asyncio.get_running_loop().time
        call = msgspec.structs.replace(shop.call(body, "B"), expires=clock() + 0.3)
        late = asyncio.ensure_future(certify_or_defer(shop.worker, body, call, is_async=False))
        await shop.intents(2)
        await shop.until(lambda: clock() > call.expires, "the end of its time")
        first.cancel()
        await unplug(shop)
        with pytest.raises(RequestExpired):
            await late
        assert shop.store.ledger.peek(deferred.backlog, shop.worker.book).count == 0


async def test_none_is_taken_on_while_its_number_is_at_the_machine(tmp_path: Path) -> None:
    """It waits for what becomes of the other one, which has the number then."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=NEVER) as shop:
        await shop.connected()
        first = asyncio.ensure_future(shop.certify("A"))
        await shop.stop_at(LAST)
        later = asyncio.ensure_future(defer(shop, "A"))
        await asyncio.wait([later], timeout=0.05)
        assert not later.done()
        shop.resume()
        with pytest.raises(DuplicateInvoice):
            await later
        await first


@pytest.mark.logs("sale.deferred")
async def test_the_number_of_one_that_waits_is_certified_for_no_other_sale(tmp_path: Path) -> None:
    """The machine is free, and does not hear of it. A dry run says so too."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=NEVER) as shop:
        await shop.connected()
        await defer(shop, "A")
        with pytest.raises(NumberWaits):
            await shop.certify("A", key="of another sale")
        body = invoice("A")
        with pytest.raises(NumberWaits):
            await dry_run(shop.worker, body, shop.call(body))
        assert shop.on_machine == []


async def test_two_refused_in_a_row_are_a_fault_of_the_machine(tmp_path: Path) -> None:
    """No other one is tried until it is time for the oldest again."""
    async with MemoryShop(tmp_path / "ledger", heartbeat=NEVER) as shop:
        await shop.connected()
        for number in "ABC":
            await defer(shop, number)
        shop.session.plan.add("nonsense@33h")
        waiting = SalesThatWait(shop.worker, pause=0.0)
        for _ in range(4):
            await waiting.step()
        tried = "SELECT number FROM certification ORDER BY id"
        assert shop.store.ledger.peek(lambda connection: [row[0] for row in connection.execute(tried)]) == ["A", "B"]
        waiting.again_at = 0.0
        await waiting.step()
        assert shop.store.ledger.peek(lambda connection: connection.execute(tried).fetchall())[2:] == [("A",)]


async def test_one_whose_machine_falls_silent_says_so(tmp_path: Path) -> None:
    """What is known of the machine once its line has ended is the reason of the sale and of the outage."""
    async with MemoryShop(tmp_path / "ledger", timers=quick(), keeps_register=True) as shop:
        shop.worker.defers = True
        await shop.connected()
        await shop.certify("A")
        shop.session.plan.add("silent:3600@c0h#1")
        body = invoice("B")
        sale = (await certify_or_defer(shop.worker, body, shop.call(body, "B"), is_async=False)).value
        assert isinstance(sale, DeferredSale)
        assert (sale.outage, sale.invoice.deferred) == (1, Deferral(sale.sold_at, "no_answer", 1, NIM))


async def test_where_no_sale_is_deferred_a_lost_line_is_the_answer(tmp_path: Path) -> None:
    async with MemoryShop(tmp_path / "ledger", timers=quick()) as shop:
        await shop.connected()
        shop.session.plan.add("silent:3600@c0h#1")
        body = invoice("A")
        with pytest.raises(NothingDone):
            await certify_or_defer(shop.worker, body, shop.call(body, "A"), is_async=False)
        assert shop.store.ledger.peek(deferred.backlog, shop.worker.book).count == 0


async def test_a_key_has_its_sale_while_that_waits_and_then_its_certification(tmp_path: Path) -> None:
    """However often the till asks."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        sale, body = await defer(shop, "A"), invoice("A")
        assert sale.outage == 0
        again = await certify_or_defer(shop.worker, body, shop.call(body, "A"), is_async=True)
        assert (again.replayed, again.value) == (True, sale)
        await SalesThatWait(shop.worker, pause=0.0).step()
        again = await certify_or_defer(shop.worker, body, shop.call(body, "A"), is_async=True)
        assert (again.replayed, again.value.state, again.value.number) == (True, "certified", "A")
