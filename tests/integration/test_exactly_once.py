"""Histories in which a till was certified twice, or was asked for nothing (faults X1 to X4, X9, N1 to N7): each ends with the machine's own log."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import settlements
from support.memory_shop import SECOND, MemoryShop, activated, in_service
from support.shop import NIM

from daemon.core.errors import MachineAttention, MachineRefused, McfdError, NothingDone
from daemon.core.ledger.attempt import DuplicateInvoice, Record
from daemon.core.ledger.decision import Case, DecisionRefused
from daemon.core.ledger.paper import PaperInvoice
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import attempts
from daemon.store.tables.book.attempts import unfinished
from daemon.store.tables.book.books import book_state
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers

FVC_LOCAL = SimulatorOptions(nim=NIM, fvc_local=True)
CAPITALS = SimulatorOptions(nim=NIM, texts="capitals")

Done = Callable[[], object]


def nothing() -> None:
    pass


class Saved:
    """A backup, and the ledger it is put back over."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self._copy = folder / "ledger", folder / "saved"

    def save(self) -> None:
        backup(self.ledger, self._copy, at=1)

    def put_back(self) -> None:
        restore(self._copy, self.ledger, at=2)


async def answer_lost(
    shop: MemoryShop, number: str, *, executed: bool, then: Done = nothing, **changes: object
) -> Record | McfdError:
    """The line is lost at 38h, before or after the machine has executed it; `then` happens before it is back. The answer to the till."""
    shop.session.plan.add("unplug:600@38#1" if executed else "unplug-before:600@38#1")
    certified = len(shop.on_machine)
    sale = asyncio.ensure_future(shop.certify(number, key=f"key of {number}", **changes))
    await shop.until(lambda: not shop.worker.connected, "the line lost")
    assert len(shop.on_machine) == certified + executed
    then()
    shop.session.plug()
    try:
        return (await sale).value
    except McfdError as error:
        return error


def stranger(shop: MemoryShop, kind: str = "FV") -> Done:
    return lambda: shop.session.machine.certify_foreign(invoice_type=kind, total=500)


def daily_report(shop: MemoryShop) -> None:
    shop.session.machine.fiscal.tc += 1


async def case_of(shop: MemoryShop) -> Case:
    await shop.until(lambda: shop.worker.attention, "a question")
    while (case := await shop.store.decisions.case(shop.worker.book)).evidence is None:  # noqa: ASYNC110  read, not told
        await asyncio.sleep(0.002)
    return case


async def decide(shop: MemoryShop, decision: str, paper: PaperInvoice | None = None) -> None:
    """And the daemon has taken it up."""
    case = await case_of(shop)
    before = len(await shop.store.decisions.read(settlements, shop.worker.book))
    await shop.store.decisions.carry_out(case, decision, reason="on paper", at=3, paper=paper)
    assert len(await shop.store.decisions.read(settlements, shop.worker.book)) == before + 1


async def adopted(shop: MemoryShop) -> None:
    case = await case_of(shop)
    assert case.choices == ("adopt",)
    await shop.store.decisions.carry_out(case, "adopt", reason="seen", at=3)
    await shop.until(lambda: not shop.worker.attention, "service")
    await shop.connected()


def on_paper(shop: MemoryShop, number: str) -> PaperInvoice:
    entry = next(entry for entry in shop.on_machine if entry.number == number)
    return PaperInvoice(entry.code, entry.time)


def ours(shop: MemoryShop) -> Counter[str]:
    """By number without regard to case: what a till sent as a1 and as A1 is one."""
    return Counter(entry.number.casefold() for entry in shop.on_machine if not entry.foreign)


async def is_sound(shop: MemoryShop) -> None:
    """Nothing twice, no code twice, and what the ledger has of ours is what the machine says."""
    assert max(ours(shop).values(), default=0) <= 1
    records = await shop.certified()
    assert len({record.code for record in records}) == len(records)
    codes = {entry.code: entry.number.casefold() for entry in shop.on_machine}
    assert all(codes[record.code] == record.number.casefold() for record in records)
    assert verify(shop.path).problems == ()


# -- a ledger that was put back -----------------------------------------------------------------------------------------------


async def test_an_export_that_a_restored_ledger_lacks_is_asked_about(tmp_path: Path) -> None:
    """X1: the machine counts exports in TC alone, and its last number is the export's: `adopt` enters it, and its till gets a 409."""
    saved = Saved(tmp_path)
    async with in_service(saved.ledger, options=FVC_LOCAL) as shop:
        await shop.certify("A")
        saved.save()
        await shop.certify("E-1", invoiceType="EV", key="k")
    saved.put_back()
    async with MemoryShop(saved.ledger, on=shop.session) as shop:
        await adopted(shop)
        await shop.certify("B")
        with pytest.raises(DuplicateInvoice) as caught:
            await shop.certify("E-1", invoiceType="EV", key="k")
        assert caught.value.record.code == shop.on_machine[1].code
        await is_sound(shop)


async def test_an_adopted_number_is_taken_however_the_machine_spells_it(tmp_path: Path) -> None:
    """X3: the machine keeps n-2 as N-2, and `adopt` enters that."""
    saved = Saved(tmp_path)
    async with in_service(saved.ledger, options=CAPITALS) as shop:
        await shop.certify("n-1")
        saved.save()
        await shop.certify("n-2")
        await shop.certify("n-3")
    saved.put_back()
    async with MemoryShop(saved.ledger, on=shop.session) as shop:
        await adopted(shop)
        await shop.certify("x")
        with pytest.raises(DuplicateInvoice):
            await shop.certify("n-3")
        await is_sound(shop)


@pytest.mark.parametrize("kind", ["EV", "FV"])
async def test_what_was_begun_in_a_backup_may_have_been_certified_since_and_others_too(
    tmp_path: Path, kind: str
) -> None:
    """N3: E-1 was begun in the backup, E-1 and E-2 were certified after it. The till of E-1 has to wait for an operator, who has its code on paper;
    then E-2 is adopted."""
    saved = Saved(tmp_path)
    async with in_service(saved.ledger, options=FVC_LOCAL) as shop:
        await shop.certify("A")
        await answer_lost(shop, "E-1", executed=True, then=saved.save, invoiceType=kind)
        await shop.certify("E-2", invoiceType=kind)
    saved.put_back()
    async with MemoryShop(saved.ledger, on=shop.session) as shop:
        await shop.until(lambda: shop.worker.attention, "a question")
        with pytest.raises(MachineAttention):
            await shop.certify("E-1", invoiceType=kind, key="key of E-1")
        await decide(shop, "certified", on_paper(shop, "E-1"))
        await shop.until(lambda: "does not know" in shop.worker.attention, "another question")
        await adopted(shop)
        for number in ("E-1", "E-2"):
            with pytest.raises(DuplicateInvoice):
                await shop.certify(number, invoiceType=kind)
        await shop.certify("B")
        await is_sound(shop)


@pytest.mark.parametrize("stranger_came", [False, True])
@pytest.mark.parametrize("reset", [False, True])
async def test_adopting_over_a_begun_attempt_settles_it_first(tmp_path: Path, reset: bool, stranger_came: bool) -> None:
    """N2: the backup holds F-1 begun, F-1 was certified, the machine was activated anew. What `adopt` takes over proves nothing of F-1."""
    saved = Saved(tmp_path)
    async with in_service(saved.ledger, options=CAPITALS) as shop:
        await answer_lost(shop, "f-1", executed=True, then=saved.save)
    activated(shop.session, reset=reset)
    if stranger_came:
        stranger(shop)()
    saved.put_back()
    async with MemoryShop(saved.ledger, on=shop.session) as shop:
        case = await case_of(shop)
        while case.attempt is None and case.state.attention:
            await shop.store.decisions.carry_out(case, "adopt", reason="seen", at=3)
            case = await shop.store.decisions.case(shop.worker.book)
        if case.attempt is not None:
            with pytest.raises(MachineAttention):
                await shop.certify("f-1", key="key of f-1")
            await decide(shop, "certified", on_paper(shop, "f-1"))
        await shop.until(lambda: not shop.worker.attention, "service")
        await shop.connected()
        assert (await shop.certify("f-1", key="key of f-1")).value.state == "certified"
        with pytest.raises(DuplicateInvoice):
            await shop.certify("F-1")
        await is_sound(shop)


async def test_an_older_ledger_whose_machine_has_certified_nothing_since_is_not_asked_about(tmp_path: Path) -> None:
    """Put back, activated anew with its memory kept: the last invoice is the one that the backup knows."""
    saved = Saved(tmp_path)
    async with in_service(saved.ledger) as shop:
        await shop.certify("A")
        saved.save()
    activated(shop.session, reset=False)
    saved.put_back()
    async with in_service(saved.ledger, on=shop.session) as shop:
        assert (shop.worker.attention, shop.worker.book.nim) == ("", SECOND)


# -- an answer that was lost ---------------------------------------------------------------------------------------------------


async def test_an_export_before_somebody_else_s_export_is_not_taken_for_failed(tmp_path: Path) -> None:
    """X2: TC moved by two and FVC did not: no counter says whether ours is one of them."""
    async with in_service(tmp_path / "ledger", options=FVC_LOCAL) as shop:
        lost_answer = await answer_lost(shop, "E-1", executed=True, then=stranger(shop, "EV"), invoiceType="EV")
        assert isinstance(lost_answer, MachineAttention)
        await decide(shop, "certified", on_paper(shop, "E-1"))
        await shop.until(lambda: not shop.worker.attention, "service")
        assert (await shop.certify("E-1", invoiceType="EV", key="key of E-1")).replayed
        await is_sound(shop)


@pytest.mark.parametrize("reset", [False, True])
async def test_counters_that_are_equal_by_chance_after_an_activation_prove_nothing(
    shop: MemoryShop, reset: bool
) -> None:
    """N1: F-1 was certified, the machine began to count again, and a stranger's invoice brought it to where it was; or a fresh machine
    was reset after its very first sale."""
    if reset:
        lost_answer = await answer_lost(shop, "F-1", executed=True, then=lambda: activated(shop.session, reset=True))
    else:
        await shop.certify("A")

        def then() -> None:
            activated(shop.session, reset=True)
            stranger(shop)()

        lost_answer = await answer_lost(shop, "F-1", executed=True, then=then)
    assert isinstance(lost_answer, MachineAttention)


async def test_a_machine_that_is_not_activated_proves_nothing(shop: MemoryShop) -> None:
    """A fresh machine's first sale is certified, its answer lost; it is reset, and asked before it is activated again: its counters are where they were, and
    what says otherwise is the taxpayer that it does not tell. It is not in service until it does, and then an operator is asked."""
    ifu = shop.session.machine.options.ifu

    def then() -> None:
        activated(shop.session, NIM, reset=True)
        shop.session.machine.change(ifu="")

    shop.session.plan.add("unplug:600@38#1")
    sale = asyncio.ensure_future(shop.certify("F-1", key="k"))
    await shop.until(lambda: not shop.worker.connected, "the line lost")
    then()
    shop.session.plug()
    await shop.until(lambda: "not activated" in shop.worker.offline_reason, "the reason")
    assert [record.number for record in shop.store.ledger.peek(attempts.unfinished, shop.worker.book)] == ["F-1"]
    shop.session.machine.change(ifu=ifu, nim=SECOND)
    with pytest.raises(MachineAttention):
        await sale


async def test_a_ledger_that_was_put_back_is_not_compared_with_a_machine_that_is_not_activated(tmp_path: Path) -> None:
    """The backup is from before the first sale; the machine was reset since, so that its counters are where they were then. Once it is activated, an
    operator is asked, and F-1 is not certified again without that."""
    saved = Saved(tmp_path)
    async with in_service(saved.ledger) as shop:
        saved.save()
        await shop.certify("F-1")
    ifu = shop.session.machine.options.ifu
    activated(shop.session, NIM, reset=True)
    shop.session.machine.change(ifu="")
    saved.put_back()
    async with MemoryShop(saved.ledger, on=shop.session) as shop:
        await shop.until(lambda: "not activated" in shop.worker.offline_reason, "the reason")
        shop.session.machine.change(ifu=ifu, nim=SECOND)
        await shop.until(lambda: shop.worker.attention, "a question")
        with pytest.raises(MachineAttention):
            await shop.certify("F-1")


async def test_an_activation_after_which_nothing_was_certified_is_no_doubt(tmp_path: Path) -> None:
    """N6: A-1 is the machine's last invoice, with the code that the ledger has; the lost 38h of B-1 was not executed, whether or not its number is the
    same for this machine; also when the last one is a stranger's that was seen before."""
    async with in_service(tmp_path / "ledger", options=CAPITALS) as shop:
        await shop.certify("a-1")
        lost_answer = await answer_lost(shop, "b-1", executed=False, then=lambda: activated(shop.session, reset=False))
        assert isinstance(lost_answer, NothingDone)
        stranger(shop)()
        await shop.until(lambda: shop.worker.counters.fvc == 2, "the stranger seen")
        third = "EL02000015-3"
        lost_answer = await answer_lost(
            shop, "c-1", executed=False, then=lambda: activated(shop.session, third, reset=False)
        )
        assert isinstance(lost_answer, NothingDone)
        await shop.connected()
        await shop.certify("c-1")
        await is_sound(shop)


async def test_a_number_in_other_letters_waits_for_the_one_that_is_certified(tmp_path: Path) -> None:
    """N4: a1 is on the line when A1 comes; the machine keeps both in capitals. A1 is a duplicate of it, and a1 keeps its code over a kill."""
    async with in_service(tmp_path / "ledger", options=CAPITALS) as shop:
        shop.session.plan.add("unplug:600@38#1")
        first = asyncio.ensure_future(shop.certify("a1", key="k"))
        await shop.until(lambda: not shop.worker.connected, "the line lost")
        second = asyncio.ensure_future(shop.certify("A1"))
        await asyncio.sleep(0)
        shop.session.plug()
        assert (await first).value.code == shop.on_machine[0].code
        with pytest.raises(McfdError):
            await second
    async with in_service(tmp_path / "ledger", on=shop.session) as shop:
        with pytest.raises(DuplicateInvoice) as caught:
            await shop.certify("A1")
        assert caught.value.record.number == "a1"
        await is_sound(shop)


async def test_one_number_in_two_spellings_is_certified_once(tmp_path: Path) -> None:
    """X4 and N5: a1 was refused, A1 certified; whatever comes as a1 or A1 after that gets that certification."""
    async with in_service(tmp_path / "ledger", options=CAPITALS) as shop:
        shop.session.plan.add("lose-invoice@31#1")
        with pytest.raises(NothingDone):
            await shop.certify("a1")
        await shop.connected()
        record = (await shop.certify("A1")).value
        for number in ("a1", "A1"):
            with pytest.raises(DuplicateInvoice) as caught:
                await shop.certify(number)
            assert caught.value.record == record
        daily_report(shop)
        await is_sound(shop)


async def test_a_refused_number_does_not_get_another_certification_s_code(tmp_path: Path) -> None:
    """X4's root: the machine refuses "straße" as the last one, "STRASSE", which the ledger has: equal numbers are one, in every language."""
    async with in_service(tmp_path / "ledger", options=CAPITALS) as shop:
        record = (await shop.certify("STRASSE-1")).value
        with pytest.raises(DuplicateInvoice) as caught:
            await shop.certify("straße-1")
        assert caught.value.record == record


async def test_what_stands_on_the_machine_s_paper_can_be_entered(shop: MemoryShop) -> None:
    """N7: the answer is lost, a stranger comes after it. The true decision needs the paper; its till gets the code, the stranger is counted as such."""
    await shop.certify("A")
    lost_answer = await answer_lost(shop, "F-1", executed=True, then=stranger(shop))
    assert isinstance(lost_answer, MachineAttention)
    case = await case_of(shop)
    assert case.obstacle("certified") == "not its last"
    await decide(shop, "certified", on_paper(shop, "F-1"))
    await shop.until(lambda: not shop.worker.attention, "service")
    again = await shop.certify("F-1", key="key of F-1")
    assert (again.replayed, again.value.code) == (True, shop.on_machine[1].code)
    assert again.value.counters is not None
    assert (again.value.counters.tc, again.value.counters.fvc) == (shop.on_machine[1].tc, shop.on_machine[1].fvc)
    await shop.certify("B")
    closure = (await shop.close_period()).value
    assert (closure.certs_count, closure.unexplained) == (3, 1)
    await is_sound(shop)


async def test_paper_that_fits_nothing_is_entered_once_it_is_confirmed(shop: MemoryShop) -> None:
    """Certified before an activation that reset the counters, with a clock that was ten years ahead: when its paper is confirmed, its till gets what is
    printed; the next sales go on with the counters of now."""
    await shop.certify("A")
    await shop.certify("B")

    def another_activation() -> None:
        activated(shop.session, reset=True)
        stranger(shop)()

    assert isinstance(await answer_lost(shop, "F-1", executed=True, then=another_activation), MachineAttention)
    case, paper = await case_of(shop), PaperInvoice("7Q2MK4ZPABCDEFGHIJKLMN27", "20360101000000", (3, 3))
    with pytest.raises(DecisionRefused, match="time not plausible"):
        await shop.store.decisions.carry_out(case, "certified", reason="x", at=3, paper=paper)
    await decide(shop, "certified", msgspec.structs.replace(paper, as_printed=True))
    await shop.until(lambda: not shop.worker.attention, "service")
    again = await shop.certify("F-1", key="key of F-1")
    assert (again.replayed, again.value.code, again.value.counters.fvc) == (True, paper.code, 3)
    assert (await shop.certify("C")).value.counters.fvc == 2
    assert ours(shop)["c"] == 1
    assert verify(shop.path).problems == ()


# -- decisions ------------------------------------------------------------------------------------------------------------------


async def test_a_decision_is_valid_for_the_case_that_was_shown(tmp_path: Path) -> None:
    """X9: two operators read one case; the second decides after the first one's `adopt` and more sales, and has to look again."""
    saved = Saved(tmp_path)
    async with in_service(saved.ledger) as shop:
        saved.save()
        await shop.certify("A")
    saved.put_back()
    async with MemoryShop(saved.ledger, on=shop.session) as shop:
        case = await case_of(shop)
        await adopted(shop)
        await shop.certify("B")
        before = shop.store.ledger.peek(book_state, shop.worker.book)
        with pytest.raises(DecisionRefused, match="changed"):
            await shop.store.decisions.carry_out(case, "adopt", reason="late", at=4)
        # What this process has begun, no decision ends.
        assert shop.store._open.under_way[shop.worker.book.id] == shop.worker.attempts.is_ours
        assert shop.store.ledger.peek(book_state, shop.worker.book) == before
        assert (await shop.close_period()).value.unexplained == 1


async def test_a_decision_on_another_attention_is_not_carried_out(shop: MemoryShop) -> None:
    """The same decision would fit, but what was shown has been decided, and something else was found since."""
    await answer_lost(shop, "F-1", executed=True, then=stranger(shop))
    case = await case_of(shop)
    await decide(shop, "not-certified")
    await shop.until(lambda: not shop.worker.attention, "service")
    await answer_lost(shop, "F-1", executed=True, then=stranger(shop))
    await case_of(shop)
    with pytest.raises(DecisionRefused, match="changed"):
        await shop.store.decisions.carry_out(case, "not-certified", reason="late", at=4)
    assert [record.number for record in await shop.store.decisions.read(unfinished, shop.worker.book, "disputed")] == [
        "F-1"
    ]


async def test_adopting_leaves_what_this_process_is_at_alone(shop: MemoryShop) -> None:
    """An invoice that waits for its turn, its intent durable, while an operator adopts: it goes on, and is certified once (seed 880087)."""
    with shop.worker.queue.join() as ahead:
        await ahead.wait_turn(asyncio.get_running_loop().time() + 60)
        sale = asyncio.ensure_future(shop.certify("B", key="k"))
        await shop.intents(1)
        stranger(shop)()
        book, state = shop.worker.book, await shop.worker.present().state()
        await shop.store.ledger.set_attention(book, "found", at=3)
        await shop.store.ledger.keep_evidence(book, state, at=3)
        await shop.store.decisions.carry_out(await shop.store.decisions.case(book), "adopt", reason="seen", at=3)
    assert (await sale).value.code == shop.on_machine[-1].code
    assert [record.number for record in await shop.certified()] == ["FOREIGN-1", "B"]
    await is_sound(shop)


async def test_a_number_that_the_machine_refuses_as_its_last_is_refused(shop: MemoryShop) -> None:
    """A stranger's invoice of that very number: 38h of ours was never sent, so it is not ours, however often the till tries."""
    shop.session.machine.certify_foreign(number="F-1", total=15000)
    for _ in range(2):
        with pytest.raises(MachineRefused):
            await shop.certify("F-1")
    assert await shop.certified() == []
