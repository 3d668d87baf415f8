"""The file beside the ledger that remembers the numbers which must not come twice."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.ledgers.disk_steps import disk_steps

from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.store.sqlite.high_water import HighWater, Mark, Marks, book_name, mark_path, merged, read_marks, write_marks

BOOK = book_name("EL02000015-1", "live", "00084440Y")


def test_a_book_is_named_by_machine_mode_and_taxpayer() -> None:
    """The activation counter is not in it (decision 33)."""
    assert book_name("EL02000015-2", "live", "00084440Y") == BOOK
    assert book_name("EL02000015-2", "live", "99999999Z") != BOOK


def test_nothing_is_written_that_is_known_already(tmp_path: Path) -> None:
    """A number given again: no fsync."""
    marks = HighWater(tmp_path / "ledger")
    marks.count_number(BOOK, 5)
    before = mark_path(tmp_path / "ledger").stat().st_ino
    marks.count_number(BOOK, 5)
    assert mark_path(tmp_path / "ledger").stat().st_ino == before


def test_two_books_are_written_by_two_threads(tmp_path: Path) -> None:
    """The writer reserves for one machine while what another one gave is written elsewhere: nothing of either is lost."""
    marks = HighWater(tmp_path / "ledger")
    other = book_name("EL02000016-1", "live", "00084440Y")

    def close_days(book: str) -> None:
        for z_number in range(1, 41):
            marks.reserve(book, z_number)
            marks.count_number(book, z_number)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(close_days, (BOOK, other)))
    assert read_marks(tmp_path / "ledger") == Marks({BOOK: Mark(40), other: Mark(40)})


def test_a_disk_that_takes_nothing_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """StorageFull, and no half of a file."""
    ledger = tmp_path / "ledger"
    write_marks(ledger, Marks({BOOK: Mark(4)}))
    marks = HighWater(ledger)

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageFull, match="high-water"):
        marks.reserve(BOOK, 5)
    assert marks.highest(BOOK) == 4
    assert read_marks(ledger) == Marks({BOOK: Mark(4)})
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger.high-water"]


def test_two_memories_make_one_with_the_higher_numbers(tmp_path: Path) -> None:
    """The replaced ledger's and the file's: nothing that one of them knows is lost. A damaged file is told with what to do, and not taken for an empty one."""
    one = Marks({"a": Mark(3, 4), "b": Mark(9)}, frozenset({"01"}))
    other = Marks({"a": Mark(4), "c": Mark(1, 2)}, frozenset({"02"}))
    assert merged(one, other) == Marks({"a": Mark(4), "b": Mark(9), "c": Mark(1, 2)}, frozenset({"01", "02"}))
    lacking, whole = Marks(incomplete=True), Marks()
    assert [merged(*pair).incomplete for pair in ((lacking, whole), (whole, lacking), (whole, whole))] == [
        True,
        True,
        False,
    ]
    mark_path(tmp_path / "ledger").write_bytes(b"{")
    with pytest.raises(LedgerUnusable, match="last-z"):
        HighWater(tmp_path / "ledger")


def test_the_file_is_on_the_disk_when_a_number_is_reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content before its name, and that before anybody goes on: only a power cut would show the difference."""
    marks = HighWater(tmp_path / "ledger")
    steps = disk_steps(monkeypatch, tmp_path)
    marks.reserve(BOOK, 1)
    assert steps == [("fsync", "ledger.high-water.part"), ("replace", "ledger.high-water"), ("fsync", ".")]
