"""A machine that is activated anew: the same taxpayer goes on in the same book, another one begins another (decision 33)."""

import asyncio
import contextlib
import json
from pathlib import Path

import msgspec
import pytest
from support.memory_shop import PATIENCE, SECOND, MemoryShop, activated, in_service
from support.shop import invoice

from common.language import Text
from common.language.reasons import from_stored
from daemon.cli.book import read_book
from daemon.core.audit import DAEMON, key_hash_of
from daemon.core.errors import CreditExceedsOriginal, InvalidRequest, MachineAttention, NothingDone
from daemon.core.ledger.attempt import Attempt, DuplicateInvoice
from daemon.core.ledger.paper import PaperInvoice
from daemon.core.ledger.verdict import Evidence
from daemon.core.report.receipt import receipt
from daemon.doctor.ledger import check_ledger
from daemon.settings import Settings, load
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import attempts, deferred, outages
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.closures import closures_between
from daemon.store.tables.keys import create_key
from daemon.usecases.deferred.accept import certify_or_defer
from daemon.usecases.delivery.events import events_for
from daemon.usecases.reports.journal import credits_of
from daemon.usecases.worker.machine_worker import Limits
from simulator.line.session import LineSession, Point
from simulator.machine.fiscal_memory import Snapshot
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers


async def first_activation(path: Path) -> LineSession:
    """Two sales, a Z, a sale."""
    async with in_service(path) as shop:
        await shop.certify("A", 1000)
        await shop.certify("B", 2000)
        await shop.close_period()
        await shop.certify("C", 3000)
    return shop.session


async def test_an_older_ledger_of_a_machine_that_was_activated_since_needs_a_person(tmp_path: Path) -> None:
    """Counters of another activation do not say what it has certified that the copy lacks."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    session = await first_activation(path)
    backup(path, copy, at=1)
    async with in_service(path, on=session) as shop:
        await shop.certify("D", 4000)
    activated(session, reset=True)
    restore(copy, path, at=2)
    async with MemoryShop(path, on=session) as shop:
        await shop.until(lambda: shop.worker.attention or shop.worker.connected, "the machine looked at")
        assert "activated anew since" in str(shop.worker.attention)


async def test_a_credit_note_finds_its_original_in_its_own_epoch(tmp_path: Path) -> None:
    """FVC 1 of the first activation was 1000, that of the second 4000: each name has its own, and each sale shows its own notes."""
    session = await first_activation(tmp_path / "ledger")
    activated(session, reset=True)
    async with in_service(tmp_path / "ledger", on=session) as shop:
        await shop.certify("D", 4000)
        await shop.certify("K-1", 4000, credit=True, invoiceType="FA", creditNoteRef=f"{SECOND}-1")
        with pytest.raises(CreditExceedsOriginal, match="4001"):
            await shop.certify("K-2", 1, credit=True, invoiceType="FA", creditNoteRef=f"{SECOND}-1")
        with pytest.raises(CreditExceedsOriginal):
            await shop.certify("K-3", 1001, credit=True, invoiceType="FA", creditNoteRef="EL02000015-1-1")
        await shop.certify("K-4", 1000, credit=True, invoiceType="FA", creditNoteRef="EL02000015-1-1")
        sales = [record for record in await shop.certified() if record.number in ("A", "D")]
        assert [sale.counters.fvc for sale in sales if sale.counters] == [1, 1]
        listed = {sale.number: [note.number for note in await credits_of(shop.worker, sale)] for sale in sales}
        assert listed == {"A": ["K-4"], "D": ["K-1"]}
        with pytest.raises(InvalidRequest, match="lacks the activation counter"):
            await shop.certify("K-5", 1, credit=True, invoiceType="FA", creditNoteRef="EL02000015-1")
        shop.worker.configured_nim = "EL02000015"  # a till may then name it so too, and means the present activation
        with pytest.raises(CreditExceedsOriginal) as caught:
            await shop.certify("K-6", 1, credit=True, invoiceType="FA", creditNoteRef="EL02000015-1")
        assert caught.value.original_ttc == 4000
    assert verify(tmp_path / "ledger").problems == ()


async def test_a_credit_note_on_a_name_that_this_book_never_had_is_not_checked_against_another_sale(
    tmp_path: Path,
) -> None:
    """The machine worked as -1 before mcfd came, and began to count again as -2: what -1 called FVC 1 is no sale of this ledger."""
    async with in_service(tmp_path / "ledger", options=SimulatorOptions(nim=SECOND)) as shop:
        await shop.certify("A", 1000)
        answered = await shop.certify("K-1", 1500, credit=True, invoiceType="FA", creditNoteRef="EL02000015-1-1")
        assert "ORIGINAL_NOT_CHECKED" in [warn.code for warn in answered.value.invoice.warnings]
        await shop.certify("K-2", 1000, credit=True, invoiceType="FA", creditNoteRef=f"{SECOND}-1")
        assert await credits_of(shop.worker, (await shop.certified())[0])


async def test_an_intent_that_waited_through_an_activation_belongs_to_its_outcome(tmp_path: Path) -> None:
    """Written down under -1, certified under -2: receipt and look-up have it under -2."""
    async with in_service(tmp_path / "ledger", limits=Limits(patience=PATIENCE, aggregation_delay=0.01)) as shop:
        await shop.certify("A", 1000)
        shop.session.pause_at(Point(shop.session.frames_in + 1, "before", "in"))
        first = asyncio.ensure_future(shop.certify("B", 2000))
        waiting = asyncio.ensure_future(shop.certify("C", 3000))
        await shop.intents(2)
        activated(shop.session, reset=True)
        shop.resume()
        receipts = [receipt((await till).value) for till in (first, waiting)]
        assert [(each.nim, each.fvc) for each in receipts] == [(SECOND, 1), (SECOND, 2)]
        with pytest.raises(CreditExceedsOriginal) as caught:
            await shop.certify("K-1", 3001, credit=True, invoiceType="FA", creditNoteRef=f"{SECOND}-2")
        assert caught.value.original_ttc == 3000
    assert verify(tmp_path / "ledger").problems == ()


@pytest.mark.logs("machine.other_taxpayer")
async def test_another_taxpayer_begins_another_book(tmp_path: Path) -> None:
    """Its numbers, periods and Z begin anew, and keys of the first one do not work on it; the first one's book stays as it was."""
    session = await first_activation(tmp_path / "ledger")
    activated(session, reset=True, ifu="00099999X")
    async with MemoryShop(tmp_path / "ledger", on=session) as shop:
        old = shop.worker.book
        key = await shop.store.ledger.write(create_key, "EL02000015-1", "live", "till", at=1)
        await shop.connected()
        assert shop.worker.book.id != old.id
        assert not shop.worker.attention
        await shop.certify("A", 500)
        assert (await shop.close_period()).value.z_number == 1
        assert shop.store.key_ring.find(key) is None
        new = await shop.store.ledger.write(create_key, SECOND, "live", "till", at=1)
        assert shop.store.key_ring.find(new) is not None
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert shop.worker.book.id != old.id
        assert (shop.store.ledger.peek(book_state, old)).last_seq == 3
    assert verify(tmp_path / "ledger").problems == ()


@pytest.mark.parametrize(
    ("executed", "reset", "state"),
    [
        (True, False, "certified"),
        (False, False, "abandoned"),
        (True, True, "disputed"),
        (False, True, "disputed"),
        (False, "and sold again", "disputed"),  # that number, for the second one
    ],
)
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_an_answer_lost_before_another_taxpayer_is_settled_in_the_first_ones_book(
    tmp_path: Path, executed: bool, reset: bool | str, state: str, is_restarted: bool
) -> None:
    """Its last invoice says what became of it; where the memory is gone, an operator is asked about the first one's book, and the second one's is in
    service."""
    session = await first_activation(tmp_path / "ledger")

    def activate() -> None:
        activated(session, reset=bool(reset), ifu="00099999X")
        if reset == "and sold again":
            session.machine.certify_foreign(number="D", total=4000)

    async with in_service(tmp_path / "ledger", on=session) as shop:
        old = shop.worker.book
        sale = asyncio.ensure_future(shop.certify("D", 4000, key="d"))
        await shop.stop_at(6, "after" if executed else "before")
        (attempt,) = shop.store.ledger.peek(attempts.unfinished, old)
        if not is_restarted:
            activate()
            shop.resume()
            session.unplug(asyncio.get_running_loop().time(), 0.02)
            await shop.until(lambda: shop.worker.book.id != old.id and shop.worker.connected, "the other book")
            with (
                pytest.raises(MachineAttention if state == "disputed" else NothingDone)
                if state != "certified"
                else contextlib.nullcontext()
            ):
                assert (await sale).value.code == shop.on_machine[-1].code
    await asyncio.gather(sale, return_exceptions=True)
    if is_restarted:
        activate()
        shop.resume()
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert (shop.worker.book.id == old.id, shop.worker.attention) == (False, "")
        record = shop.store.ledger.peek(attempts.find_record, old, attempt.id)
        assert record.state == state
        case = await shop.store.decisions.case(old)
        assert bool(case.state.attention) == (state == "disputed")
        if state == "disputed":
            evidence = Evidence(2, await shop.worker.present().state())
            case = await shop.store.decisions.case(old, evidence)
            assert (case.choices, case.obstacle("certified")) == (("certified", "not-certified"), "machine unknown")
            await shop.store.decisions.carry_out(case, "not-certified", reason="not on paper", at=3)
            assert not (shop.store.ledger.peek(book_state, old)).attention
        if state == "certified":
            assert (receipt(record).nim, receipt(record).ifu) == ("EL02000015-1", "00084440Y")
        await shop.certify("E", 500)
    assert verify(tmp_path / "ledger").problems == ()


async def test_the_open_period_of_a_taxpayer_is_closed_when_the_machine_has_another(tmp_path: Path) -> None:
    """No key of before works any more, so no till could close it: a Z by the counters that the ledger knew last, once; one that an operator's decision
    opens again is closed at the next start. Where the first one comes back, its numbers go on."""

    async def closed(shop: MemoryShop) -> list[tuple[int, int, bool]]:
        found = await shop.store.ledger.read(closures_between, old, start=0, end=1 << 60)
        assert not any(z.unexplained for z in found)
        return [(z.z_number, z.certs_count, b'"without_machine":true' in z.body) for z in found]

    ledger = tmp_path / "ledger"
    session = await first_activation(ledger)
    async with in_service(ledger, on=session) as shop:
        old = shop.worker.book
        sale = asyncio.ensure_future(shop.certify("D", 4000))
        await shop.stop_at(6, "after")
    await asyncio.gather(sale, return_exceptions=True)
    shop.resume()
    activated(session, reset=True, ifu="00099999X")
    async with in_service(ledger, on=session) as shop:
        assert await closed(shop) == [(1, 2, False), (2, 1, True)]
        case = await shop.store.decisions.case(old)
        paper = PaperInvoice("AAAABBBBCCCCDDDDEEEEFFFF", shop.on_machine[-1].time, (4, 4))
        await shop.store.decisions.carry_out(case, "certified", reason="on paper", at=shop.worker.now(), paper=paper)
        await shop.certify("E", 500)
    for _ in range(2):
        async with in_service(ledger, on=session) as shop:
            assert await closed(shop) == [(1, 2, False), (2, 1, True), (3, 1, True)]
            assert not await shop.store.ledger.read(closures_between, shop.worker.book, start=0, end=1 << 60)
    activated(session, reset=True, ifu="00084440Y", nim="EL02000015-3")
    async with in_service(ledger, on=session) as shop:
        assert shop.worker.book.id == old.id
        await shop.certify("F", 600)
        assert (await shop.close_period()).value.z_number == 4
        settings = settings_of(ledger)
        for name, book in (("", old.id), ("EL02000015", old.id), ("EL02000015-3", old.id), (SECOND, old.id + 1)):
            assert (await read_book(shop.store, settings, name, test=False)).book.id == book
        await shop.store.ledger.set_attention(shop.worker.book, Text("of now"), at=shop.worker.now())
        await shop.store.ledger.set_attention(msgspec.structs.replace(old, id=old.id + 1), Text("before"), at=1)
    found = [(each.nim, each.found) for each in await check_ledger(settings, 1) if each.check == "attention"]
    assert found == [("EL02000015-3", "of now"), (SECOND, "before")]
    assert verify(ledger).problems == ()


@pytest.mark.parametrize("resets", [(False, False), (True, False), (True, True)])
async def test_a_taxpayer_who_comes_back_knows_what_the_machine_counted_meanwhile(
    tmp_path: Path, resets: tuple[bool, bool]
) -> None:
    """It was certified by this box: no operator is asked, and no Z counts it. Nor was the box off since the last sign of life in that book."""
    session = await first_activation(tmp_path / "ledger")
    activated(session, reset=resets[0], ifu="00099999X")
    async with in_service(tmp_path / "ledger", on=session) as shop:
        for number in "DEFGH":
            await shop.certify(number, 500)
        (former,) = shop.worker.former
        await shop.store.ledger.write(outages.store_sign_of_life, former.book, 1)
    activated(session, reset=resets[1], ifu="00084440Y", nim="EL02000015-3")
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert not shop.worker.attention
        assert shop.store.ledger.peek(outages.sign_of_life, shop.worker.book) == 0
        await shop.certify("I", 600)
        assert (await shop.close_period()).value.unexplained == 0
    assert verify(tmp_path / "ledger").problems == ()


@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_a_machine_that_is_activated_again_during_a_recovery_is_read_afresh(tmp_path: Path, at: int) -> None:
    """A reading from before says nothing of what the machine is now: no book begins for the taxpayer that it had in between, whose last invoice would
    be the one of unknown outcome."""
    session = await first_activation(tmp_path / "ledger")
    async with in_service(tmp_path / "ledger", on=session) as shop:
        sale = asyncio.ensure_future(shop.certify("D", 4000))
        await shop.stop_at(6, "after")
    await asyncio.gather(sale, return_exceptions=True)
    shop.resume()
    activated(session, reset=False, ifu="00099999X")
    async with MemoryShop(tmp_path / "ledger", on=session) as shop:
        await shop.stop_at(at)
        session.machine.restore(Snapshot())
        session.machine.change(ifu="00084440Y", nim="EL02000015-3")
        shop.resume()
        await shop.until(lambda: shop.worker.connected, "the machine in service")
        assert not shop.worker.former
        assert "'D'" in str(from_stored(shop.worker.attention))


async def test_what_a_kill_left_begun_in_a_former_book_has_an_end(tmp_path: Path) -> None:
    """It waited for its turn when the machine was activated for another taxpayer, and was not sent."""
    session = await first_activation(tmp_path / "ledger")
    async with in_service(tmp_path / "ledger", on=session) as shop:
        old, last = shop.worker.book, (await shop.certified())[-1]
        intent = Attempt(msgspec.structs.replace(last.invoice, number="D"), shop.worker.counters, last.ended_at, "r")
        activated(session, reset=True, ifu="00099999X")
        session.unplug(asyncio.get_running_loop().time(), 0.02)
        await shop.until(lambda: shop.worker.book.id != old.id and shop.worker.connected, "the other book")
        attempt_id = await shop.store.ledger.write(attempts.begin, old, intent)
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert shop.store.ledger.peek(attempts.find_record, old, attempt_id).state == "abandoned"
    assert verify(tmp_path / "ledger").problems == ()


async def test_a_till_that_waits_for_its_first_request_sells_nothing_for_another_taxpayer(shop: MemoryShop) -> None:
    """Its key was the first one's. Nor is its sale taken on for the other one, where those of a machine out of order are."""
    shop.worker.defers = True
    old, before = shop.worker.book, asyncio.ensure_future(shop.certify("A", 1000))
    await shop.stop_at(2)
    tills = [asyncio.ensure_future(shop.certify("B", 2000, key="b")) for _ in range(2)]
    tills += [asyncio.ensure_future(shop.certify("B", 2000)) for _ in range(2)]
    body = invoice("C", 3000)
    tills.append(asyncio.ensure_future(certify_or_defer(shop.worker, body, shop.call(body, "c"), is_async=False)))
    await shop.until(lambda: shop.worker.waiting == 3, "the first of them in the queue")
    activated(shop.session, reset=True, ifu="00099999X")
    shop.resume()
    shop.session.unplug(asyncio.get_running_loop().time(), 0.02)
    await shop.until(lambda: shop.worker.book.id != old.id and shop.worker.connected, "the other book")
    answers = await asyncio.gather(before, *tills, return_exceptions=True)
    assert all(isinstance(answer, Exception) for answer in answers)
    assert shop.on_machine == []


def settings_of(ledger: Path) -> Settings:
    file = ledger.with_suffix(".toml")
    file.write_text(f'[storage]\npath = "{ledger}"\n[[machine]]\nnim = "EL02000015-1"\nport = "/dev/mcf"\n')
    return load(file, {})


@pytest.mark.logs("sale.refused")
async def test_sales_that_wait_are_refused_when_the_machine_has_another_taxpayer(tmp_path: Path) -> None:
    """Its tills' keys end with the book, and no screen shows it: they hear of it by webhook. One that the machine may have certified stays in doubt
    until a person has said that it has not."""
    session = await first_activation(tmp_path / "ledger")
    async with in_service(tmp_path / "ledger", on=session) as shop:
        old = shop.worker.book
        for number in ("D", "E"):
            body = invoice(number, 4000)
            await certify_or_defer(shop.worker, body, shop.call(body, number), is_async=True)
        doubtful = shop.store.ledger.peek(deferred.by_key, old, key_hash_of("E"))
        await shop.store.ledger.write(
            lambda connection: connection.execute("UPDATE deferred SET state = 'doubtful' WHERE id = ?", (doubtful.id,))
        )
    activated(session, reset=True, ifu="00099999X")
    for _ in range(2):
        async with in_service(tmp_path / "ledger", on=session) as shop:
            sales = {number: shop.store.ledger.peek(deferred.by_key, old, key_hash_of(number)) for number in "DE"}
            assert {number: sale and sale.state for number, sale in sales.items()} == {"D": "refused", "E": "doubtful"}
            found = await events_for(shop.store.events, shop.store.ledger, old, 0)
            (refused,) = [json.loads(each.data) for each in found if each.type == "cert.refused"]
            assert (refused["invoiceNumber"], refused["totalTtc"]) == ("D", 4000)
            assert "another taxpayer" in refused["reason"]
            closures = await shop.store.ledger.read(closures_between, old, start=0, end=1 << 60)
            assert json.loads(closures[-1].body)["waiting"]["count"] == 1
    async with in_service(tmp_path / "ledger", on=session) as shop:
        at, peek = shop.worker.now(), shop.store.ledger.peek
        await shop.store.ledger.write(deferred.release, old, doubtful, "not certified", at=at, by=DAEMON)
        await shop.until(lambda: peek(deferred.by_key, old, key_hash_of("E")).state == "refused", "the refusal")
    assert verify(tmp_path / "ledger").problems == ()


async def test_another_taxpayer_is_noticed_while_the_machine_stays_connected(shop: MemoryShop) -> None:
    """Also where its name stays the same: the next look ends the connection, and the other taxpayer's book is taken."""
    old = shop.worker.book
    shop.session.machine.change(ifu="00099999X")
    await shop.until(lambda: shop.worker.book.id != old.id and shop.worker.connected, "the other book")


async def test_a_machine_that_does_not_tell_its_suffix_has_the_configured_one(tmp_path: Path) -> None:
    """The configuration goes from -1 to -2, the firmware tells neither: the same book."""
    session = await first_activation(tmp_path / "ledger")
    session.machine.change(short_nim=True)
    async with MemoryShop(tmp_path / "ledger", on=session) as shop:
        shop.worker.configured_nim = SECOND
        await shop.connected()
        assert shop.worker.book.nim == SECOND
        with pytest.raises(DuplicateInvoice):
            await shop.certify("A", 1000)


async def test_an_invoice_right_after_an_activation_names_it(tmp_path: Path) -> None:
    """The suffix goes up between two looks and the counters go on: 38h says it, so the receipt does too, and for ever."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
        await shop.certify("A", 1000, key="a")
        shop.session.machine.change(nim=SECOND)
        for number in ("B", "C"):
            assert receipt((await shop.certify(number, 2000, key=number)).value).nim == SECOND
        again = await shop.certify("A", 1000, key="a")
        assert (again.replayed, receipt(again.value).nim) == (True, "EL02000015-1")
        assert (shop.store.ledger.peek(book_state, shop.worker.book)).epoch == 2
    assert verify(tmp_path / "ledger").problems == ()


@pytest.mark.parametrize("foreign", [0, 1])
@pytest.mark.logs("certification.unknown")
async def test_an_invoice_right_after_a_reset_that_nobody_noticed_is_certified_once(
    tmp_path: Path, foreign: int
) -> None:
    """The memory is erased and the suffix goes up between two looks: the counters of 38h are where they were before it, and yet
    the machine's last invoice is ours, of the new activation; what somebody else certified before it is counted."""
    async with in_service(tmp_path / "ledger", heartbeat=3600.0) as shop:
        for number in ("A", "A-2")[: 1 + foreign]:
            await shop.certify(number, 1000)
        shop.session.machine.change(nim=SECOND)
        shop.session.machine.restore(Snapshot())
        if foreign:
            shop.session.machine.certify_foreign(invoice_type="FV", total=500)
        answered = await shop.certify("B", 2000, key="b")
        assert [entry.code for entry in shop.on_machine if entry.number == "B"] == [answered.value.code]
        paper = receipt(answered.value)
        assert (paper.nim, paper.fvc) == (SECOND, 1 + foreign)
        await shop.until(lambda: shop.worker.connected, "service")
        assert (shop.worker.attention, shop.worker.book.nim) == ("", SECOND)
        replayed = await shop.certify("B", 2000, key="b")
        assert (replayed.replayed, receipt(replayed.value)) == (True, paper)
        assert (await shop.close_period()).value.unexplained == foreign
        assert (shop.store.ledger.peek(book_state, shop.worker.book)).epoch == 2
    assert verify(tmp_path / "ledger").problems == ()
