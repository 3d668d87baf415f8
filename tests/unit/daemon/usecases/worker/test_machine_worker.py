"""One book at work, without a line: what it knows, what it tells screens of, and what it sees through to the end."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from support.api import until
from support.ledgers.ledger import IFU, START, Till, opened
from support.ledgers.worker import worker_of

from common.language import Text
from daemon.core.errors import MachineOffline, StorageFull
from daemon.core.ledger.book import Aggregate, Book
from daemon.core.ledger.phases import Phase
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.epochs import book_of_taxpayer
from daemon.usecases.worker.aggregate import tick
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import begin, former_workers

EventList = list[tuple[str, str]]


class Machine:
    """What a worker does with a machine by itself."""

    def __init__(self) -> None:
        self.hung_up: list[str] = []

    def hang_up(self, reason: str) -> None:
        self.hung_up.append(reason)


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with opened(tmp_path / "ledger.sqlite3") as store:
        yield await Till.of(store)


@pytest.fixture
def worker(till: Till) -> MachineWorker:
    return worker_of(till)


@pytest.fixture
def published_events(worker: MachineWorker) -> EventList:
    """The type and the detail of each event."""
    events: EventList = []
    worker.on_event = lambda event: events.append((event.type, event.detail))
    return events


async def test_a_machine_that_refuses_one_invoice_does_not_refuse_all(worker: MachineWorker) -> None:
    """As often as that one is sent; a second one tells."""
    for number, all_refused in (("A", False), ("A", False), ("B", True)):
        worker.refused_numbers.add(number)
        assert worker.refuses_all is all_refused


async def test_a_sandbox_has_no_register_of_outages(worker: MachineWorker) -> None:
    assert await worker.register_outage("line_lost") == 0


async def test_an_operator_is_called_once(worker: MachineWorker, till: Till, published_events: EventList) -> None:
    """When the ledger has something new to look at; not again while it stays so, and not when it is settled."""
    sound = till.store.ledger.peek(book_state, till.book)
    for found, calls in (("", 0), ("another machine", 1), ("another machine", 1), ("", 1), ("the same again", 2)):
        worker.apply_state(msgspec.structs.replace(sound, attention=found))
        assert worker.attention == found
        assert len(published_events) == calls
    assert published_events == [("mcf.attention", "another machine"), ("mcf.attention", "the same again")]


async def test_a_line_that_comes_and_goes(worker: MachineWorker, till: Till, published_events: EventList) -> None:
    """One event each way, with the reason; the absence began when it was first found."""
    machine: Any = Machine()
    till.at = START
    worker.lost("no such port")
    till.at += 1000
    worker.lost("still none")
    assert (published_events, worker.offline_reason, worker.offline_since) == ([], "still none", START)
    with pytest.raises(MachineOffline, match="still none"):
        worker.present()
    worker.opened(machine)
    assert (worker.present(), worker.offline_reason, worker.offline_since) == (machine, "", None)
    worker.lost("unplugged")
    worker.lost("no such port")
    assert published_events == [("mcf.connected", ""), ("mcf.disconnected", "unplugged")]
    assert (worker.offline_reason, worker.offline_since) == ("no such port", START + 1000)


async def test_only_the_connection_that_failed_is_let_go(worker: MachineWorker, published_events: EventList) -> None:
    """It is hung up in any case; the machine that came after it stays."""
    before: Any = Machine()
    now: Any = Machine()
    worker.opened(now)
    worker.drop(before, "its answer was odd")
    assert (worker.machine, before.hung_up, now.hung_up) == (now, ["its answer was odd"], [])
    worker.drop(now, "its counters went down")
    assert (worker.connected, now.hung_up) == (False, ["its counters went down"])
    assert published_events[1:] == [("mcf.disconnected", "its counters went down")]


async def test_what_nobody_waits_for_is_done_after_the_answers(worker: MachineWorker) -> None:
    """All of it, each for itself, and at the stop at the latest."""
    done: list[str] = []
    failed: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context["exception"]))

    def fail() -> None:
        raise ZeroDivisionError

    def named(name: str) -> Callable[[], None]:
        return lambda: done.append(name)

    worker.after_answers(named("alone"))
    await until(lambda: done == ["alone"])
    for work in (named("first"), fail, named("second")):
        worker.after_answers(work)
    assert done == ["alone"]
    await until(lambda: len(done) == 3)
    worker.after_answers(named("at the stop"))
    await worker.close(60)
    assert done == ["alone", "first", "second", "at the stop"]
    assert [type(error) for error in failed] == [ZeroDivisionError]


@pytest.mark.logs("aggregate.failed")
async def test_totals_that_could_not_be_stored_are_tried_again(
    worker: MachineWorker, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the disk takes them, also when nothing is sold any more: X shows the sale then."""
    refusals = iter(range(2))
    aggregate = till.store.ledger.aggregate

    async def refused_twice(book: Book) -> Aggregate:
        if next(refusals, None) is not None:
            raise StorageFull("no room")
        return await aggregate(book)

    monkeypatch.setattr(till.store.ledger, "aggregate", refused_twice)
    worker.limits = worker.limits._replace(aggregation_delay=0.0)
    await till.sell()
    await tick(worker)
    assert worker.aggregate is None
    await until(lambda: worker.aggregate is not None)
    assert (worker.aggregate.seq, next(refusals, None)) == (1, None)
    await worker.close(60)


async def test_a_refused_request_leaves_nothing_to_the_collector(worker: MachineWorker) -> None:
    """A megabyte of JSON that is refused is let go of with its answer; in a circle of task, error and frame it would stay, and the next dozen with it."""

    class RefusedBody: ...

    async def refuse(_: RefusedBody) -> None:
        raise StorageFull("no room")

    async def request() -> weakref.ref[RefusedBody]:
        body = RefusedBody()
        with contextlib.suppress(StorageFull):
            await worker.run_to_end(refuse(body), "work")
        return weakref.ref(body)

    gc.disable()
    try:
        left = await asyncio.ensure_future(request())
        await asyncio.sleep(0)
        assert left() is None
    finally:
        gc.enable()


async def test_a_stop_waits_for_whoever_has_the_turn(worker: MachineWorker) -> None:
    """Also where no task of the worker's own is under way: somebody reads the machine."""
    holder = worker.queue.join_first()
    await holder.wait_turn(asyncio.get_running_loop().time() + 5)
    closing = asyncio.create_task(worker.close())
    done, _ = await asyncio.wait([closing], timeout=0.05)
    assert not done
    holder.leave()
    await closing


@pytest.mark.logs("worker.close_incomplete")
async def test_what_a_stop_has_no_time_for_is_over_after_it(worker: MachineWorker) -> None:
    """It is cancelled and has cleaned up before the ledger is closed; whatever it ends with is no matter of the stop."""
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append("work")

    caller = asyncio.ensure_future(worker.run_to_end(work(), "work"))
    await asyncio.sleep(0)
    await worker.close(0.01)
    assert ended == ["work"]
    await asyncio.gather(caller, return_exceptions=True)


async def test_a_tick_is_due_once(worker: MachineWorker) -> None:
    """However much ended before it; then again for what ends after it, and never once the daemon stops."""
    ticks: list[int] = []

    async def tick() -> None:
        ticks.append(1)

    worker.limits = worker.limits._replace(aggregation_delay=0.0)
    for count in (1, 2):
        for _ in range(3):
            worker.schedule_tick(tick)
        await until(lambda count=count: len(ticks) == count)
    worker.limits = worker.limits._replace(aggregation_delay=3600.0)
    worker.schedule_tick(tick)
    await worker.close(60)
    worker.schedule_tick(tick)
    await asyncio.sleep(0.01)
    assert len(ticks) == 2


async def test_another_taxpayer_s_book_begins_with_nothing(worker: MachineWorker, till: Till) -> None:
    """What was in doubt belongs to the old book, and nothing of its totals or its time is left."""
    other = await Till.of(till.store, mode="test")
    worker.attempts.intend("in doubt").phase = Phase.IN_DOUBT
    worker.attempts.met_machine = True
    worker.aggregate = await till.store.ledger.aggregated(till.book)
    worker.time.last_at = START
    worker.change_book(other.book)
    assert (worker.book, worker.attempts.find("in doubt"), worker.attempts.met_machine) == (other.book, None, False)
    assert (worker.aggregate, worker.time.last_at) == (None, 0)


async def test_the_books_of_former_taxpayers_are_opened_once(worker: MachineWorker, till: Till) -> None:
    """With the change, and told as the ledger has them now; the taxpayer that comes back has none but the other's."""
    ledger, mine = till.store.ledger, till.book
    await ledger.reconcile(mine, till.state(), unexplained=0, at=START)
    for ifu, before in (("00099999Z", mine.id), (IFU, mine.id + 1)):
        worker.change_book(await ledger.write(book_of_taxpayer, worker.book, mine.nim, ifu))
        await begin(worker)
        (former,) = former_workers(worker)
        assert (former.book.id, former.attention) == (before, "")
        await ledger.set_attention(former.book, Text("look"), at=START)
        assert (former_workers(worker)[0] is former, former.attention) == (True, "look")
    assert worker.book.id == mine.id


@pytest.mark.logs("machine.activated")
async def test_the_name_of_the_machine_is_that_of_its_last_certification(worker: MachineWorker) -> None:
    """Nothing else of the book changes."""
    before = worker.book
    worker.apply_name(before.nim)
    assert worker.book is before
    worker.apply_name("EL02000015-2")
    assert worker.book == msgspec.structs.replace(before, nim="EL02000015-2")


async def test_a_turn_that_was_not_used_before_the_machine_was_lost_comes_again(worker: MachineWorker) -> None:
    """At its return, with the machine that is there then."""
    machines: list[Any] = [Machine(), Machine()]
    worker.opened(machines[0])
    with worker.queue.join() as entry:
        worker.lost("unplugged")
        waiting = asyncio.ensure_future(worker.turn(entry, asyncio.get_running_loop().time() + 60, worker.present))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        worker.opened(machines[1])
        assert await waiting is machines[1]


async def test_a_machine_in_test_mode_is_told_once(worker: MachineWorker) -> None:
    """When its first code shows it, and again only after a code that counts."""
    events = []
    for code in ("", "ABCDEFGHIJKLMNOPQRSTUVWX", "TESTFACT1", "", "TESTFACT2", "ABCDEFGHIJKLMNOPQRSTUVWX", "TESTFACT3"):
        with capture_logs() as logs:
            worker.apply_code(code)
        events.append([each["event"] for each in logs])
    assert events == [[], [], ["machine.test_mode"], [], [], [], ["machine.test_mode"]]
