"""Writes that were acknowledged and are not in the ledger any more: noticed when it is opened, whatever of its WAL was damaged."""

import asyncio
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from support.ledgers.disk_steps import disk_steps
from support.ledgers.ledger import NIM, Till, opened, opened_till, query

from common.language.reasons import from_stored
from daemon.core.ledger.book import BookState
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.lock import mark_path
from daemon.store.tables.book.books import book_state, open_book
from daemon.store.tables.meta import begin_epoch, read_lineage, write_meta

SALES = 6
FRAME = 4096 + 24


class Killed(NamedTuple):
    """A ledger as a SIGKILL left it: file, WAL and mark."""

    path: Path

    @property
    def wal(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    @property
    def commits(self) -> list[int]:
        """Frames of the WAL that end a transaction."""
        content = self.wal.read_bytes()
        heads = [content[at : at + 8] for at in range(32, len(content), FRAME)]
        return [number for number, head in enumerate(heads) if any(head[4:])]

    def flip(self, offset: int, bit: int = 4) -> None:
        content = bytearray(self.wal.read_bytes())
        content[offset] ^= 1 << bit
        self.wal.write_bytes(content)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    asyncio.run(_work(folder))
    return folder / "copy"


async def _work(folder: Path) -> None:
    path = folder / "ledger.sqlite3"
    async with opened(path) as store:
        await (await Till.of(store)).sell()
    async with opened_till(path) as (_, till):
        for _ in range(SALES):
            await till.sell()
        copy(folder)


def copy(folder: Path) -> None:
    (folder / "copy").mkdir()
    for file in folder.glob("ledger.sqlite3*"):
        if not file.name.endswith(("-shm", ".lock")):
            shutil.copy(file, folder / "copy")


def stored_logs(ledger: Path) -> list[Path]:
    return list(ledger.parent.glob("*.damaged-*"))


@pytest.fixture
def killed(left: Path, tmp_path: Path) -> Killed:
    return Killed(Path(shutil.copytree(left, tmp_path / "box")) / "ledger.sqlite3")


async def state_of(path: Path) -> BookState:
    async with opened(path) as store:
        return store.ledger.peek(book_state, await store.ledger.write(open_book, NIM, "live"))


async def test_a_kill_loses_nothing_and_says_nothing(killed: Killed) -> None:
    """The usual recovery."""
    assert verify(killed.path).clean
    state = await state_of(killed.path)
    assert (state.last_seq, state.lost, state.is_restored) == (SALES + 1, "", False)


@pytest.mark.long
async def test_each_flipped_bit_of_the_wal_that_costs_an_entry_is_noticed(killed: Killed, tmp_path: Path) -> None:
    """In page, header or checksum of a frame, of the first transaction as of the last one; also of the WAL's own header."""
    size = killed.wal.stat().st_size
    frames = list(range(32, size, FRAME))
    offsets = [0, 9, 17, 25, *(at + within for at in frames[::3] for within in (1, 5, 9, 17, 23, 24, 4000))]
    for offset in offsets:
        box = Killed(Path(shutil.copytree(killed.path.parent, tmp_path / f"flip-{offset}")) / "ledger.sqlite3")
        box.flip(offset)
        found = verify(box.path)
        state = await state_of(box.path)
        entire = state.last_seq == SALES + 1 and len(query(box.path, "SELECT 1 FROM certification")) == SALES + 1
        assert entire or "acknowledged write" in from_stored(state.lost), offset
        assert bool(state.lost) == state.is_restored == (not found.clean), offset
        assert stored_logs(box.path) or not state.lost, offset


async def test_what_was_noticed_stays_until_an_operator_has_looked(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over restarts, and over writes of commands. The log is on the disk under its other name before SQLite empties it."""
    killed.flip(32 + 24)
    steps = disk_steps(monkeypatch, killed.path.parent)
    async with opened(killed.path, opening="command") as store:
        assert ("fsync", f"{killed.wal.name}.damaged-1") in steps
        await store.retention.write(write_meta, "colour", "blue")
    first = await state_of(killed.path)
    assert "write-ahead log is damaged" in from_stored(first.lost)
    assert "settle" in from_stored(first.lost)
    again = await state_of(killed.path)
    assert again.lost == first.lost
    async with opened(killed.path) as store:
        assert len(store.ledger.peek(read_lineage).epochs) == 1  # by which headquarters learns of it
    assert len(stored_logs(killed.path)) == 1


@pytest.mark.parametrize(("behind", "noticed"), [(1, False), (2, True)])
async def test_without_a_mark_the_frames_behind_the_break_tell(killed: Killed, behind: int, noticed: bool) -> None:
    """A ledger of an earlier version, or one whose mark is lost. The last transaction may be one that a power cut has left incomplete; a
    transaction before it was synced."""
    mark_path(killed.path).unlink()
    killed.flip(32 + killed.commits[-behind] * FRAME + 24)
    assert bool((await state_of(killed.path)).lost) == noticed


async def test_the_frames_of_a_ledger_that_is_a_link_tell_too(killed: Killed, tmp_path: Path) -> None:
    """They are beside the file that it leads to, and are stored there for a repair."""
    mark_path(killed.path).unlink()
    killed.flip(32 + killed.commits[-2] * FRAME + 24)
    link = tmp_path / "link.sqlite3"
    link.symlink_to(killed.path)
    assert "acknowledged write" in from_stored((await state_of(link)).lost)
    assert len(stored_logs(killed.path)) == 1


async def test_a_mark_that_is_behind_or_of_another_ledger_says_nothing(killed: Killed, tmp_path: Path) -> None:
    """After a power cut it is an earlier one, or none; after a restore it was that of the ledger that gave way."""
    mark = mark_path(killed.path)
    for content in (b"", b"rubbish\n", mark.read_bytes()[:-5], mark.read_bytes().replace(b" 0", b" 9", 1)):
        mark.write_bytes(content)
        assert (await state_of(killed.path)).lost == ""
    other = tmp_path / "other.sqlite3"
    async with opened(other) as store:
        await (await Till.of(store)).sell()
    shutil.copy(mark_path(killed.path), mark_path(other))
    assert (await state_of(other)).lost == ""


async def test_a_copy_put_back_twice_lacks_nothing(tmp_path: Path) -> None:
    """Each time under another epoch, whatever the clock says: what was acknowledged after the first time is not missing after the second."""
    path, saved = tmp_path / "ledger.sqlite3", tmp_path / "saved"
    async with opened_till(path) as (_, till):
        await till.sell()
    assert backup(path, saved, at=1).clean
    for _ in range(2):
        restore(saved, path, at=1)
        assert not (await state_of(path)).lost
        async with opened_till(path) as (store, till):
            for _ in range(SALES):
                await till.sell()
            before = store.ledger.peek(read_lineage).epoch
            await store.ledger.write(begin_epoch, 1, None)  # without a mark too
            assert store.ledger.peek(read_lineage).epoch == before + 1


async def test_an_older_copy_that_was_put_in_place_by_hand_is_noticed_after_a_restore_too(tmp_path: Path) -> None:
    """Its epoch is before that of the mark. A log without a frame is not stored for a repair."""
    path, saved = tmp_path / "ledger.sqlite3", tmp_path / "saved"
    async with opened_till(path) as (_, till):
        await till.sell()
    assert backup(path, saved, at=1).clean
    restore(saved, path, at=1)
    async with opened_till(path) as (_, till):
        await till.sell()
    for log in (b"", bytes(32)):
        shutil.copy(saved, path)
        path.with_name(f"{path.name}-wal").write_bytes(log)
        assert not verify(path).clean
        state = await state_of(path)
        assert "acknowledged write" in from_stored(state.lost)
        assert state.is_restored
    assert not stored_logs(path)
