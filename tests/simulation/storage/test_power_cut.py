"""In which order names and contents reach the disk when the power goes, and that what mcfd replaces is there whole before each of its syncs."""

import asyncio
import itertools
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from simulation.storage.durable import DurableFiles, watched
from support.ledgers.ledger import START, Till, opened, query, tamper

from common.files import sync_path
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.high_water import Mark, Marks, read_marks, write_marks

DRAWS = 24
OLD, NEW = Marks({"book": Mark(1)}), Marks({"book": Mark(2)})


def cut(folder: Path, draw: int, work: Callable[[], None], *, sync: int = 0) -> bool:
    """The power goes before the so many-th sync of `work`, or after it; whether it went before its end."""
    files = DurableFiles(folder, random.Random(draw))
    files.settle()
    with watched(files):
        files.cut_at(sync, lambda: None)
        work()
        was_cut = files.is_cut
        with files.ending(power_cut=True):
            pass
    return was_cut


@pytest.mark.parametrize(
    ("content", "name", "left"),
    [
        (False, False, {b"old", b""}),
        (True, False, {b"old", b"new"}),
        (False, True, {b""}),
        (True, True, {b"new"}),
    ],
)
def test_a_renamed_file_has_what_was_synced_of_it(tmp_path: Path, content: bool, name: bool, left: set[bytes]) -> None:
    """Without a sync of its folder a rename may be lost, and without one of the file it may come before what is in it."""
    file, part = tmp_path / "file", tmp_path / "part"

    def replace() -> None:
        part.write_bytes(b"new")
        if content:
            sync_path(part)
        part.replace(file)
        if name:
            sync_path(tmp_path)

    found = set()
    for draw in range(DRAWS):
        file.write_bytes(b"old")
        cut(tmp_path, draw, replace)
        found.add(file.read_bytes())
    assert found == left


@pytest.mark.parametrize(("sync", "left"), [(1, [OLD]), (2, [OLD, NEW]), (0, [NEW])])
def test_the_numbers_that_were_given_are_the_old_ones_or_the_new(tmp_path: Path, sync: int, left: list[Marks]) -> None:
    """Never a damaged file, and never none; and the new ones once the writing has returned."""
    ledger = tmp_path / "ledger"
    found = []
    for draw in range(DRAWS):
        write_marks(ledger, OLD)
        cut(tmp_path, draw, lambda: write_marks(ledger, NEW), sync=sync)
        found.append(read_marks(ledger))
    assert all(marks in left for marks in found)
    assert all(marks in found for marks in left)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """What a killed daemon left: a ledger of two sales with its WAL, and a backup from after the first."""
    folder = tmp_path / "killed"
    folder.mkdir()

    async def sell() -> None:
        async with opened(tmp_path / "ledger") as store:
            till = await Till.of(store)
            await till.sell()
            backup(tmp_path / "ledger", folder / "saved", at=START)
            await till.sell()
            _copy_of(tmp_path, folder)

    asyncio.run(sell())
    return folder


def _copy_of(ledgers: Path, folder: Path) -> None:
    for file in ledgers.glob("ledger*"):
        if not file.name.endswith((".lock", "-shm")):
            shutil.copy(file, folder)


def cuts(tmp_path: Path, killed: Path, draws: int, *, read: bool = False, keep_newer: bool = False) -> Iterator[Path]:
    """The ledger, or what is left of it, for a power cut before each sync of a restore, and one after the last."""
    for sync in itertools.count(1):
        for draw in range(draws):
            ledger = tmp_path / f"{sync} {draw}" / "ledger"
            shutil.copytree(killed, ledger.parent)
            with closing(sqlite3.connect(ledger, isolation_level=None)) as reader:
                if read:
                    reader.execute("BEGIN").execute("SELECT count(*) FROM certification").fetchall()
                was_cut = cut(
                    ledger.parent,
                    draw,
                    lambda here=ledger: restore(here.with_name("saved"), here, at=START, keep_newer=keep_newer),
                    sync=sync,
                )
            yield ledger
        if not was_cut:
            assert sync > 4
            return


def test_a_ledger_that_is_replaced_is_the_old_one_or_the_new(tmp_path: Path, killed: Path) -> None:
    """Whole, before whichever sync of a restore the power goes."""
    found = set()
    for ledger in cuts(tmp_path, killed, 3):
        assert verify(ledger).clean
        found.add(query(ledger, "SELECT count(*) FROM certification")[0])
    assert found == {(1,), (2,)}


def test_a_ledger_that_is_mended_is_the_damaged_one_or_the_new(tmp_path: Path, killed: Path) -> None:
    """With both sales, before whichever sync of a restore the power goes; the same command again completes it."""
    tamper(killed / "ledger", "UPDATE certification SET payload = x'00' WHERE seq = 1")
    found = set()
    for ledger in cuts(tmp_path, killed, 3, keep_newer=True):
        found.add(verify(ledger).clean)
        restore(ledger.with_name("saved"), ledger, at=START + 1, keep_newer=True)
        assert (verify(ledger).problems, verify(ledger).records) == ((), 2)
    assert found == {True, False}


def test_a_restored_ledger_never_stands_beside_the_wal_of_the_one_before(
    tmp_path: Path, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose pages it would take for its own. Another program reads, so the WAL cannot be emptied, only kept aside; names reach the disk in any order."""
    monkeypatch.setattr("daemon.store.sqlite.file.BUSY_SECONDS", 0)
    for ledger in cuts(tmp_path, killed, 6, read=True):
        is_restored = ledger.read_bytes()[18] == 1  # its header: a restored ledger is no WAL's until it is opened
        assert not is_restored or not ledger.with_name("ledger-wal").exists()
