"""Full, read-only, and well again: noticed before the machine is asked, without a restart (decision: 507 STORAGE_FULL)."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from types import ModuleType

import pytest
from support.box.mounts import fill, small_disk
from support.ledgers.ledger import NIM, Till, invoice, opened, opened_till, query

from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.core.ledger.book import Book
from daemon.store import store as opening
from daemon.store.maintenance import numbers
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite import free_space
from daemon.store.store import Store
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import book_state
from daemon.store.tables.meta import write_meta

PAGES_MIB = 256
LIVE = Book(1, NIM, "live")
SANDBOX = Book(2, NIM, "test")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system is asked at every check instead of once a second."""
    monkeypatch.setattr(free_space, "ASK_AGAIN", 0.0)


async def refused(store: Store) -> str:
    with pytest.raises(StorageFull) as caught:
        await store.ledger.check_free_space(LIVE)
    return str(caught.value)


async def fill_up(till: Till) -> None:
    """Certifies until there is no room for another."""
    with pytest.raises(StorageFull):
        await sell_on(till, check=True)


async def sell_on(till: Till, *, check: bool) -> None:
    for _ in range(100_000):
        if check:
            await till.store.ledger.check_free_space(till.book)
        await till.sell()


async def test_a_file_at_its_largest_size_is_noticed_before_the_machine_is_asked(tmp_path: Path) -> None:
    """The reserve is left for what has begun: it can still be ended, and the period be closed."""
    path = tmp_path / "ledger.sqlite3"
    async with opened_till(path, max_pages=PAGES_MIB, reserve_bytes=1 << 19) as (store, till):
        attempt_id = await till.begin(invoice("F-1"))
        await fill_up(till)
        assert "size" in await refused(store)
        await till.finish(attempt_id, invoice("F-1"))
        await till.close()
    async with opened(path, max_pages=3 * PAGES_MIB, reserve_bytes=1 << 19) as store:
        await store.ledger.check_free_space(LIVE)
    assert verify(path).clean


async def test_a_write_that_does_not_fit_is_undone_and_told(tmp_path: Path) -> None:
    """Without a reserve the file fills up to the last page: StorageFull, nothing half written, and well again with free_space."""
    path = tmp_path / "ledger.sqlite3"
    async with opened_till(path, max_pages=100) as (store, till):
        with pytest.raises(StorageFull):
            await sell_on(till, check=False)
        sold = (store.ledger.peek(book_state, till.book)).last_seq
        big = invoice("BIG", amounts=tuple(("B", at) for at in range(1, 1000)))
        for _ in range(3):
            with pytest.raises(StorageFull):
                await till.begin(big)
    async with opened_till(path) as (store, till):
        for record in store.ledger.peek(attempts.unfinished, till.book):
            await store.ledger.write(attempts.end, till.book, record.id, "abandoned", "full", at=till.at)
        await till.certify(big)
        assert (store.ledger.peek(book_state, till.book)).last_seq >= sold
    assert verify(path).clean


@pytest.mark.parametrize(
    ("module", "name", "writes_much"),
    [
        (opening, "find_lost", lambda *_, **__: "x" * 100_000),
        (numbers, "catch_up", lambda connection, *_: write_meta(connection, "much", "x" * 100_000)),
    ],
)
async def test_a_file_that_is_full_at_the_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, writes_much: Callable[..., object]
) -> None:
    """SQLite ends a transaction that found no room: the error names the disk, not that there was nothing to undo."""
    path = tmp_path / "ledger.sqlite3"
    async with opened_till(path):
        pass
    ((pages,),) = query(path, "PRAGMA page_count")
    monkeypatch.setattr(module, name, writes_much)
    with pytest.raises(StorageFull):
        await Store.open(path, timezone=UTC, max_pages=pages)


async def test_the_reserve_of_the_file_system(tmp_path: Path) -> None:
    """Less than the reserve free is full, whatever filled it; for a sandbox too."""
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    ways: list[int] = []

    async def let_pass() -> None:
        ways.append(len(ways))

    async with opened(tmp_path / "ledger.sqlite3", reserve_bytes=free * 2) as store:
        assert "reserve" in await refused(store)
        ledger, book = store.sandbox_ledger(let_pass), (await Till.of(store, mode="test")).book
        with pytest.raises(StorageFull):
            await ledger.check_free_space(book)
        assert ledger.time_ahead(book) == 0
        await ledger.keep_time_ahead(book, 7)
        assert (ledger.time_ahead(book), ways) == (7, [0, 1])  # a sandbox lets live sales go first, each time


async def test_a_sandbox_leaves_the_rest_to_live_sales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With four reserves free both may certify; with less the sandbox gets the error of a full disk, and live sales go on."""
    reserve = 1 << 20
    look = os.statvfs

    def left(blocks: int) -> None:
        def statvfs(path: str) -> os.statvfs_result:
            found = list(look(path))
            found[0], found[1], found[4] = 4096, 4096, blocks
            return os.statvfs_result(found)

        monkeypatch.setattr(os, "statvfs", statvfs)

    async with opened(tmp_path / "ledger.sqlite3", reserve_bytes=reserve) as store:
        left(4 * reserve // 4096)
        await store.ledger.check_free_space(LIVE)
        await store.ledger.check_free_space(SANDBOX)
        left(4 * reserve // 4096 - 1)
        await store.ledger.check_free_space(LIVE)
        with pytest.raises(StorageFull, match="left to live sales"):
            await store.ledger.check_free_space(SANDBOX)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 3) as folder:
        yield folder


async def until_well(store: Store) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await store.ledger.check_free_space(LIVE)
            except StorageFull:
                await asyncio.sleep(0.01)
            else:
                return


async def failing_writes(till: Till) -> None:
    """Until one fails: the WAL may have some room left."""
    with pytest.raises(StorageFull):
        await begin_large_ones(till)


async def begin_large_ones(till: Till) -> None:
    for at in range(1000):
        await till.begin(invoice(f"N-{at}", amounts=tuple(("B", 7919 * n % 99991) for n in range(1, 300))))


async def test_a_full_disk_and_room_again(disk: Path) -> None:
    """A real file system that somebody else fills: 507 before the machine is asked, writes fail whole, and when there is
    room again the open daemon works on, with everything that it had said was stored."""
    path = disk / "ledger.sqlite3"
    async with opened_till(path, reserve_bytes=64 * 1024) as (store, till):
        record = await till.sell()
        attempt_id = await till.begin(invoice("F-1"))
        filler = fill(disk)
        await refused(store)
        await failing_writes(till)
        filler.unlink()
        await until_well(store)
        await till.finish(attempt_id, invoice("F-1"))
        assert store.ledger.peek(attempts.find_number, till.book, record.number) == record
    assert verify(path).clean


async def test_a_disk_that_turns_read_only(disk: Path) -> None:
    """As a file system does when its card begins to fail: noticed, and well again once it is mounted for writing."""

    def remount(mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", disk], check=True)

    async with opened_till(disk / "ledger.sqlite3") as (_, till):
        await till.sell()
    path = disk / "ledger.sqlite3"
    remount("ro")
    try:
        with pytest.raises((LedgerUnusable, StorageFull), match=str(path)):
            async with opened(path):
                pass
    finally:
        remount("rw")
    async with opened(path) as store:
        await (await Till.of(store)).sell()


async def test_a_failed_write_is_asked_about_until_one_succeeds(store: Store, till: Till) -> None:
    """After a fault the ledger is not believed to be well before a small write has succeeded."""
    await store.ledger.check_free_space(LIVE)
    checker = store._open.free_space
    checker.note(StorageFull("the disk does not take what is written"))
    commits = store.retention.commits
    await store.ledger.check_free_space(LIVE)
    assert store.retention.commits == commits + 1
    await store.ledger.check_free_space(LIVE)
    assert store.retention.commits == commits + 1
    await till.sell()
