"""A Z number, once given, is never given again for that machine, and a revoked key stays revoked, whatever is restored (decision 30)."""

import shutil
from pathlib import Path

import pytest
from support.ledgers.ledger import IFU, NIM, START, Till, opened, opened_till

from daemon.core.ledger.entries import Gap, Placed
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.high_water import HighWater, book_name, mark_path
from daemon.store.store import Store
from daemon.store.tables.book import entries
from daemon.store.tables.book.books import book_state
from daemon.store.tables.keys import create_key, revoke_key

BOOK = book_name(NIM, "live", IFU)


async def shop(path: Path, closures: int) -> Till:
    """That many days, each with a sale and a Z."""
    async with opened_till(path) as (store, till):
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
        for _ in range(closures):
            await till.sell()
            await till.close()
    return till


async def gaps(store: Store, till: Till) -> list[Placed]:
    return list(await store.ledger.read(lambda connection: entries.entries(connection, till.book)))


async def next_z(path: Path) -> int:
    async with opened_till(path) as (_, till):
        return (await till.close()).z_number


@pytest.mark.parametrize("file_lost", [False, True])
async def test_a_restore_over_a_newer_ledger_goes_on_after_its_numbers(
    path: Path, tmp_path: Path, file_lost: bool
) -> None:
    """The replaced ledger is asked, also where the file beside it is gone; the gap is an entry that `verify` accepts."""
    copy = tmp_path / "copy"
    await shop(path, 2)
    backup(path, copy, at=START)
    await shop(path, 3)
    if file_lost:
        mark_path(path).unlink()
    restore(copy, path, at=START)
    assert await next_z(path) == 6
    assert verify(path).problems == ()
    async with opened_till(path) as (store, till):
        (placed,) = await gaps(store, till)
        assert placed.entry == Gap(3, 5, "ledger.high-water")


async def test_an_older_file_put_in_the_place_of_the_ledger_is_noticed(path: Path, tmp_path: Path) -> None:
    """Copied by hand, without `mcfd restore`: the file beside it remembers, and the book has the gap from the start on."""
    await shop(path, 1)
    backup(path, tmp_path / "copy", at=START)
    await shop(path, 2)
    shutil.copy(tmp_path / "copy", path)
    async with opened_till(path) as (store, till):
        assert (store.ledger.peek(book_state, till.book)).z_number == 3
        assert [gap.entry for gap in await gaps(store, till)] == [Gap(2, 3, "ledger.high-water")]
    assert await next_z(path) == 4
    (problem,) = verify(path).problems
    assert "an older file was put in its place" in problem


async def test_a_key_that_was_revoked_since_stays_revoked(path: Path, tmp_path: Path) -> None:
    """Its backup knows it as a working one."""
    async with opened(path) as store:
        key = await store.ledger.write(create_key, NIM, "live", "till", at=1)
    backup(path, tmp_path / "copy", at=START)
    async with opened(path) as store:
        await store.ledger.write(revoke_key, 1, at=2)
    restore(tmp_path / "copy", path, at=START)
    async with opened(path) as store:
        assert store.key_ring.find(key) is None


async def test_a_number_that_was_only_reserved_is_given_by_the_retry(path: Path) -> None:
    """A crash before the commit of a Z leaves no gap: no answer had its number."""
    await shop(path, 2)
    water = HighWater(path)
    water.reserve(BOOK, 3)
    assert await next_z(path) == 3
    assert verify(path).problems == ()


async def test_a_number_that_a_newer_ledger_had_reserved_is_gone_with_it(path: Path, tmp_path: Path) -> None:
    """An older file by hand, without `mcfd restore`: whether an answer had that Z is not known here."""
    await shop(path, 1)
    backup(path, tmp_path / "copy", at=START)
    await shop(path, 1)
    HighWater(path).reserve(BOOK, 3)
    shutil.copy(tmp_path / "copy", path)
    assert await next_z(path) == 4


async def test_a_restore_knows_whether_a_reserved_number_was_given(path: Path, tmp_path: Path) -> None:
    """The ledger that is replaced had reserved it and has no such Z: no answer had that number."""
    await shop(path, 1)
    backup(path, tmp_path / "copy", at=START)
    await shop(path, 1)
    HighWater(path).reserve(BOOK, 3)
    restore(tmp_path / "copy", path, at=START)
    assert await next_z(path) == 3


async def test_a_restore_asks_the_file_for_what_the_replaced_ledger_does_not_know(path: Path, tmp_path: Path) -> None:
    """An older one that was copied there by hand: a number that was reserved after it may stand in an answer, and other books have theirs."""
    other = book_name("EL02000099-1", "live", IFU)
    await shop(path, 1)
    backup(path, tmp_path / "copy", at=START)
    await shop(path, 1)
    HighWater(path).reserve(BOOK, 3)
    HighWater(path).give(other, 4)
    shutil.copy(tmp_path / "copy", path)
    restore(tmp_path / "copy", path, at=START)
    assert await next_z(path) == 4
    assert HighWater(path).highest(other) == 4


async def test_the_number_is_durable_before_its_z(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written: no Z, and no number used."""
    await till.sell()
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", _full)
        with pytest.raises(Exception, match="high-water"):
            await till.close()
    assert (await till.close()).z_number == 1


def _full(_: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("expected", "after"), [(7, 8), (None, 4)])
async def test_what_is_said_with_the_restore_counts_beside_what_is_remembered(
    path: Path, tmp_path: Path, expected: int | None, after: int
) -> None:
    """On the disk that it was on: the paper's number where it is said, else the one that was given last; no question."""
    await shop(path, 2)
    backup(path, tmp_path / "copy", at=START)
    await shop(path, 1)
    restore(tmp_path / "copy", path, at=START, last_z=expected)
    assert await next_z(path) == after
