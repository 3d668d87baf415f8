"""The writer: one commit for those who wait together, its own trouble for each, none lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import StorageError, StorageFull
from daemon.store.sqlite import writer as module
from daemon.store.sqlite.connection import Connection, connect_writer
from daemon.store.sqlite.writer import Writer


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Connection]:
    connection = await connect_writer(tmp_path / "file.sqlite3")
    await connection.run(lambda c: c.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, word TEXT UNIQUE)"))
    yield connection
    await connection.close()


@pytest.fixture
async def writer(connection: Connection) -> AsyncIterator[Writer]:
    writer = Writer(connection)
    yield writer
    await writer.close()


def put(word: str):
    return lambda c: c.execute("INSERT INTO entry (word) VALUES (?) RETURNING id", (word,)).fetchone()[0]


async def words(connection: Connection) -> list[str]:
    return await connection.run(lambda c: [word for (word,) in c.execute("SELECT word FROM entry ORDER BY id")])


async def test_those_who_wait_together_share_one_commit(writer: Writer, connection: Connection) -> None:
    """In the order in which they came, each with its own result."""
    assert await asyncio.gather(*(writer.submit(put(f"w{at}")) for at in range(50))) == list(range(1, 51))
    assert writer.commits == 1
    assert await words(connection) == [f"w{at}" for at in range(50)]


async def test_a_failing_job_fails_alone(writer: Writer, connection: Connection) -> None:
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


async def test_a_lone_failing_job_leaves_nothing(writer: Writer, connection: Connection) -> None:
    """Alone it has no savepoint; the transaction itself is undone."""

    def half(c: sqlite3.Connection) -> None:
        put("half")(c)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await writer.submit(half)
    assert await words(connection) == []
    assert writer.commits == 0


async def test_a_failed_commit_fails_everyone_and_is_told(writer: Writer, connection: Connection) -> None:
    """A full disk: nobody is told that it was stored, the ledger's room hears of it, and later writes go on."""
    heard: list[StorageError | None] = []
    writer.on_fault = heard.append
    (pages,) = await connection.run(lambda c: c.execute("PRAGMA page_count").fetchone())
    await connection.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 1}").fetchone())
    big = "x" * 100_000
    results = await asyncio.gather(
        writer.submit(put("a")), writer.submit(put(big)), writer.submit(put("b")), return_exceptions=True
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


async def test_a_caller_that_was_cancelled_is_served_all_the_same(writer: Writer, connection: Connection) -> None:
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


async def test_closing_writes_what_was_handed_over(connection: Connection) -> None:
    """And afterwards nothing is taken any more."""
    writer = Writer(connection)
    waiting = [asyncio.ensure_future(writer.submit(put(f"w{at}"))) for at in range(20)]
    await asyncio.sleep(0)
    await writer.close()
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


async def test_many_callers_are_gathered(writer: Writer) -> None:
    """Eight callers who each come back a moment later share their commits, although the disk is quick enough to serve
    each alone."""

    async def come_and_go(caller: int) -> None:
        for at in range(20):
            await writer.submit(put(f"{caller}-{at}"), caller=caller)
            await asyncio.sleep(0.0005 * (1 + caller % 3))

    await asyncio.gather(*(come_and_go(caller) for caller in range(8)))
    assert writer.commits <= 8 * 20 / 4


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
    """The loop with a clock that the test moves; `waits` are the delays that were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio.get_running_loop(), name)

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        self.waits.append(delay)
        return asyncio.get_running_loop().call_later(delay, call)


async def test_who_is_away_longer_is_not_waited_for(writer: Writer) -> None:
    """Eight machines on real lines, three milliseconds after each other: an intent follows its outcome at once, an outcome its intent when
    the line is over. Nobody's outcome waits for those who are still at it."""
    clock = _Clock()
    vars(writer)["_loop"] = clock
    for _ in range(5):
        for machine in range(8):
            await writer.submit(put(f"{clock.now} outcome"), caller=machine)
            await writer.submit(put(f"{clock.now} intent"), caller=machine)
            clock.now += 0.003
        clock.now += 0.05
    assert not clock.waits


async def test_the_wal_is_brought_in_between_batches(tmp_path: Path, writer: Writer, connection: Connection) -> None:
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
    assert seen[:2] == [0, 0]
    await writer.close()
    assert checkpoints == 2
