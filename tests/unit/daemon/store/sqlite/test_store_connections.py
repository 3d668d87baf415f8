"""Who may do what with the ledger's file, and what the error says where it cannot be opened, or is closed."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.ledgers.ledger import opened

from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.core.keys import generate
from daemon.store.sqlite.connection import connect_reader, connect_snapshot, connect_writer
from daemon.store.sqlite.free_space import FreeSpace
from daemon.store.sqlite.migrations import migrate, migrations
from daemon.store.tables.keys import ApiKeyRing
from daemon.store.tables.meta import write_meta

INSERT = "INSERT INTO cat VALUES ('Minou')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cat (name TEXT)")
    return path


async def test_only_the_writer_writes(path: Path) -> None:
    """A look-up on the loop's thread and a long reading are refused by SQLite itself. A file that cannot be opened is a translated error, and its thread is gone by then, which the
    suite watches, as once it is closed, where what is started is told so. No thread of an open one stands in the way of a process that ends by a mistake of ours."""
    writer, reader, snapshot = await connect_writer(path), await connect_reader(path), connect_snapshot(path)
    with pytest.raises(StorageFull, match="read-only"):
        await reader.run(lambda each: each.execute(INSERT))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        snapshot.execute(INSERT)
    await writer.run(lambda each: each.execute(INSERT))
    assert {thread.daemon for thread in threading.enumerate() if thread.name.startswith("ledger ")} == {True}
    assert snapshot.execute("SELECT * FROM cat").fetchall() == [("Minou",)]
    for each in (reader, writer):
        await each.close()
        late: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        each.start(lambda each: each.execute(INSERT), lambda _, error, late=late: late.set_result(error))
        assert str(await late) == "the ledger is closed"
    snapshot.close()
    with pytest.raises(StorageFull, match="cannot be opened"):
        await connect_reader(path.parent / "nothing")


async def test_a_store_that_is_closed_ends_what_it_was_given(tmp_path: Path) -> None:
    """Also what waits behind a transaction that is under way: each gets its error before the file is let go."""
    began, go_on = threading.Event(), threading.Event()

    def blocked_job(_: sqlite3.Connection) -> bool:
        began.set()
        return go_on.wait(60)

    async with opened(tmp_path / "deep" / "below" / "ledger.sqlite3") as store:
        with pytest.raises(sqlite3.ProgrammingError):  # a mistake of ours stays one
            store.ledger.peek(lambda connection: connection.execute("SELECT ?"))
        waiting = [asyncio.ensure_future(store.ledger.write(blocked_job))]
        assert await asyncio.to_thread(began.wait, 60)
        waiting.append(asyncio.ensure_future(store.retention.write(write_meta, "name", "value")))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, go_on.set)
    assert [each.done() and each.exception() for each in waiting] == [None, None]


OF_ANOTHER = ["PRAGMA application_id = 7", "PRAGMA user_version = 1", "CREATE TABLE cat (name TEXT)"]


@pytest.mark.parametrize("sign", OF_ANOTHER)
def test_whatever_another_program_has_left_in_a_file_makes_it_foreign(sign: str) -> None:
    """A number of its own, a version or a table; an empty file is taken as ours."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(sign)
        with pytest.raises(LedgerUnusable, match="another program"):
            migrate(connection, migrations())


def test_a_key_in_a_file_that_cannot_be_read_is_not_an_unknown_one(tmp_path: Path) -> None:
    """A damaged ledger says so; a mistake of ours stays one. A text tried at random, which can be no key, does not get as far as the file."""
    (tmp_path / "rubbish").write_bytes(b"rubbish" * 1000)
    key = generate("live")
    with closing(sqlite3.connect(tmp_path / "rubbish")) as connection, pytest.raises(LedgerUnusable):
        ApiKeyRing(connection).find(key)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        ApiKeyRing(connection).find(key)
    assert ApiKeyRing(connection).find("mcfd_nothing") is None


def look(path: Path, *, limit: int = 0, reserve: int = 0, connection: Any = None) -> FreeSpace:
    async def probe() -> None:
        raise StorageFull("the disk does not take what is written")

    return FreeSpace(path, reserve_bytes=reserve, limit=limit, connection=connection, probe=probe)


async def check(space: FreeSpace) -> None:
    if space.is_due:
        await space.measure()
    space.check()


@pytest.mark.parametrize(("flag", "may_write", "is_read_only"), [(0, True, False), (1, True, True), (0, False, True)])
async def test_a_ledger_that_cannot_be_written_is_told_as_read_only(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, flag: int, may_write: bool, is_read_only: bool
) -> None:
    """The file system is mounted so, or the file is not ours to write."""
    found = SimpleNamespace(f_flag=flag, f_bavail=1 << 20, f_frsize=4096)
    monkeypatch.setattr("os.statvfs", lambda _: found)
    monkeypatch.setattr("os.access", lambda *_: may_write)
    if is_read_only:
        with pytest.raises(StorageFull, match="read-only"):
            await check(look(path))
    else:
        await check(look(path))


async def test_pages_that_were_let_go_of_are_room_again(path: Path) -> None:
    """A file of its largest size is not full for ever: what is pruned makes room in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO cat VALUES (?)", ("M" * 100_000,))
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        room: Callable[[], FreeSpace] = lambda: look(  # noqa: E731  asked anew each time
            path, limit=pages + 10, reserve=20 * 4096, connection=connection
        )
        with pytest.raises(StorageFull, match="size"):
            await check(room())
        connection.execute("DELETE FROM cat")
        await check(room())
