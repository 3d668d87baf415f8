"""When the numbers beside the ledger and the ledger itself are brought together: as the machine is met, at each tick, Z and start."""

import os
import sqlite3
from functools import partial
from pathlib import Path

import pytest
from support.ledgers.ledger import IFU, NIM, Till, opened, opened_till

from daemon.core.errors import StorageFull, ZNumberUnknown
from daemon.core.ledger.book import Book
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance import numbers
from daemon.store.maintenance.numbers import apply_last_z
from daemon.store.sqlite.high_water import HighWater, Mark, book_name, mark_path, read_marks
from daemon.store.store import Store
from daemon.store.tables.book import books, entries
from daemon.store.tables.book.books import book_state

BOOK = book_name(NIM, "live", IFU)
NOBODYS = book_name(NIM, "live", "")
OTHER_IFU = "00099999Z"


def marked(path: Path) -> dict[str, Mark]:
    found = read_marks(path)
    return {} if found is None else found.books


async def meet(till: Till) -> None:
    await till.store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)


async def test_a_book_that_meets_its_machine_is_remembered(store: Store, till: Till, path: Path) -> None:
    """By its taxpayer's name, and from then on; meeting it again writes nothing."""
    assert BOOK not in marked(path)
    await meet(till)
    assert marked(path)[BOOK] == Mark()
    before = mark_path(path).stat().st_ino
    await meet(till)
    assert mark_path(path).stat().st_ino == before
    assert store.ledger.is_remembered(till.book, IFU)
    assert not store.ledger.is_remembered(till.book, OTHER_IFU)


async def test_the_numbers_of_a_ledger_that_is_gone_come_with_the_machine(path: Path) -> None:
    """Whose book it is is known from the machine alone: its Z numbers go on after those that were given."""
    HighWater(path).count_number(BOOK, 5)
    async with opened_till(path) as (store, till):
        assert (store.ledger.peek(book_state, till.book)).z_number == 0
        await meet(till)
        assert (store.ledger.peek(book_state, till.book)).z_number == 5
        assert marked(path)[BOOK] == Mark(5)


def full(_: int) -> None:
    raise OSError(28, os.strerror(28))


async def test_a_name_that_the_disk_did_not_take_is_written_by_a_tick(
    store: Store, till: Till, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is met all the same; each tick tries again until it stands there, and then it is no tick's business any more."""
    water = store._open.high_water
    assert water is not None
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        await meet(till)
        await store.ledger.aggregate(till.book)
        assert BOOK not in marked(path)
        assert water.unmet == {BOOK}
    await store.ledger.aggregate(till.book)
    assert marked(path)[BOOK] == Mark()
    assert not water.unmet


@pytest.mark.parametrize(("is_cut_off", "mark"), [(False, Mark(2)), (True, Mark(1, 2))])
async def test_a_z_is_reserved_before_it_and_given_after_it(
    store: Store, till: Till, path: Path, monkeypatch: pytest.MonkeyPatch, *, is_cut_off: bool, mark: Mark
) -> None:
    """Where the disk does not take the second word, the Z is made and answered all the same: the first one says as much."""

    def refused(*_: object) -> None:
        raise StorageFull("no")

    await meet(till)
    await till.close()
    assert marked(path)[BOOK] == Mark(1)
    if is_cut_off:
        monkeypatch.setattr(HighWater, "count_number", refused)
    assert (await till.close()).z_number == 2
    assert marked(path)[BOOK] == mark


def require_z_number(connection: sqlite3.Connection, book: Book) -> None:
    """No Z until a person has entered which was the last."""
    connection.execute(
        "UPDATE book SET z_asked = ? WHERE id = ?",
        (numbers.new_question(), book.id),
    )


@pytest.mark.parametrize("closures", [0, 2])
async def test_no_z_while_nobody_remembers_the_last(path: Path, closures: int) -> None:
    """Nothing is reserved for it either; a restart, which finds the ledger's own numbers beside it, is no answer."""
    async with opened_till(path) as (store, till):
        await meet(till)
        for _ in range(closures):
            await till.close()
        await store.ledger.write(require_z_number, till.book)
    for _ in range(2):
        async with opened(path) as store:
            with pytest.raises(ZNumberUnknown):
                await (await Till.of(store)).close()
        mark = marked(path)[BOOK]
        assert (mark.highest, mark.reserved) == (closures, 0)
        assert mark.question


@pytest.mark.parametrize(
    ("is_met", "closures", "expected", "remembered"),
    [
        (False, 0, 0, {}),
        (True, 0, 0, {BOOK: Mark()}),
        (True, 2, 0, {BOOK: Mark(2)}),
        (False, 0, 4, {NOBODYS: Mark(4)}),
    ],
)
async def test_a_start_writes_down_what_a_ledger_from_before_that_file_knows(
    path: Path, is_met: bool, closures: int, expected: int, remembered: dict[str, Mark]
) -> None:
    """Books that have met their machine, and any that has a Z, whose last one is asked for; one that is only a name is left out. From now on this
    ledger counts them there."""
    async with opened_till(path) as (store, till):
        if is_met:
            await meet(till)
        for _ in range(closures):
            await till.close()
        if expected:
            await store.decisions.set_last_z(till.book, expected)
    mark_path(path).unlink(missing_ok=True)
    async with opened(path):
        found = marked(path)
        assert all(bool(mark.question) is (mark.highest > 0) for mark in found.values())
        assert {name: Mark(mark.highest) for name, mark in found.items()} == remembered
        marks = read_marks(path)
        assert (marks.ledgers.keys() if marks else set()) == remembered.keys()


@pytest.mark.parametrize(("expected", "skipped"), [(1, 0), (2, 0), (3, 1)])
async def test_numbers_that_are_known_already_are_no_gap(store: Store, till: Till, expected: int, skipped: int) -> None:
    """Only what goes beyond the last Z is an entry of the chain."""
    for _ in range(2):
        await till.close()
    await store.decisions.set_last_z(till.book, expected)
    found = await store.ledger.read(partial(entries.entries, book=till.book))
    assert len(found) == skipped
    assert (await till.close()).z_number == max(expected, 2) + 1


@pytest.mark.parametrize(
    ("closures", "has_question", "has_other", "wanted"),
    [
        (0, False, False, True),  # new, and alone on its machine
        (0, False, True, False),  # the book of another taxpayer begins with Z 1 by right
        (2, False, False, False),  # it knows itself
        (2, True, False, True),
        (0, True, True, True),
    ],
)
async def test_when_headquarters_is_heard(
    store: Store, till: Till, *, closures: int, has_question: bool, has_other: bool, wanted: bool
) -> None:
    """It says the last Z unasked: where nobody here remembers it, or this may be a ledger that began again."""
    for _ in range(closures):
        await till.close()
    await Till.of(store, mode="test")  # of the same machine, and no matter
    await Till.of(store, "EL02000099-1")
    if has_other:
        await store.ledger.write(partial(books.new_book, nim=NIM, mode="live"))
    if has_question:
        await store.ledger.write(require_z_number, till.book)
    assert await store.decisions.write(apply_last_z, till.book, 7) is wanted
    assert (await till.close()).z_number == (8 if wanted else closures + 1)


@pytest.mark.logs("closure.gap")
async def test_an_activation_after_numbers_that_were_said(store: Store, till: Till) -> None:
    """A machine that was never read and whose book has a gap already: its name changes by an entry, with counters from nought."""
    await store.decisions.set_last_z(till.book, 4)
    renamed = await store.ledger.begin_epoch(till.book, till.state(), "EL02000015-2", at=till.at)
    assert renamed == Book(till.book.id, "EL02000015-2", "live")
    _, epoch = await store.ledger.read(partial(entries.entries, book=till.book))
    nought = FiscalCounters(0, 0, 0)
    assert (epoch.entry.number, epoch.entry.before, epoch.entry.now) == (2, nought, nought)
    state = store.ledger.peek(book_state, renamed)
    assert (state.book.nim, state.epoch, state.counters, state.unexplained) == ("EL02000015-2", 2, nought, 0)


async def test_a_number_that_is_learned_late_counts_for_the_very_next_z(store: Store, till: Till) -> None:
    """After the machine was met, before anybody restarted."""
    await meet(till)
    water = store._open.high_water
    water.count_number(BOOK, 5)
    assert (await till.close()).z_number == 6
