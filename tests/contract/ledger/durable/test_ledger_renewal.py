"""After an error of the disk the ledger is copied into a new file, whatever becomes of the mark, of the copy or of the room for it."""

import asyncio
import contextlib
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.ledgers.ledger import START, Till, opened, opened_till, query, tamper

from daemon.core.clock import DAY, HOUR
from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.store.maintenance import renewal
from daemon.store.maintenance.backup import backup, complete_copy, restore
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite import disk_failure, high_water
from daemon.store.sqlite.disk_failure import DiskFailure, disk_trouble, ending_on_failure, read_failures, storage_error
from daemon.store.sqlite.file import BUSY_SECONDS, open_file
from daemon.store.sqlite.lock import CommitMark
from daemon.store.sqlite.writer import checkpoint_all
from daemon.store.tables.book.books import book_state

SOLD = 5


class Ended(BaseException):
    """In the place of the process' end."""


def end(cause: str) -> None:
    raise Ended(cause)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """As a process that ended at once has left it: a file with its write-ahead log."""
    source, path = tmp_path / "made" / "ledger.sqlite3", tmp_path / "ledger.sqlite3"

    async def sell() -> None:
        async with opened_till(source) as (_, till):
            for _ in range(SOLD):
                await till.sell()
            for file in ("ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3.commits"):
                shutil.copy(source.with_name(file), path.with_name(file))

    asyncio.run(sell())
    assert path.with_name("ledger.sqlite3-wal").stat().st_size
    return path


def fail(path: Path) -> None:
    with ending_on_failure(path, end), pytest.raises(Ended):
        storage_error(sqlite_error(sqlite3.SQLITE_IOERR_FSYNC))


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = code, f"code {code}"
    return error


def sold(path: Path) -> int:
    """As a start finds it."""

    async def look() -> int:
        async with opened(path) as store:
            return (store.ledger.peek(book_state, (await Till.of(store)).book)).last_seq

    return asyncio.run(look())


@pytest.mark.parametrize("left", [None, b""])
def test_of_a_ledger_that_is_gone_since_the_error_nothing_is_copied(ledger: Path, left: bytes | None) -> None:
    """A start makes a new one in its place, as where none was."""
    fail(ledger)
    for name in ("ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3.commits"):
        ledger.with_name(name).unlink()
    if left is not None:
        ledger.write_bytes(left)
    assert sold(ledger) == 0
    assert list(ledger.parent.glob("*.failed-*")) == []


@pytest.mark.logs("ledger.copied")
def test_the_copy_is_another_file_with_everything(ledger: Path) -> None:
    """The old one is kept with its log; the next start copies nothing."""
    inode, mode = ledger.stat().st_ino, ledger.stat().st_mode
    fail(ledger)
    assert sold(ledger) == SOLD
    new = ledger.stat()
    assert (new.st_ino != inode, new.st_mode) == (True, mode)
    (aside,) = [file for file in ledger.parent.glob("*.failed-*") if not file.name.endswith("-wal")]
    assert (aside.stat().st_ino, sold(aside)) == (inode, SOLD)
    assert sold(ledger) == SOLD
    assert ledger.stat().st_ino == new.st_ino
    assert [failure.cause for failure in read_failures(ledger)] == ["code 1034"]
    assert verify(ledger).clean


READER = """
import sqlite3, sys
old = sqlite3.connect(sys.argv[1])
print(old.execute("SELECT count(*) FROM certification").fetchone(), flush=True)
sys.stdin.read()
"""


def test_a_command_that_still_reads_the_old_file_does_not_disturb_the_new_one(ledger: Path) -> None:
    """It has the old one's index of the log in its memory, which is a file of a name that the new one uses too."""
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(ledger)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == f"({SOLD},)\n"
        fail(ledger)
        assert sold(ledger) == SOLD
        assert verify(ledger).clean
        reader.communicate("")


@pytest.mark.parametrize("step", range(6))
def test_a_start_that_ends_in_the_middle_of_the_copy_is_made_again(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """At each sync, and before it is noted as done; then the power goes, and takes the end of the log that could not be synced, and every mark.
    Everything is there, and nothing doubled."""
    fail(ledger)

    def ends(*_: object) -> None:
        nonlocal left
        if left == 0:
            raise Ended
        left -= 1

    left = step
    with monkeypatch.context() as patch:
        patch.setattr(renewal, "sync_path", ends)
        patch.setattr(renewal, "note_copied", ends)
        with pytest.raises(Ended):
            sold(ledger)
    if step:  # nothing of the copy is sure to be there before
        ledger.with_name("ledger.sqlite3.disk-failures").unlink()
        if (log := ledger.with_name("ledger.sqlite3-wal")).exists():
            os.truncate(log, log.stat().st_size * 2 // 3)
    time.sleep(0.002)  # the old file's name has the millisecond of the start
    assert sold(ledger) == SOLD
    assert verify(ledger).clean
    assert not disk_failure.is_copy_due(ledger)


def test_a_restore_removes_a_copy_that_was_not_yet_put_in_place(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A start would put it in the place of the ledger that was restored."""
    saved = tmp_path / "saved"
    backup(ledger, saved, at=START)
    fail(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(renewal, "_exchange", lambda *_: end(""))
        with pytest.raises(Ended):
            sold(ledger)
    assert complete_copy(ledger).exists()
    restore(saved, ledger, at=START)
    assert sold(ledger) == SOLD
    assert query(ledger, "SELECT restored_at FROM book") == [(START,)]


def test_a_mark_that_no_disk_takes_does_not_matter(ledger: Path) -> None:
    """Every start writes the whole log into the file and syncs it before anything else is written."""

    async def look() -> int:
        async with opened(ledger):
            with closing(sqlite3.connect(f"{ledger.as_uri()}?immutable=1", uri=True)) as alone:  # without its log
                return alone.execute("SELECT count(*) FROM certification").fetchone()[0]

    assert asyncio.run(look()) == SOLD
    ledger.with_name("ledger.sqlite3.disk-failures").mkdir()  # nothing can be written there
    fail(ledger)
    assert sold(ledger) == SOLD


def test_the_mark_is_in_the_memory_of_the_box_where_there_is_a_folder_for_it(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that takes nothing any more does not keep it from being found."""
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))
    inode = ledger.stat().st_ino
    fail(ledger)
    assert not ledger.with_name("ledger.sqlite3.disk-failures").exists()
    assert sold(ledger) == SOLD
    assert ledger.stat().st_ino != inode
    assert not list((tmp_path / "run").iterdir())
    monkeypatch.delenv("RUNTIME_DIRECTORY")
    assert len(read_failures(ledger)) == 1
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "none"))
    fail(ledger)
    assert len(read_failures(ledger)) == 2  # beside the ledger, where there is no such folder


def test_a_start_that_copies_is_not_taken_for_one_that_hangs(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system hears of each step of the copy, and of its last one, which syncs it."""
    steps: list[float] = []
    monkeypatch.setattr(renewal.notify, "still_starting", steps.append)
    fail(ledger)
    assert sold(ledger) == SOLD
    assert steps == [renewal.STEP_SECONDS] * 2


def test_without_room_for_the_copy_the_start_says_so(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older copies go first; then nothing is begun, and the ledger stays as it is. As much as it takes is enough, and lets an
    older copy stay."""
    fail(ledger)
    old = ledger.with_name("ledger.sqlite3.failed-2026-01-01T000000000Z")
    old.write_bytes(b"old")
    inode = ledger.stat().st_ino
    needed = sum(ledger.with_name(f"{ledger.name}{suffix}").stat().st_size for suffix in ("", "-wal"))
    disk = SimpleNamespace(f_flag=0, f_bavail=needed - 1, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    with pytest.raises(StorageFull, match=r" 1 MB have to be free .* 0 MB are; make room"):
        sold(ledger)
    assert not old.exists()
    assert ledger.stat().st_ino == inode
    disk.f_bavail += 1
    old.write_bytes(b"old")
    assert sold(ledger) == SOLD
    assert old.exists()


def test_a_copy_that_is_damaged_takes_no_ledgers_place(ledger: Path) -> None:
    """What is there is left for a restore, under its name."""
    tamper(ledger, "UPDATE certification SET hash = x'00' WHERE seq = ?", SOLD)
    fail(ledger)
    inode = ledger.stat().st_ino
    with pytest.raises(LedgerUnusable):
        sold(ledger)
    assert (ledger.stat().st_ino, list(ledger.parent.glob("*.failed-*"))) == (inode, [])


def test_old_files_are_two_at_the_most(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file system has no hard links."""
    monkeypatch.setattr(os, "link", refused(errno.EPERM))
    for _ in range(4):
        fail(ledger)
        assert sold(ledger) == SOLD
    rows = [file for file in ledger.parent.glob("*.failed-*") if not file.name.endswith("-wal")]
    assert len(rows) == 2


def test_a_ledger_that_cannot_be_read_any_more_has_to_be_put_back(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: object) -> None:
        raise sqlite_error(sqlite3.SQLITE_IOERR_READ)

    fail(ledger)
    monkeypatch.setattr(renewal, "_copy", unreadable)
    with pytest.raises(LedgerUnusable, match="mcfd restore"):
        sold(ledger)


@pytest.mark.parametrize(
    ("code", "room", "ends"),
    [
        (sqlite3.SQLITE_IOERR_FSYNC, True, True),
        (sqlite3.SQLITE_IOERR_DIR_FSYNC, True, True),
        (sqlite3.SQLITE_IOERR_WRITE, True, True),
        (sqlite3.SQLITE_IOERR_TRUNCATE, True, True),
        (sqlite3.SQLITE_IOERR_SHMMAP, True, True),
        (sqlite3.SQLITE_IOERR_SHMSIZE, True, True),
        (sqlite3.SQLITE_IOERR_FSYNC, False, True),  # what it should have synced may be gone, whatever the reason
        (sqlite3.SQLITE_IOERR_WRITE, False, False),  # a file that may not grow, a quota
        (sqlite3.SQLITE_IOERR_SHMSIZE, False, False),
        (sqlite3.SQLITE_IOERR_READ, True, False),
        (sqlite3.SQLITE_IOERR_NOMEM, True, False),
        (sqlite3.SQLITE_FULL, True, False),
        (sqlite3.SQLITE_BUSY, True, False),
    ],
)
def test_which_errors_end_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, code: int, room: bool, ends: bool
) -> None:
    if not room:
        monkeypatch.setattr(os, "write", refused(errno.EDQUOT))
    opened_before = len(list(Path("/proc/self/fd").iterdir()))
    with ending_on_failure(tmp_path / "ledger", end):
        if ends:
            with pytest.raises(Ended):
                storage_error(sqlite_error(code))
        else:
            assert isinstance(storage_error(sqlite_error(code)), StorageFull)
    assert isinstance(storage_error(sqlite_error(code)), StorageFull)  # in a command
    assert not list(tmp_path.glob("*.room"))
    assert len(list(Path("/proc/self/fd").iterdir())) == opened_before


def refused(number: int):
    def call(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return call


def test_a_log_that_is_brought_in_at_a_start_waits_for_no_reader(ledger: Path) -> None:
    """One of an older view goes on reading; later locks of the file are waited for as before."""
    with closing(sqlite3.connect(ledger)) as reader, closing(open_file(ledger, "rw")) as connection:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM certification").fetchone()
        limit = connection.execute("PRAGMA busy_timeout").fetchone()
        began = time.monotonic()
        checkpoint_all(connection, ledger)
        assert time.monotonic() - began < BUSY_SECONDS / 2
        assert connection.execute("PRAGMA busy_timeout").fetchone() == limit


@pytest.mark.parametrize(
    ("number", "is_full", "ends"),
    [(errno.EIO, False, True), (errno.EIO, True, True), (errno.ENOSPC, False, False), (errno.EROFS, False, False)],
)
def test_which_errors_of_our_own_files_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, number: int, is_full: bool, ends: bool
) -> None:
    """Of the high-water file, of a write-ahead log that is brought in, of a copy in its place, which are synced whatever room the disk has; and of
    the mark of the last commit, which is not, and is silent about a full disk."""
    path = tmp_path / "ledger"
    mark = CommitMark(path, "name")

    def bring_in_all() -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE t (x)")
            checkpoint_all(connection, path)

    def put_in_place() -> None:
        with renewal._failing():
            os.fsync(0)

    with monkeypatch.context() as patch, ending_on_failure(path, end):
        patch.setattr(os, "fsync", refused(number))
        patch.setattr(os, "pwrite", refused(number))
        if is_full:
            patch.setattr(disk_failure, "_refuses_all", lambda _: True)
        for write in (partial(high_water.write_marks, path, high_water.Marks()), bring_in_all, put_in_place):
            with pytest.raises(Ended if ends else StorageFull):
                write()
        with pytest.raises(Ended) if ends and not is_full else contextlib.nullcontext():
            mark.write(1)
    mark.close()


NOW = 1_000 * DAY


@pytest.mark.parametrize(
    ("ago", "is_reported"),
    [
        ((), False),
        ((0, HOUR // 2), False),
        ((0, HOUR // 2, HOUR), True),
        ((0, HOUR // 2, HOUR + 1), False),
        ((5, 2 * HOUR, 4 * HOUR, 6 * HOUR), False),
        ((5, 3 * DAY, 3 * DAY + 1, 3 * DAY + 2), True),
        ((7 * DAY - 1, 7 * DAY - 1, 7 * DAY - 1), True),
        ((7 * DAY, 7 * DAY, 7 * DAY), False),
        ((-DAY, -DAY, -DAY), True),  # the clock was ahead
    ],
)
def test_three_failures_in_an_hour_are_told_for_a_week(ago: tuple[int, ...], is_reported: bool) -> None:
    failures = sorted(DiskFailure(NOW - each, "code") for each in ago)
    assert bool(disk_trouble(failures, NOW)) == is_reported


def test_a_daemon_that_fails_at_each_start_fills_no_disk_with_it(tmp_path: Path) -> None:
    for _ in range(1000):
        disk_failure._record(tmp_path / "ledger", "SQLITE_IOERR_FSYNC")
    assert (tmp_path / "ledger.disk-failures").stat().st_size < 5000
    assert disk_trouble(read_failures(tmp_path / "ledger"), time.time_ns() // 1_000_000)
    disk_failure.note_copied(tmp_path / "ledger")
    assert len(read_failures(tmp_path / "ledger")) == 16
