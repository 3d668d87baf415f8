"""The writer: one commit for those who wait together, its own trouble for each, none lost."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from simulation.virtual_loop import VirtualLoop

from daemon.core.errors import StorageError, StorageFull
from daemon.store.sqlite import writer as module
from daemon.store.sqlite.connection import SqliteConnection, connect_writer
from daemon.store.sqlite.writer import Writer

BIG = "x" * 100_000


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[SqliteConnection]:
    connection = await connect_writer(tmp_path / "file.sqlite3")
    await connection.run(lambda c: c.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, word TEXT UNIQUE)"))
    yield connection
    await connection.close()


@pytest.fixture
async def writer(connection: SqliteConnection) -> AsyncIterator[Writer]:
    writer = Writer(connection)
    yield writer
    await writer.close()


def put(word: str):
    return lambda c: c.execute("INSERT INTO entry (word) VALUES (?) RETURNING id", (word,)).fetchone()[0]


async def leave_a_page(connection: SqliteConnection) -> None:
    """The file may grow by one, for which `BIG` is too much."""
    (pages,) = await connection.run(lambda c: c.execute("PRAGMA page_count").fetchone())
    await connection.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 1}").fetchone())


async def words(connection: SqliteConnection) -> list[str]:
    return await connection.run(lambda c: [word for (word,) in c.execute("SELECT word FROM entry ORDER BY id")])


async def test_those_who_wait_together_share_one_commit(writer: Writer, connection: SqliteConnection) -> None:
    """In the order in which they came, each with its own result."""
    assert await asyncio.gather(*(writer.submit(put(f"w{at}")) for at in range(50))) == list(range(1, 51))
    assert writer.commits == 1
    assert await words(connection) == [f"w{at}" for at in range(50)]


async def test_a_failing_job_fails_alone(writer: Writer, connection: SqliteConnection) -> None:
    """What it had written is undone, those before and after it are kept."""

    def half(c: sqlite3.Connection) -> None:
        put("half")(c)
        raise ValueError("not mine to keep")

    results = await asyncio.gather(
        writer.submit(put("a")),
        writer.submit(half),
        writer.submit(put("a")),
        writer.submit(put("b")),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [int, ValueError, sqlite3.IntegrityError, int]
    assert await words(connection) == ["a", "b"]


async def test_a_lone_failing_job_leaves_nothing(writer: Writer, connection: SqliteConnection) -> None:
    """Alone it has no savepoint; the transaction itself is undone."""

    def half(c: sqlite3.Connection) -> None:
        put("half")(c)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await writer.submit(half)
    assert await words(connection) == []
    assert writer.commits == 0


async def test_a_failed_commit_fails_everyone_and_is_told(writer: Writer, connection: SqliteConnection) -> None:
    """A full disk: nobody is told that it was stored, the ledger's room hears of it, and later writes go on."""
    heard: list[StorageError | None] = []
    writer.on_fault = heard.append
    await leave_a_page(connection)
    results = await asyncio.gather(
        writer.submit(put("a")), writer.submit(put(BIG)), writer.submit(put("b")), return_exceptions=True
    )
    assert [type(result) for result in results] == [StorageFull] * 3
    assert [type(fault) for fault in heard] == [StorageFull]
    await connection.run(lambda c: c.execute("PRAGMA max_page_count = 10000").fetchone())
    await writer.submit(put("c"))
    assert heard[-1] is None
    assert await words(connection) == ["c"]


async def test_reading_jobs_cost_no_commit(writer: Writer) -> None:
    """A transaction that wrote nothing is not counted: it does not wait for the disk."""
    await writer.submit(lambda c: c.execute("SELECT 1").fetchone())
    assert writer.commits == 0


async def test_a_caller_that_was_cancelled_is_served_all_the_same(writer: Writer, connection: SqliteConnection) -> None:
    """Before its batch began or while it runs: what was handed over is written."""
    before = asyncio.ensure_future(writer.submit(put("before")))
    await asyncio.sleep(0)
    before.cancel()
    during = asyncio.ensure_future(writer.submit(put("during")))
    for _ in range(3):
        await asyncio.sleep(0)
    during.cancel()
    await asyncio.gather(before, during, return_exceptions=True)
    await writer.submit(put("after"))
    assert await words(connection) == ["before", "during", "after"]


async def test_closing_writes_what_was_handed_over(connection: SqliteConnection) -> None:
    """And afterwards nothing is taken any more."""
    writer = Writer(connection)
    waiting = [asyncio.ensure_future(writer.submit(put(f"w{at}"))) for at in range(20)]
    await asyncio.sleep(0)
    await writer.close()
    assert [each.done() for each in waiting] == [True] * 20
    assert len(await asyncio.gather(*waiting)) == 20
    assert len(await words(connection)) == 20
    with pytest.raises(StorageFull, match="closed"):
        await writer.submit(put("late"))


async def test_a_lone_caller_is_never_delayed(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it comes: with a gathering delay of an hour, one caller and its neighbours below the limit pass at once."""
    monkeypatch.setattr(module, "DELAY", 3600)
    async with asyncio.timeout(30):
        for at in range(100):
            await writer.submit(put(f"w{at}"), caller=at % (module.SIBLINGS - 1))
    assert writer.commits == 100


class _QuickDisk:
    """A connection whose transactions each take so many seconds, on a virtual clock."""

    def __init__(self, loop: VirtualLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, word TEXT UNIQUE)")

    def start(self, job: Any, told: Any) -> None:
        self._loop.call_later(self._seconds, lambda: told(job(self._connection), None))

    def close(self) -> None:
        self._connection.close()


def test_many_callers_are_gathered() -> None:
    """Eight callers who each come back a moment later share their commits, although the disk is quick enough to serve
    each alone."""
    loop = VirtualLoop(1)
    disk = _QuickDisk(loop, 0.0001)

    async def commits_of_all() -> int:
        writer = Writer(cast("SqliteConnection", disk))

        async def come_and_go(caller: int) -> None:
            for at in range(20):
                await writer.submit(put(f"{caller}-{at}"), caller=caller)
                await asyncio.sleep(0.0005 * (1 + caller % 3))

        await asyncio.gather(*(come_and_go(caller) for caller in range(8)))
        return writer.commits

    try:
        assert loop.run_until_complete(commits_of_all()) <= 8 * 20 / 4
    finally:
        loop.close()
        disk.close()


async def test_gathering_ends_when_everyone_is_back(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delay is a limit, not a wait: with an hour of it, callers that all come back are served at once."""
    monkeypatch.setattr(module, "DELAY", 3600)

    async def come_and_go(caller: int) -> None:
        for at in range(20):
            await writer.submit(put(f"{caller}-{at}"), caller=caller)

    async with asyncio.timeout(30):
        await asyncio.gather(*(come_and_go(caller) for caller in range(8)))
    assert writer.commits == 20


class _Clock:
    """The loop with a clock that the test moves; `waits` are the delays that were asked for, of timers that never end by themselves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.timers: list[asyncio.TimerHandle] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio.get_running_loop(), name)

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        self.waits.append(delay)
        self.timers.append(asyncio.get_running_loop().call_later(3600, call))
        return self.timers[-1]


async def test_who_is_away_longer_is_not_waited_for(writer: Writer) -> None:
    """Eight machines on real lines, three milliseconds after each other: an intent follows its outcome at once, an outcome its intent when
    the line is over. Nobody's outcome waits for those who are still at it."""
    clock = _Clock()
    vars(writer)["_loop"] = clock
    async with asyncio.timeout(30):
        for _ in range(5):
            for machine in range(8):
                await writer.submit(put(f"{clock.now} outcome"), caller=machine)
                await writer.submit(put(f"{clock.now} intent"), caller=machine)
                clock.now += 0.003
            clock.now += 0.05
    assert not clock.waits


@pytest.fixture
def starts(connection: SqliteConnection, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A thing for each transaction that was begun."""
    begun: list[object] = []
    real = connection.start

    def start(job: Any, told: Any) -> None:
        begun.append(job)
        real(job, told)

    monkeypatch.setattr(connection, "start", start)
    return begun


@pytest.mark.parametrize(
    ("callers", "away", "after", "wait"),
    [
        (4, (0.002, 0.002), 0.001, 0.002),  # the others are back in a millisecond, and may be another late
        (3, (0.002, 0.002), 0.001, None),  # too few to be worth it
        (4, (0.005, 0.005), 0.0015, 0.004),  # never longer than DELAY
        (4, (0.006, 0.006), 0.001, None),  # too long away
        (4, (0.002, 0.002), 0.0025, 0.0005),  # a little late already
        (4, (0.002, 0.002), 0.0035, None),  # too late: who knows whether they come at all
        (
            4,
            (0.002, 0.05),
            0.001,
            0.002,
        ),  # an intent and its outcome take turns: the next time is like the one before the last
        (4, (0.05, 0.002), 0.001, None),
    ],
)
async def test_who_is_waited_for_and_how_long(
    writer: Writer, starts: list[object], *, callers: int, away: tuple[float, ...], after: float, wait: float | None
) -> None:
    """Callers that come and go together, away so long each time; then one is back so long after it was told. When the last of those who are waited
    for is back, it begins in that very moment, and the timer is over."""
    clock = _Clock()
    vars(writer)["_loop"] = clock
    for at, pause in enumerate((0.0, *away)):
        clock.now += pause
        await asyncio.gather(*(writer.submit(put(f"{at} {caller}"), caller=caller) for caller in range(callers)))
    assert (writer.commits, len(starts), clock.waits) == (3, 3, [])
    clock.now += after
    tasks = [asyncio.ensure_future(writer.submit(put("first"), caller=0))]
    for _ in range(3):
        await asyncio.sleep(0)
    assert clock.waits == ([] if wait is None else [pytest.approx(wait)])
    if wait is not None:
        tasks += [asyncio.ensure_future(writer.submit(put(f"more {each}"), caller=each)) for each in range(1, callers)]
        await asyncio.sleep(0)
        assert (len(starts), [timer.cancelled() for timer in clock.timers]) == (4, [True])
    await asyncio.gather(*tasks)
    assert writer.commits == 4


@pytest.mark.parametrize(
    ("before", "caller", "at_once"),
    [((1,), 1, True), ((1,), 2, False), ((1,), None, False), ((None,), None, False), ((1, 2), 1, False)],
)
async def test_a_lone_caller_costs_no_turn_of_the_loop(
    writer: Writer, starts: list[object], before: tuple[int | None, ...], caller: int | None, at_once: bool
) -> None:
    """Who was alone in the last transaction is not made to wait for others of the same moment; anybody else is."""
    await asyncio.gather(*(writer.submit(put(f"before {at}"), caller=each) for at, each in enumerate(before)))
    assert len(starts) == 1
    task = asyncio.ensure_future(writer.submit(put("after"), caller=caller))
    await asyncio.sleep(0)
    assert len(starts) == (2 if at_once else 1)
    await task


async def test_the_wal_is_brought_in_between_batches(
    tmp_path: Path, writer: Writer, connection: SqliteConnection
) -> None:
    """The WAL does not grow for ever although SQLite's own checkpoint is only a backstop."""
    for at in range(3 * module.JOBS_PER_CHECKPOINT):
        await writer.submit(put(f"{at}" * 20))
    size = await asyncio.to_thread(lambda: (tmp_path / "file.sqlite3-wal").stat().st_size)
    assert size < 1.5 * module.JOBS_PER_CHECKPOINT * 4 * 4120


async def test_the_wal_is_brought_in_after_so_many_jobs_and_not_before(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs a write to the file itself."""
    checkpoints = 0

    def counted(connection: sqlite3.Connection) -> None:
        nonlocal checkpoints
        checkpoints += 1
        real(connection)

    real = module.checkpoint
    monkeypatch.setattr(module, "checkpoint", counted)
    monkeypatch.setattr(module, "JOBS_PER_CHECKPOINT", 3)
    seen = []
    for at in range(8):
        await writer.submit(put(f"w{at}"))
        seen.append(checkpoints)
    # after the third and the sixth job; who waits for that very job may be told before or after
    assert [seen[at] for at in (0, 1, 3, 4, 6, 7)] == [0, 0, 1, 1, 2, 2]
    await writer.close()
    assert checkpoints == 2


class _Held:
    """A job, or a checkpoint, that lasts until it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self._go_on = threading.Event()

    def __call__(self, _: sqlite3.Connection) -> None:
        self.began.set()
        assert self._go_on.wait(60)

    async def while_it_lasts(self, writer: Writer, count: int) -> list[asyncio.Task[Any]]:
        """So many more jobs come, each in a turn of the loop of its own; then it is let go."""
        assert await asyncio.to_thread(self.began.wait, 60)
        coming = []
        for at in range(count):
            coming.append(asyncio.ensure_future(writer.submit(put(f"held {at}"))))
            for _ in range(3):
                await asyncio.sleep(0)
        self._go_on.set()
        return coming


async def test_those_who_come_during_a_commit_share_the_next_one(writer: Writer, connection: SqliteConnection) -> None:
    """Each at a moment of its own: there is one transaction at a time, and the next one has all of them."""
    held = _Held()
    first = asyncio.ensure_future(writer.submit(held))
    await asyncio.gather(first, *await held.while_it_lasts(writer, 3))
    assert writer.commits == 1  # what was held wrote nothing
    assert await words(connection) == ["held 0", "held 1", "held 2"]


async def test_closing_waits_for_what_came_during_a_commit(connection: SqliteConnection) -> None:
    """Everybody has been told when it returns."""
    writer, held = Writer(connection), _Held()
    await writer.submit(put("before"))
    first = asyncio.ensure_future(writer.submit(held))
    coming = await held.while_it_lasts(writer, 2)
    await writer.close()
    assert [each.done() for each in (first, *coming)] == [True] * 3
    assert writer.commits == 2


async def test_those_who_come_during_a_checkpoint_share_a_commit(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as work of the writer; what waited for it goes on by itself."""
    held = _Held()
    monkeypatch.setattr(module, "checkpoint", held)
    monkeypatch.setattr(module, "JOBS_PER_CHECKPOINT", 1)
    await writer.submit(put("a"))
    coming = await held.while_it_lasts(writer, 3)
    await asyncio.gather(*coming)
    assert writer.commits == 2


async def test_a_checkpoint_that_finds_the_disk_full_is_told(
    writer: Writer, connection: SqliteConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a commit would: the next certification is not begun before the disk was looked at. The job before it is stored, the next one goes on."""
    heard: list[StorageError | None] = []
    writer.on_fault = heard.append
    await leave_a_page(connection)
    monkeypatch.setattr(module, "checkpoint", put(BIG))
    monkeypatch.setattr(module, "JOBS_PER_CHECKPOINT", 1)
    assert await writer.submit(put("a")) == 1
    await writer.submit(lambda c: c.execute("SELECT 1").fetchone())
    assert [type(fault) for fault in heard] == [type(None), StorageFull]


@pytest.mark.parametrize("fails", [False, True])
async def test_one_who_went_away_takes_nobody_along(writer: Writer, connection: SqliteConnection, fails: bool) -> None:
    """The first of a batch was cancelled: those behind it are told what became of theirs, whether it was written or not."""
    await leave_a_page(connection)
    job = put(BIG if fails else "b")
    tasks = [asyncio.ensure_future(writer.submit(each)) for each in (put("a"), job, put("c"))]
    await asyncio.sleep(0)
    tasks[0].cancel()
    async with asyncio.timeout(60):
        told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in told] == [asyncio.CancelledError, *([StorageFull] * 2 if fails else [int] * 2)]
