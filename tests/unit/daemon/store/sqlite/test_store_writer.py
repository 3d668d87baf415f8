"""The writer: one commit for those who wait together, its own trouble for each, none lost."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

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


def put_slowly(word: str):
    return lambda c: (time.sleep(0.02), put(word)(c))[1]


async def leave_a_page(connection: SqliteConnection) -> None:
    """The file may grow by one, for which `BIG` is too much."""
    (pages,) = await connection.run(lambda c: c.execute("PRAGMA page_count").fetchone())
    await connection.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 1}").fetchone())


async def words(connection: SqliteConnection) -> list[str]:
    return await connection.run(lambda c: [word for (word,) in c.execute("SELECT word FROM entry ORDER BY id")])


async def test_a_failing_job_fails_alone(writer: Writer, connection: SqliteConnection) -> None:
    """What it had written is undone, those before and after it are kept. Alone it has no savepoint; the transaction itself is undone."""

    def half(c: sqlite3.Connection) -> None:
        put("half")(c)
        raise ValueError("not mine to keep")

    with pytest.raises(ValueError, match="not mine"):
        await writer.submit(half)
    assert (await words(connection), writer.commits) == ([], 0)
    jobs = (put("a"), half, put("a"), put("b"))
    results = await asyncio.gather(*(writer.submit(job) for job in jobs), return_exceptions=True)
    assert [type(result) for result in results] == [int, ValueError, sqlite3.IntegrityError, int]
    assert await words(connection) == ["a", "b"]


@pytest.mark.logs("ledger.write_failed")
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
    # after the third and the sixth job; who waits for that very job may be woken before or after
    assert [seen[at] for at in (0, 1, 3, 4, 6, 7)] == [0, 0, 1, 1, 2, 2]
    await writer.close()
    assert checkpoints == 2


@pytest.mark.logs("ledger.checkpoint_failed")
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
        result = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in result] == [asyncio.CancelledError, *([StorageFull] * 2 if fails else [int] * 2)]


class _BlockedJob:
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
            coming.append(asyncio.ensure_future(writer.submit(put_slowly(f"held {at}"))))
            for _ in range(3):
                await asyncio.sleep(0)
        self._go_on.set()
        return coming


async def test_closing_waits_for_what_came_during_a_commit(connection: SqliteConnection) -> None:
    """Everybody has been told when it returns."""
    writer, stored = Writer(connection), _BlockedJob()
    await writer.submit(put("before"))
    first = asyncio.ensure_future(writer.submit(stored))
    coming = await stored.while_it_lasts(writer, 2)
    await writer.close()
    assert [each.done() for each in (first, *coming)] == [True] * 3
    assert writer.commits == 2


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
