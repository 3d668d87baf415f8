"""A backup is whole and sound or not there; a restore is noticed by everyone it concerns."""

import asyncio
import contextlib
import os
import re
import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from support.ledgers.disk_steps import disk_steps
from support.ledgers.ledger import START, Till, opened_till, query, tamper

from common.language import translate
from daemon.core.errors import LedgerUnusable
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance import backup as module
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite import file, migrations
from daemon.store.sqlite.lock import LedgerLock
from daemon.store.tables.book.books import book_state
from daemon.store.tables.events import event_span
from daemon.store.tables.meta import read_meta


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copies" / "ledger.backup"


@pytest.fixture(autouse=True)
def folder(copy: Path) -> None:
    copy.parent.mkdir()


def sell_one(path: Path) -> Till:
    async def sell() -> Till:
        async with opened_till(path) as (_, till):
            await till.sell()
            return till

    return asyncio.run(sell())


def others(path: Path) -> set[str]:
    """What lies beside a file."""
    return {entry.name for entry in path.parent.iterdir()} - {path.name}


async def test_a_backup_while_the_daemon_works(till: Till, path: Path, copy: Path) -> None:
    """One consistent, verified file, also while tills certify; it says when it was made."""
    for _ in range(30):
        await till.sell()
    await till.close()
    saving = asyncio.ensure_future(asyncio.to_thread(backup, path, copy, at=START))
    while not saving.done():
        await till.sell()
    findings = await saving
    assert findings.clean
    assert 30 <= findings.records <= till.sold
    assert others(copy) == set()
    assert query(copy, "SELECT value FROM meta WHERE name = 'backup_at'") == [(str(START),)]
    assert query(copy, "PRAGMA journal_mode") == [("delete",)]
    assert verify(copy) == findings
    assert verify(path).records == till.sold


def test_a_damaged_ledger_does_not_replace_a_good_backup(path: Path, copy: Path) -> None:
    """A backup that does not verify is thrown away; the one before it stays."""
    sell_one(path)
    backup(path, copy, at=START)
    before = copy.read_bytes()
    tamper(path, "UPDATE certification SET total_ttc = 1")
    with pytest.raises(LedgerUnusable, match="record 1"):
        backup(path, copy, at=START + 1)
    assert copy.read_bytes() == before
    assert others(copy) == set()


def test_an_interrupted_backup_leaves_nothing_that_counts(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the last step, the target does not exist; the leftover is taken away by the next one."""
    sell_one(path)

    def die(_: Path, __: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_put_in_place", die)
        with pytest.raises(KeyboardInterrupt):
            backup(path, copy, at=START)
    assert not copy.exists()
    copy.with_name(copy.name + ".part").write_bytes(b"left over by a power cut")
    assert backup(path, copy, at=START).clean


def test_what_cannot_be_saved_or_put_anywhere_is_told(path: Path, tmp_path: Path) -> None:
    """No ledger, no folder: a clear line instead of a trace."""
    with pytest.raises(LedgerUnusable, match=str(path)):
        backup(path, tmp_path / "copy", at=START)
    sqlite3.connect(path).close()
    path.touch()
    with pytest.raises(LedgerUnusable, match="cannot be written"):
        backup(path, tmp_path / "no" / "folder" / "copy", at=START)


def restored_at(path: Path) -> int:
    return query(path, "SELECT restored_at FROM book")[0][0]


async def test_a_restored_ledger_knows_that_it_is_one(path: Path, copy: Path) -> None:
    """Every book is to be compared with its machine first; the ledger that was replaced is kept aside, with all it had."""
    async with opened_till(path) as (_, till):
        await till.sell()
        assert restored_at(path) == 0
    backup(path, copy, at=START)
    async with opened_till(path) as (_, till):
        await till.sell()
    done = restore(copy, path, at=START + 5)
    assert done.findings.clean
    assert done.aside is not None
    assert verify(done.aside).records == 2
    async with opened_till(path) as (store, till):
        assert (store.ledger.peek(book_state, till.book)).counters == FiscalCounters(1, 1, 0)
        assert restored_at(path) == START + 5
        assert store.retention.peek(read_meta, "restored_at") == str(START + 5)
        assert (store.events.peek(event_span)).epoch == (START + 5) // 1000
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
        assert restored_at(path) == 0


def test_the_audit_log_names_the_file_that_was_put_back(path: Path, copy: Path) -> None:
    """That of the medium, where `source` is a copy made readable from it."""
    sell_one(path)
    backup(path, copy, at=START)
    medium = Path("/media/stick/ledger.backup.age")
    for origin in (medium, None):
        restore(copy, path, at=START, origin=origin)
        [(origin_in_log,)] = query(path, "SELECT detail ->> 'from' FROM audit WHERE action = 'ledger.restored'")
        assert origin_in_log == str(origin or copy)


async def test_no_restore_under_a_running_daemon(till: Till, path: Path, copy: Path) -> None:
    """The ledger that is in use is not touched."""
    await till.sell()
    backup(path, copy, at=START)
    with pytest.raises(LedgerUnusable, match="in use"):
        restore(copy, path, at=START)
    await till.sell()
    assert verify(path).records == 2


def test_a_start_during_a_restore_waits_for_its_end(path: Path, copy: Path) -> None:
    """The lock names a command as its holder, not a daemon."""
    sell_one(path)
    backup(path, copy, at=START)
    starts: list[Future[LedgerLock]] = []
    with ThreadPoolExecutor(1) as pool:

        def start(_: int, __: int) -> None:
            starts.append(pool.submit(LedgerLock.acquire, path))
            wait(starts, timeout=0.2)

        restore(copy, path, at=START, progress=start)
        for each in starts:
            each.result().release()
    assert starts


def test_a_backup_that_is_not_sound_is_not_put_back(path: Path, copy: Path) -> None:
    """The present ledger stays when the copy turns out to be bad."""
    sell_one(path)
    backup(path, copy, at=START)
    tamper(copy, "UPDATE certification SET total_ttc = 1")
    tamper(copy, "UPDATE book SET z_number = 9, last_at = 9")
    assert len(verify(copy).problems) > 3
    before = path.read_bytes()
    with pytest.raises(LedgerUnusable, match="not sound") as refusal:
        restore(copy, path, at=START)
    assert str(refusal.value).count("; ") == 2  # the first three
    assert re.search(r"ledger\.backup est abîmé\s: .*enregistrement", str(translate(refusal.value, "fr")))
    copy.write_bytes(copy.read_bytes()[: 5 * 4096])
    with pytest.raises(LedgerUnusable, match="cannot be copied: it is no ledger of mcfd, or a damaged one"):
        restore(copy, path, at=START)
    assert path.read_bytes() == before
    assert others(path) - {path.name + "-wal", path.name + "-shm"} == {
        "copies",
        path.name + ".lock",
        path.name + ".commits",
    }


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"rubbish" * 2000, "database"])
@pytest.mark.parametrize("keep_newer", [False, True])
def test_a_file_that_is_no_ledger_is_not_put_in_the_place_of_one(
    path: Path, copy: Path, content: bytes | str, keep_newer: bool
) -> None:
    """An empty file, as a full stick leaves it, is a database to SQLite; another program's is one too. What is said is about the copy: the ledger
    that works needs nothing."""
    sell_one(path)
    if isinstance(content, bytes):
        copy.write_bytes(content)
    else:
        with contextlib.closing(sqlite3.connect(copy)) as other:
            other.execute("CREATE TABLE bookmark (name)")
    before = path.read_bytes()
    with pytest.raises(LedgerUnusable, match=r"ledger\.backup cannot be copied: it is no ledger of mcfd"):
        restore(copy, path, at=START, keep_newer=keep_newer)
    assert path.read_bytes() == before
    assert not [*path.parent.glob("*.replaced-*")]


def test_restore_in_the_place_of_a_damaged_or_missing_ledger(path: Path, copy: Path) -> None:
    """That is what it is for: nothing of the old file is needed, and its WAL does not get into the new one."""
    sell_one(path)
    backup(path, copy, at=START)
    path.write_bytes(b"rubbish" * 2000)
    path.with_name(path.name + "-wal").write_bytes(b"stale" * 1000)
    done = restore(copy, path, at=START)
    assert done.aside.read_bytes().startswith(b"rubbish")
    assert not path.with_name(path.name + "-wal").exists()
    assert verify(path).clean
    path.unlink()
    assert restore(copy, path, at=START).aside is None
    assert sell_one(path).counters == FiscalCounters(2, 2, 0)


def test_a_ledger_left_by_a_crash_is_set_aside_whole(path: Path, copy: Path) -> None:
    """What stood only in the WAL is in the file that is kept aside, also when a person takes that file alone."""
    sell_one(path)
    backup(path, copy, at=START)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as crashed:
        crashed.execute("PRAGMA journal_mode = WAL")
        crashed.execute("INSERT INTO meta VALUES ('only', 'in the wal')")
        done = restore(copy, path, at=START)
    alone = done.aside.replace(path.with_name("alone"))
    assert query(alone, "SELECT value FROM meta WHERE name = 'only'") == [("in the wal",)]
    assert query(path, "SELECT value FROM meta WHERE name = 'only'") == []


def test_what_no_checkpoint_could_bring_in_is_set_aside_with_its_file(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program is reading the ledger, so its WAL cannot be emptied: it is kept beside the file that it belongs to."""
    monkeypatch.setattr(file, "BUSY_SECONDS", 0.1)  # the other one reads longer than anybody waits
    sell_one(path)
    backup(path, copy, at=START)
    with (
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as crashed,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader,
    ):
        crashed.execute("PRAGMA journal_mode = WAL")
        crashed.execute("INSERT INTO meta VALUES ('first', 'before the reader')")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM meta").fetchall()
        crashed.execute("INSERT INTO meta VALUES ('only', 'in the wal')")
        done = restore(copy, path, at=START)
        assert done.aside is not None
        assert query(done.aside, "SELECT value FROM meta WHERE name = 'only'") == [("in the wal",)]
        assert query(path, "SELECT value FROM meta WHERE name = 'only'") == []


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    return disk_steps(monkeypatch, tmp_path)


def test_a_copy_counts_only_once_it_is_on_the_disk(path: Path, copy: Path, steps: list[tuple[str, str]]) -> None:
    """Its content before its name, and that before the command ends: only a power cut would show the difference."""
    sell_one(path)
    steps.clear()
    backup(path, copy, at=START)
    name, folder = "copies/ledger.backup", "copies"
    assert steps == [*[("fsync", f"{name}.part")] * 2, ("replace", name), ("fsync", folder)]


def test_a_stick_that_gives_something_else_back_is_not_taken_for_a_damaged_ledger(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is verified is what the medium has, and not what is still in memory of it. Who read that the ledger is damaged would replace a sound one."""
    sell_one(path)
    part = copy.with_name(f"{copy.name}.part")

    def drop(*_: object) -> None:
        with part.open("r+b") as file:
            file.seek(8192)
            file.write(bytes(40_000))

    monkeypatch.setattr(os, "posix_fadvise", drop)
    with pytest.raises(LedgerUnusable, match="take another stick"):
        backup(path, copy, at=START)
    assert [*copy.parent.iterdir()] == []
    monkeypatch.undo()
    assert backup(path, copy, at=START).clean


def test_the_ledger_that_is_replaced_is_on_the_disk_before_its_place_is_taken(
    path: Path, copy: Path, steps: list[tuple[str, str]]
) -> None:
    """First the copy; then the old ledger under its other name, and that its WAL is gone; then the new one, and its name."""
    sell_one(path)
    backup(path, copy, at=START)
    name, aside = path.name, f"{path.name}.replaced-2025-12-06T054640000Z"
    steps.clear()
    restore(copy, path, at=START)
    mark = steps.index(("fsync", f"{name}.part"))
    assert steps[mark:] == [
        ("fsync", f"{name}.part"),
        ("link", aside),
        ("fsync", "."),
        ("fsync", "."),
        ("fsync", f"{name}.part"),
        ("replace", name),
        ("fsync", "."),
    ]


def test_a_backup_of_an_older_version_is_put_back_as_a_new_one(path: Path, copy: Path) -> None:
    """It is brought up to date on the way, before it is verified."""
    steps = migrations.migrations()
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as older:
        migrations.migrate(older, steps[:-1])
    assert restore(copy, path, at=START).findings.clean
    assert query(path, "PRAGMA user_version") == [(steps[-1].number,)]
