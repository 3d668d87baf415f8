"""Histories in which a till was certified twice (faults X4, N4, N7), beside those of `tests/exhaustive/test_named_histories.py`."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.memory_shop import MemoryShop, activated, in_service
from support.shop import NIM

from daemon.core.errors import MachineAttention, MachineRefused, McfdError
from daemon.core.ledger.attempt import DuplicateInvoice, Record
from daemon.core.ledger.decision import DecisionRefused
from daemon.core.ledger.paper import PaperInvoice
from daemon.store.maintenance.verify import verify
from daemon.store.tables.audit import newest_entries
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers

CAPITALS = SimulatorOptions(nim=NIM, texts="capitals")


async def answer_lost(shop: MemoryShop, number: str, then: Callable[[], object]) -> Record | McfdError:
    """The line is lost at 38h, after the machine has executed it; `then` happens before it is back. The answer to the till."""
    shop.session.plan.add("unplug:600@38#1")
    certified = len(shop.on_machine)
    sale = asyncio.ensure_future(shop.certify(number, key=f"key of {number}"))
    await shop.until(lambda: not shop.worker.connected, "the line lost")
    assert len(shop.on_machine) == certified + 1
    then()
    shop.session.plug()
    try:
        return (await sale).value
    except McfdError as error:
        return error


def stranger(shop: MemoryShop) -> Callable[[], object]:
    return lambda: shop.session.machine.certify_foreign(invoice_type="FV", total=500)


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
    lost_answer = await answer_lost(shop, "F-1", then=stranger(shop))
    assert isinstance(lost_answer, MachineAttention)
    case = await shop.case()
    assert case.obstacle("certified") == "not its last"
    await shop.decide("certified", on_paper(shop, "F-1"))
    again = await shop.certify("F-1", key="key of F-1")
    assert (again.replayed, again.value.code) == (True, shop.on_machine[1].code)
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

    assert isinstance(await answer_lost(shop, "F-1", then=another_activation), MachineAttention)
    case, paper = await shop.case(), PaperInvoice("7Q2MK4ZPABCDEFGHIJKLMN27", "20360101000000", (3, 3))
    with pytest.raises(DecisionRefused, match="time not plausible"):
        await shop.store.decisions.carry_out(case, "certified", reason="x", at=3, paper=paper)
    await shop.decide("certified", msgspec.structs.replace(paper, as_printed=True))
    [noted] = shop.store.ledger.peek(newest_entries, 1)
    assert dict(noted.detail)["as_printed"] == "yes"
    again = await shop.certify("F-1", key="key of F-1")
    assert (again.replayed, again.value.code, again.value.counters.fvc) == (True, paper.code, 3)
    assert (await shop.certify("C")).value.counters.fvc == 2
    assert ours(shop)["c"] == 1
    assert verify(shop.path).problems == ()


async def test_adopting_leaves_what_this_process_is_at_alone(shop: MemoryShop) -> None:
    """An invoice that waits for its turn, its intent durable, while an operator adopts: it goes on, and is certified once (seed 880087)."""
    with shop.worker.queue.join() as ahead:
        await ahead.wait_turn(asyncio.get_running_loop().time() + 60)
        sale = asyncio.ensure_future(shop.certify("B", key="k"))
        await shop.intents(1)
        stranger(shop)()
        book, state = shop.worker.book, await shop.worker.present().state()
        await shop.store.ledger.set_attention(book, "found", at=3)
        await shop.store.ledger.store_evidence(book, state, at=3)
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
