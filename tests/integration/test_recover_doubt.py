"""An outcome that is not known, or not stored yet: nothing gets past it, whatever fails next."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.memory_shop import LAST, MemoryShop, in_service

from daemon.core.errors import LineLost, MachineAttention
from daemon.core.events import IN_DOUBT
from daemon.core.ledger.attempt import Record
from daemon.store.tables.book.attempts import unfinished
from daemon.store.tables.book.books import book_state
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.worker.machine_worker import BookEvent
from simulator.machine.working_state import Stage

pytestmark = pytest.mark.quick_timers


@pytest.mark.logs("recover.put_off")
async def test_nothing_is_certified_over_a_doubt_that_the_machine_answers_with_rubbish(shop: MemoryShop) -> None:
    """38h and the C1h after it both answered with rubbish: the next invoice waits until the doubt is settled by a new connection. Screens and webhooks
    hear of the doubt, and why."""
    shop.session.plan.add("nonsense@38#1,nonsense@C1#1")
    events: list[BookEvent] = []
    shop.worker.on_event = events.append
    answers = await asyncio.gather(*(shop.certify(number) for number in ("A", "B", "C")))
    assert [a.value.state for a in answers] == ["certified"] * 3
    (doubt,) = [event for event in events if event.type == IN_DOUBT]
    assert (doubt.ref, bool(doubt.detail)) == (answers[0].value.id, True)
    assert [r.code for r in await shop.certified()] == [i.code for i in shop.on_machine]


async def test_what_the_machine_says_of_a_doubt_is_stored_for_the_person_who_decides(shop: MemoryShop) -> None:
    """Somebody else's invoice was certified behind ours before its outcome could be read; the line is never lost."""
    shop.session.plan.add("nonsense@38#1")
    sale = asyncio.ensure_future(shop.certify("A"))
    await shop.stop_at(LAST, "after")
    shop.session.machine.certify_foreign(number="X-1", total=500)
    shop.resume()
    with pytest.raises(MachineAttention):
        await sale
    case = await shop.store.decisions.case(shop.worker.book)
    assert case.evidence is not None
    assert case.evidence.state.last is not None
    assert (case.evidence.state.last.number, len(shop.ports)) == ("X-1", 1)


async def test_nothing_is_certified_over_a_doubt_that_cannot_be_stored(shop: MemoryShop) -> None:
    """The disk is full at the moment when the outcome of a doubtful 38h is to be written: the next invoice waits."""
    shop.session.plan.add("nonsense@38#1")
    sales = [asyncio.ensure_future(shop.certify(number)) for number in ("A", "B")]
    await shop.disk_lost_at(LAST)
    await asyncio.sleep(0.2)
    await shop.disk(writable=True)
    answers = await asyncio.gather(*sales)
    assert [a.value.state for a in answers] == ["certified"] * 2
    assert [r.code for r in await shop.certified()] == [i.code for i in shop.on_machine]


async def test_an_outcome_that_is_being_stored_is_not_taken_for_a_strangers_work(shop: MemoryShop) -> None:
    """The line is lost and found again while the disk does not take the outcome: it is ours, and explained."""
    sale = asyncio.ensure_future(shop.certify("A"))
    await shop.disk_lost_at(LAST)
    await shop.until(lambda: shop.on_machine, "certified on the machine")
    await asyncio.sleep(0.05)
    shop.unplug(0.05)
    await shop.until(lambda: len(shop.ports) > 1, "a new connection")
    await asyncio.sleep(0.1)
    await shop.disk(writable=True)
    assert (await sale).value.code == shop.on_machine[0].code
    await shop.connected()
    assert (shop.store.ledger.peek(book_state, shop.worker.book)).unexplained == 0
    closure = (await shop.close_period()).value
    assert (closure.certs_count, closure.unexplained) == (1, 0)


async def test_a_caller_that_went_away_finds_its_outcome_under_its_key(shop: MemoryShop) -> None:
    """The first request is cancelled while the machine works on it; the retry waits for that one and gets its answer, replayed."""
    first = asyncio.ensure_future(shop.certify("A", key="k"))
    await shop.stop_at(LAST)
    first.cancel()
    await asyncio.wait([first])
    retry = asyncio.ensure_future(shop.certify("A", key="k"))
    await asyncio.sleep(0.05)
    shop.resume()
    async with asyncio.timeout(30):
        answered = await retry
    assert answered.replayed
    assert [answered.value.code] == [i.code for i in shop.on_machine]


async def test_a_caller_that_went_away_before_the_intent_finds_its_outcome_too(shop: MemoryShop) -> None:
    """The same, cancelled in the first moment: the key stands for the request from its arrival on."""
    for steps in range(12):
        first = asyncio.ensure_future(shop.certify(f"A{steps}", key=f"k{steps}"))
        for _ in range(steps):
            await asyncio.sleep(0)
        first.cancel()
        async with asyncio.timeout(30):
            answered = await shop.certify(f"A{steps}", key=f"k{steps}")
        assert answered.value.code == shop.on_machine[-1].code
    assert len(shop.on_machine) == 12


async def two_sales_over_a_lost_disk(shop: MemoryShop) -> list[asyncio.Future[Answered[Record]]]:
    """The outcome of the first cannot be stored; the second is entered up to its 38h."""
    sales = [asyncio.ensure_future(shop.certify(number)) for number in ("A", "B")]
    await shop.disk_lost_at(LAST)
    await shop.until(lambda: shop.session.machine.stage is Stage.PAID and shop.on_machine, "B ready to be closed")
    return sales


async def test_nothing_is_certified_over_an_outcome_that_is_not_stored(shop: MemoryShop) -> None:
    """The machine remembers only its last invoice: the next one is entered, and its 38h waits until the disk has taken the first."""
    with capture_logs() as log:
        sales = await two_sales_over_a_lost_disk(shop)
        await asyncio.sleep(0.1)
    assert [entry.number for entry in shop.on_machine] == ["A"]
    assert 1 <= [line["event"] for line in log].count("certification.not_stored") < 5  # with a pause between tries
    await shop.disk(writable=True)
    assert [(await sale).value.code for sale in sales] == [entry.code for entry in shop.on_machine]


async def test_a_doubt_is_settled_by_one_at_a_time(tmp_path: Path) -> None:
    """The disk is slow while a doubt is being settled, and the line is lost and found again meanwhile: the recovery of the new
    connection comes after that, and finds it done."""
    with capture_logs() as log:
        await settle_over_a_slow_disk(tmp_path)
    assert not [line for line in log if line["event"] in ("line.failed", "attempt.failed")]


async def settle_over_a_slow_disk(tmp_path: Path) -> None:
    async with in_service(tmp_path / "ledger") as shop:
        shop.session.plan.add("nonsense@38#1")
        sale = asyncio.ensure_future(shop.certify("A", key="k"))
        await shop.stop_at(LAST)
        for _ in range(2):
            shop.session.machine.certify_foreign(total=500)
        await shop.stop_until(LAST - 4, shop.resume)  # C1h of the settling
        slow = asyncio.ensure_future(shop.slow_disk(0.3))
        await asyncio.sleep(0.05)
        shop.resume()
        await asyncio.sleep(0.05)
        shop.unplug(0.02)
        with pytest.raises(MachineAttention, match="no known outcome"):
            await sale
        await slow
        await shop.connected()
        assert [
            record.number for record in await shop.store.decisions.read(unfinished, shop.worker.book, "disputed")
        ] == ["A"]


async def test_an_invoice_whose_line_was_lost_while_it_waited_for_the_disk_is_not_in_doubt(shop: MemoryShop) -> None:
    """Its 38h was never sent: it is ended as such, at once, and not left for the next recovery."""
    sales = await two_sales_over_a_lost_disk(shop)
    shop.unplug(0.02)
    await asyncio.sleep(0.1)
    await shop.disk(writable=True)
    async with asyncio.timeout(30):
        assert (await sales[0]).value.code == shop.on_machine[0].code
        with pytest.raises(LineLost, match="nothing was certified"):
            await sales[1]
    await shop.connected()
    assert (await shop.certify("B")).value.code == shop.on_machine[1].code


async def test_a_heartbeat_at_the_moment_of_a_loss_does_not_hold_up_the_return(shop: MemoryShop) -> None:
    """It comes when the connection is over and the line has not noticed yet: it takes no place in a queue that waits for the line."""
    shop.worker.lost("the machine does not answer")
    async with asyncio.timeout(30):
        await shop.keeper.heartbeat()
    assert shop.worker.waiting == 0
