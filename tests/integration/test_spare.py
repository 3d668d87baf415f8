"""A spare machine stands for one that is out of order (arrêté 2025-0049, article 6): each number once, on one machine or the other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.memory_shop import LAST, MemoryShop, activated
from support.shop import NIM, invoice
from support.spare import PERSON, SPARE, PairedShop, paired

from daemon.app import runtime
from daemon.core.clock import DAY
from daemon.core.errors import LineLost, MachineAttention, MachineBusy, MachineOffline
from daemon.core.invoice.number import Series
from daemon.core.ledger.attempt import DuplicateInvoice, Record
from daemon.core.ledger.decision import DecisionRefused
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.ledger.entries import SpareDecided
from daemon.core.ledger.take_over import NotInUse, NumberReserved, TakeOverRefused
from daemon.core.report.fiscal_reports import ZReport
from daemon.settings import load
from daemon.store.maintenance.verify import verify
from daemon.store.tables import z_papers
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import deferred, entries
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.calendar_closures import calendar_list
from daemon.store.tables.book.originals import taken_of
from daemon.usecases.certification.idempotency import find_request
from daemon.usecases.deferred.accept import certify_or_defer, take_back
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from daemon.usecases.reports import journal, report
from daemon.usecases.reports.acts import make_copy, move_cash, note_z_paper, printed_copy
from daemon.usecases.reports.close_period import close_period
from daemon.usecases.worker.aggregate import tick

pytestmark = pytest.mark.quick_timers


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[PairedShop]:
    async with paired(tmp_path / "ledger") as shop:
        yield shop
    assert verify(tmp_path / "ledger").clean


def decided(shop: PairedShop, at: MemoryShop) -> list[SpareDecided]:
    """What the chain of that machine's book has of the spare."""
    placed = shop.store.ledger.peek(entries.entries, at.worker.book)
    return [each.entry for each in placed if isinstance(each.entry, SpareDecided)]


def numbers(at: MemoryShop) -> list[str]:
    return [entry.number for entry in at.on_machine]


async def certified_later(shop: PairedShop, key: str) -> Record:
    async with asyncio.timeout(60):
        while True:
            found = await find_request(shop.in_use, key)
            if found and found.status == "certified" and found.record:
                return found.record
            await asyncio.sleep(0.01)


async def test_while_a_take_over_lasts_the_spare_certifies_under_its_own_name(shop: PairedShop) -> None:
    with pytest.raises(MachineOffline, match="is the spare of"):
        await shop.spare.certify("A")
    with pytest.raises(TakeOverRefused):
        await shop.take_back()
    await shop.first_dies()
    await shop.take_over("burnt")
    with pytest.raises(TakeOverRefused):
        await shop.take_over()
    record = (await shop.certify("A")).value
    assert (record.nim, record.code) == (SPARE, shop.spare.on_machine[0].code)
    with pytest.raises(NotInUse):  # and not that it is offline, which would be an outage
        await shop.first.certify("B")
    await shop.first_returns()
    assert (await shop.certify("B")).value.nim == SPARE  # until a person takes it back
    await shop.take_back("repaired")
    assert (await shop.certify("C")).value.nim == NIM
    with pytest.raises(MachineOffline):
        await shop.spare.certify("D")
    for at in (shop.first, shop.spare):
        assert [(each.step, each.reason) for each in decided(shop, at)] == [
            ("taken over", "burnt"),
            ("taken back", "repaired"),
        ]
    newest = await shop.store.ledger.read(newest_entries, 2)
    assert [(entry.action, entry.actor) for entry in newest] == [
        ("machine.taken_back", "user:awa"),
        ("machine.taken_over", "user:awa"),
    ]


@pytest.mark.parametrize("at_spare", [False, True])
async def test_a_number_and_a_key_of_either_machine_count_at_the_other(shop: PairedShop, at_spare: bool) -> None:
    """The number also where it is spelled in another way that is equal; the key is replayed by whichever machine is in use."""
    if at_spare:
        await shop.take_over()
    before = (await shop.certify("F-a", key="k")).value
    await (shop.take_back() if at_spare else shop.take_over())
    again = await shop.certify("F-a", key="k")
    assert (again.replayed, again.value.code) == (True, before.code)
    found = await find_request(shop.in_use, "k")
    assert (found.status, found.record.code) == ("certified", before.code)
    with pytest.raises(DuplicateInvoice) as refused:
        await shop.certify("f-A")
    assert (refused.value.record.code, refused.value.record.nim) == (before.code, before.nim)
    assert len(shop.first.on_machine) + len(shop.spare.on_machine) == 1


async def test_a_duplicate_waits_for_the_one_of_its_invoice_that_is_in_the_printer(shop: PairedShop) -> None:
    """At either machine: a print that fails gives its number to the next one. Duplicates of other invoices go on."""
    first, other = [(await shop.certify(number)).value for number in "AB"]
    call, worker, spare = shop.first.call({}), shop.first.worker, shop.spare.worker
    with pytest.raises(OSError, match="paper"):
        async with printed_copy(worker, first, call) as copy:
            raise OSError("no paper")
    async with printed_copy(worker, first, call) as again:
        waits = asyncio.ensure_future(make_copy(spare, first, call))
        assert await make_copy(spare, other, call) == 1
    assert (copy, again, await waits) == (1, 1, 2)


@pytest.mark.parametrize("was_certified", [True, False])
async def test_what_is_in_doubt_at_the_dead_machine_stays_so_until_it_answers_again(
    shop: PairedShop, was_certified: bool
) -> None:
    """Its key answers in doubt, its number is free for no sale; then the machine says what became of it."""
    sale = await shop.dies_in_doubt("A", "k", certified=was_certified)
    with pytest.raises(LineLost):
        await sale
    await shop.take_over()
    with pytest.raises(LineLost):
        await shop.certify("A", key="k")
    with pytest.raises(MachineAttention, match="not known yet whether EL02000015-1 has certified"):
        await shop.certify("A")
    found = await find_request(shop.in_use, "k")
    assert found.status == "in_doubt"
    assert (await shop.certify("B")).value.nim == SPARE  # it holds up nothing else
    await shop.first_returns()
    answered = await shop.certify("A", key="k")
    assert answered.replayed is was_certified
    assert (answered.value.nim == NIM) is was_certified
    assert [*numbers(shop.first), *numbers(shop.spare)].count("A") == 1


async def test_a_person_may_say_that_the_dead_machine_has_not_certified(shop: PairedShop) -> None:
    """With a reason, which both chains keep; the number is free again."""
    sale = await shop.dies_in_doubt("A", certified=False)
    with pytest.raises(LineLost):
        await sale
    decisions = shop.store.decisions
    with pytest.raises(DecisionRefused):  # not while its own machine has to answer for it
        await decisions.carry_out(
            await decisions.case(shop.first.worker.book), "not-certified", reason="no paper", at=shop.in_use.now()
        )
    await shop.take_over()
    case = await decisions.case(shop.first.worker.book)
    assert case.attempt.number == "A"
    await decisions.carry_out(case, "not-certified", reason="no paper came out", at=shop.in_use.now())
    for at in (shop.first, shop.spare):
        decision = decided(shop, at)[-1]
        assert (decision.step, decision.number, decision.reason) == ("not certified", "A", "no paper came out")
    assert (await shop.certify("A")).value.nim == SPARE
    assert not (await decisions.case(shop.first.worker.book)).is_open
    await shop.first_returns()
    await shop.take_back()
    with pytest.raises(DuplicateInvoice):  # at the machine that answers again too, which knows of no doubt any more
        await shop.certify("A")


async def test_a_person_may_say_so_of_a_spare_that_has_died_in_its_turn(shop: PairedShop) -> None:
    """The repaired machine was taken back: the spare's invoice in doubt is decided without the spare; one of the machine in use never is."""
    decisions = shop.store.decisions
    await shop.first_dies()
    await shop.take_over()
    sale = asyncio.ensure_future(shop.certify("A"))
    await shop.spare.stop_at(LAST)
    await shop.is_cut(shop.spare)
    await asyncio.wait([sale])
    assert isinstance(sale.exception(), LineLost)
    assert not (await decisions.case(shop.spare.worker.book)).is_open
    await shop.first_returns()
    await shop.take_back()
    with pytest.raises(NumberReserved):
        await shop.certify("A")
    case = await decisions.case(shop.spare.worker.book)
    await decisions.carry_out(case, "not-certified", reason="no paper came out", at=shop.in_use.now())
    for at in (shop.first, shop.spare):
        assert (decided(shop, at)[-1].step, decided(shop, at)[-1].number) == ("not certified", "A")
    assert (await shop.certify("A")).value.nim == NIM


async def test_what_waits_for_the_dead_machine_is_sent_to_the_spare_at_its_next_request(shop: PairedShop) -> None:
    task = asyncio.ensure_future(shop.certify("A"))
    await shop.first.stop_at(2)
    waits = asyncio.ensure_future(shop.certify("B", key="b"))
    await shop.first.until(lambda: shop.first.worker.waiting == 2, "two at the machine")
    shop.first.unplug(1e9)
    await asyncio.wait([task])
    await shop.take_over()
    with pytest.raises(MachineBusy, match="is being certified"):
        await shop.certify("B")
    with pytest.raises((MachineBusy, MachineOffline)):
        await asyncio.wait_for(waits, shop.first.limits.patience / 2)
    assert (await shop.certify("B", key="b")).value.nim == SPARE
    task.exception()


async def test_taking_back_waits_for_what_is_on_the_line_of_the_spare(shop: PairedShop) -> None:
    await shop.take_over()
    sale = asyncio.ensure_future(shop.certify("A"))
    await shop.spare.stop_at(4)
    back = asyncio.ensure_future(shop.take_back())
    await asyncio.sleep(0.05)
    assert not back.done()
    shop.spare.resume()
    assert (await sale).value.nim == SPARE
    await back
    assert (await shop.certify("B")).value.nim == NIM


async def test_a_credit_note_finds_its_sale_in_either_book(shop: PairedShop) -> None:
    sale = (await shop.certify("A")).value
    await shop.take_over()
    note = await shop.certify(
        "N", credit=True, invoiceType="FA", creditNoteRef=f"{NIM}-{sale.counters.fvc}", creditNoteNature="RAM"
    )
    assert note.value.nim == SPARE
    assert "ORIGINAL_NOT_CHECKED" not in [warn.code for warn in note.value.invoice.warnings]
    assert await shop.store.journal.read(taken_of, [sale.id for sale in [sale]]) == [note.value.total_ttc]


async def test_reports_answer_for_the_book_in_use_and_say_for_whom_it_stands(shop: PairedShop) -> None:
    await shop.certify("A", 1000)
    await shop.take_over()
    await shop.certify("B", 500)
    await shop.first.until(lambda: shop.in_use.aggregate and shop.in_use.aggregate.seq, "the tick")
    x = await report.x_report(shop.in_use)
    assert (x.nim, x.stands_for, x.total_ttc) == (SPARE, NIM, 500)
    a = await report.a_report(shop.in_use, 0, shop.in_use.now() + 1)
    assert (a.nim, a.stands_for, a.total_ttc) == (SPARE, NIM, 500)
    z = msgspec.json.decode((await close_period(shop.in_use, shop.first.call({}))).value.body, type=ZReport)
    assert (z.nim, z.stands_for, z.total_ttc) == (SPARE, NIM, 500)
    assert (await report.x_report(shop.first.worker)).stands_for is msgspec.UNSET
    call = shop.first.call({})
    for worker, amount in ((shop.first.worker, 100), (shop.spare.worker, 20)):
        await move_cash(worker, {"kind": "deposit", "amount": amount, "reason": "float"}, call)
    assert report.drawer(await report.open_periods(shop.first.worker)).deposits == 120
    await shop.take_back()
    x = await report.x_report(shop.spare.worker)
    assert x.stands_for == NIM, "it stood for the other one in a part of its period"
    (record,) = await shop.first.certified()
    assert (await journal.find(shop.in_use, record.code)).number == "A"


async def test_the_period_of_a_dead_machine_is_closed_by_the_counters_known_last(shop: PairedShop) -> None:
    await shop.certify("A")
    await shop.first_dies()
    with pytest.raises(MachineOffline):
        await shop.first.close_period()
    await shop.take_over()
    z = msgspec.json.decode((await shop.first.close_period()).value.body, type=ZReport)
    assert (z.nim, z.certs_count, z.without_machine, z.unexplained) == (NIM, 1, True, 0)
    await shop.first_returns()
    z = msgspec.json.decode((await shop.first.close_period()).value.body, type=ZReport)
    assert (z.certs_count, z.without_machine, z.unexplained) == (0, msgspec.UNSET, 0)


async def test_a_key_that_has_closed_a_period_does_so_once_on_either_machine(shop: PairedShop) -> None:
    closed = await close_period(shop.in_use, shop.first.call({}, "z"))
    await shop.take_over()
    again = await close_period(shop.in_use, shop.first.call({}, "z"))
    assert (again.replayed, again.value.report_id) == (True, closed.value.report_id)


async def test_a_sale_that_waits_is_certified_by_the_machine_in_use_alone(shop: PairedShop) -> None:
    """Accepted while its machine was out of order, certified by the spare; accepted by the spare, certified by the machine that is back."""
    await shop.first_dies()
    await shop.defer("A", "a")
    await shop.take_over()
    record = await certified_later(shop, "a")
    assert (record.nim, numbers(shop.spare)) == (SPARE, ["A"])
    await shop.unplug(shop.spare)
    await shop.defer("B", "b")
    await shop.first_returns()
    with pytest.raises((DuplicateInvoice, MachineBusy)):
        await shop.defer("A", "c")
    await shop.take_back()
    assert (await certified_later(shop, "b")).nim == NIM
    assert (numbers(shop.first), numbers(shop.spare)) == (["B"], ["A"])


async def test_a_repaired_machine_certifies_nothing_that_waits_before_it_is_taken_back(shop: PairedShop) -> None:
    """Also of what was accepted for it."""
    await shop.first_dies()
    await shop.unplug(shop.spare)
    await shop.defer("A", "a")
    await shop.take_over()
    await shop.first_returns()
    await SalesThatWait(shop.first.worker, pause=0.0).step()
    assert numbers(shop.first) == []
    shop.spare.session.plug()
    assert (await certified_later(shop, "a")).nim == SPARE


async def test_a_sale_that_waits_stands_in_the_reports_of_the_machine_that_will_certify_it(shop: PairedShop) -> None:
    """A day is closed in both books of a pair: two Z that both said it would say it twice."""

    def waiting() -> list[int]:
        return [shop.store.ledger.peek(deferred.backlog, each.worker.book).count for each in (shop.first, shop.spare)]

    await shop.first_dies()
    await shop.unplug(shop.spare)
    await shop.defer("A", "a")
    assert waiting() == [1, 0]
    await shop.take_over()
    assert waiting() == [0, 1]
    await shop.defer("B", "b")
    assert waiting() == [0, 2]
    await shop.take_back()
    assert waiting() == [2, 0]


@pytest.mark.parametrize("number", ["B", ""])
@pytest.mark.logs("certification.ended")
async def test_a_request_that_is_repeated_after_a_take_back_waits_for_the_one_at_the_spare(
    shop: PairedShop, number: str
) -> None:
    """Its first try stands in the spare's queue until then, and is accepted for later: the repetition under the same key
    gets that answer, with the till's number and with the box's."""
    body = {key: value for key, value in invoice(number).items() if value}

    async def sell(key: str, sale: dict[str, Any]) -> Record | DeferredSale:
        call = shop.first.call(sale, key)
        return (await certify_or_defer(shop.in_use, sale, call, is_async=False, series=Series())).value

    for at in (shop.first, shop.spare):
        at.worker.defers = True
    await shop.take_over()
    before = [asyncio.ensure_future(sell(f"key {n}", invoice(f"A{n}"))) for n in range(8)]
    await shop.spare.stop_at(LAST)
    waits = asyncio.ensure_future(sell("key", body))
    back = asyncio.ensure_future(shop.take_back())
    await asyncio.sleep(0)
    shop.spare.resume()
    await back
    again = await sell("key", body)
    assert isinstance(again, DeferredSale)
    assert again == await waits
    await asyncio.gather(*before)
    await shop.first.until(lambda: again.number in numbers(shop.first), "certified later")
    assert sorted(numbers(shop.first) + numbers(shop.spare)) == sorted({f"A{n}" for n in range(8)} | {again.number})


async def test_a_sale_is_taken_on_while_a_spare_that_was_never_plugged_in_stands_for_the_machine(
    shop: PairedShop,
) -> None:
    """Validated by the rates of the machine, which is of the same taxpayer; certified once the spare is there."""
    await shop.first_dies()
    await shop.unplug(shop.spare)
    shop.spare.worker.rates = {}
    await shop.take_over()
    sale = await shop.defer("A", "key")
    shop.spare.session.plug()
    await shop.spare.connected()
    await shop.spare.until(
        lambda: shop.store.ledger.peek(deferred.by_id, shop.in_use.book, sale.id).state == "certified", "certified"
    )


async def test_a_spare_of_another_taxpayer_certifies_nothing(shop: PairedShop) -> None:
    shop.spare.worker.ifu = "00099999Z"
    assert "another taxpayer" in shop.spare.worker.obstacle
    await shop.take_over()
    with pytest.raises(MachineAttention, match="another taxpayer"):
        await shop.certify("A")


@pytest.mark.logs("machine.other_taxpayer")
async def test_two_machines_that_both_get_another_taxpayer_are_a_pair_again(shop: PairedShop) -> None:
    """Not while one of them has the former; then a number is once for the next one, on both."""
    books = [each.worker.book for each in (shop.first, shop.spare)]
    for each, former, nim in zip((shop.first, shop.spare), books, ("EL02000015-2", "EL02000099-2"), strict=True):
        await shop.certify("A", key=nim)
        activated(each.session, nim, reset=True, ifu="00099999X")
        each.session.unplug(asyncio.get_running_loop().time(), 0.02)
        await each.until(lambda: each.worker.book.id != former.id and each.worker.connected, "the other book")  # noqa: B023  at once
    await shop.take_over()
    with pytest.raises(DuplicateInvoice):
        await shop.certify("A")


@pytest.mark.logs("sale.withdrawn")
async def test_a_sale_that_waits_is_taken_back_at_whichever_machine_is_in_use(shop: PairedShop) -> None:
    """Accepted by the machine that is dead now, taken back while its spare is away too: both chains can be read, and its number is free."""
    await shop.first_dies()
    await shop.unplug(shop.spare)
    await shop.defer("A", "a")
    await shop.take_over()
    found = await take_back(shop.in_use, "a", by=PERSON)
    assert found.status == "abandoned"
    assert await take_back(shop.in_use, "a", by=PERSON) == found
    assert await take_back(shop.in_use, "unknown", by=PERSON) is None
    again = await shop.defer("A", "b")
    assert await shop.workers.deferred_at(again.address) == (shop.in_use, again)
    assert await shop.workers.deferred_at("unknown") == (None, None)


async def test_a_number_that_either_machine_cannot_keep_is_refused_at_both(tmp_path: Path) -> None:
    """A sale that waits is certified by whichever is in use then."""
    machine = '[[machine]]\nnim = "{}"\nport = "/dev/{}"\nenabled = false\n'.format
    spare = f'spare_for = "{NIM}"\n[machine.habits]\ncode_page = "cp1252"\n'
    file = tmp_path / "mcfd.toml"
    file.write_text('[storage]\npath = "l"\n[sandbox]\nenabled = false\n' + machine(NIM, 1) + machine(SPARE, 2) + spare)
    async with runtime.build(load(file, {})) as built:
        assert [worker.defaults.code_page for worker in built.workers] == ["cp1252"] * 2


async def test_paper_of_the_other_machines_z_is_noted_in_its_book(shop: PairedShop) -> None:
    """By `report_id`, which names a Z of either machine; a Z of the own book with the same number stays unprinted."""
    ledger = shop.store.ledger
    books = [each.worker.book for each in (shop.first, shop.spare)]
    for book in books:
        await ledger.write(z_papers.resume, book)
    await shop.take_over()
    closures = [(await each.close_period()).value for each in (shop.first, shop.spare)]
    for book in books:
        await ledger.write(z_papers.note, book, 1, is_printed=False)
    await note_z_paper(shop.first.worker, closures[1].report_id)
    assert [ledger.peek(z_papers.unprinted, book) for book in books] == [(1,), ()]
    await note_z_paper(shop.first.worker, closures[0].report_id)
    assert [ledger.peek(z_papers.unprinted, book) for book in books] == [(), ()]


async def test_a_clock_that_is_fast_for_a_while_closes_no_month_of_an_idle_spare(shop: PairedShop) -> None:
    """Nor does it move its book: its months are closed when the machine in use has come to the next one, with a sale
    that closes that machine's own."""
    await shop.first_dies()
    await shop.take_over()
    await shop.certify("A")
    await shop.spare.close_period()
    await shop.first_returns()
    await shop.take_back()
    await shop.certify("B")
    spare, ledger = shop.spare.worker, shop.store.ledger

    async def months(ahead: int) -> int:
        for each in (shop.first, shop.spare):
            each.box_offset, each.synchronised = ahead, True
        await tick(spare)
        return len(ledger.peek(calendar_list, spare.book, "month", limit=9))

    before = ledger.peek(book_state, spare.book).last_at
    assert await months(31 * DAY) == 0
    assert ledger.peek(book_state, spare.book).last_at == before
    await shop.certify("C")
    assert ledger.peek(calendar_list, shop.in_use.book, "month", limit=9) == []
    await tick(shop.in_use)
    assert len(ledger.peek(calendar_list, shop.in_use.book, "month", limit=9)) > 0
    assert await months(31 * DAY) > 0
