"""`mcfd verify`: recomputes the whole ledger from its rows, in one pass and constant memory, also beside a running
daemon.

First SQLite's own check. Then each book in the order of its chain: every hash, seqs without gaps, times that never go
back, every checkpoint and the running totals, every closure's range, numbers and report. Then the tables outside the
chain, as far as they follow from it (docs/reliability.md lists what does not)."""

import re
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from common.language import Text
from common.language.reasons import to_stored
from daemon.core.errors import LedgerUnusable, StorageError, StorageFull
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import RecordsLost
from daemon.store.maintenance.beside_chain import check_beside_chain
from daemon.store.maintenance.health import examine, file_faults
from daemon.store.maintenance.lost_writes import find_lost, read_lost
from daemon.store.maintenance.recompute import BookRecomputation, count_records
from daemon.store.sqlite.disk_failure import DAMAGED, as_storage_error, is_unreadable, storage_error
from daemon.store.sqlite.file import load, open_to_read, read_as
from daemon.store.sqlite.lock import read_mark
from daemon.store.sqlite.migrations import is_current, migrations
from daemon.store.tables.audit import broken_entry, is_cut_off
from daemon.store.tables.book.books import all_books
from daemon.store.tables.book.codec import lenient
from daemon.store.tables.book.entries import losses
from daemon.store.tables.meta import Damage

OLDER = Text("{path}: the ledger is of an older version; start mcfd once to bring it up to date")
MAX_PROBLEMS = 100
"""Findings reported; one damaged page can spoil a thousand records."""
_SQL = load(__name__)
T = TypeVar("T")
Progress = Callable[[int, int], None]
"""How many records are done, of how many."""
LEAST: Final = 20
"""Numbers of a series."""
MAX_MISSING: Final = 10
"""One of so many."""
MAX_RANGES: Final = 5
_NUMBER: Final = re.compile(r"(.*?)([0-9]{1,15})", re.ASCII | re.DOTALL)
_TWINS: Final = {
    "numbers": Text(
        "{nim} ({mode}): record {seq} has the number {number!r}, which is equal to {same!r} of record {earlier} (written by 0.1.0)"
    ),
    "codes": Text(
        "{nim} ({mode}): record {seq} ({number!r}) has the code of record {earlier} ({same!r}) (written by 0.1.0): ask for a correction"
    ),
}


class VerifyResult(msgspec.Struct, frozen=True):
    """`problems`: empty if sound; the first of a book names where its chain breaks. `notes`: no damage."""

    problems: tuple[str, ...]
    books: int
    records: int
    closures: int
    of_file: int = 0
    """The first of them are of the file itself: with it nothing is certified until it is repaired."""
    notes: tuple[str, ...] = ()
    losses: tuple[tuple[Book, RecordsLost], ...] = ()
    """Missing records, which are problems too; an entry of the chain makes them notes."""

    @property
    def clean(self) -> bool:
        return not self.problems

    @property
    def damage(self) -> Damage:
        """As the ledger keeps it."""
        problems = tuple(map(to_stored, self.problems))
        return Damage(problems[: self.of_file], problems[self.of_file :])


def examine_shape(path: Path) -> None:
    """What a start looks at, without one: LedgerUnusable, saying what to do, when the file is not fit to work with;
    StorageFull as `verify`."""
    try:
        with closing(open_to_read(path)) as connection:
            _must_be_current(connection, path)
            examine(connection)
    except sqlite3.Error as error:
        raise _cannot_be_read(path, error) from error


def _must_be_current(connection: sqlite3.Connection, path: Path) -> None:
    if not is_current(connection, migrations()):
        raise LedgerUnusable(OLDER(path=path))


def verify(
    path: Path, progress: Progress = lambda _, __: None, *, machines: Collection[str] | None = None
) -> VerifyResult:
    """`progress` gets the number of records done, and of all; `machines` as of `read_lost`. LedgerUnusable if the file
    is no ledger of this version or too damaged to read anything; any other damage is a problem in the result."""
    try:
        mark = read_mark(path)  # before the view that it is compared with
        with closing(open_to_read(path)) as connection, lenient(connection):
            _must_be_current(connection, path)
            lost = find_lost(connection, path, mark, alone=False)
            if mark is not None:  # a copy has none: what its ledger had lost is no fault of the copy
                lost = lost or read_lost(connection, machines)
            connection.execute("BEGIN")  # one view of the ledger, however long this takes
            verification = Verification(connection, progress)
            if lost:
                verification.note(lost)
            return verification.run()
    except StorageError:
        raise
    except sqlite3.Error as error:
        raise _cannot_be_read(path, error) from error
    except Exception as error:
        raise LedgerUnusable(Text("{path}: {why} ({error})", path=path, why=DAMAGED, error=error)) from error


def _cannot_be_read(path: Path, error: sqlite3.Error) -> StorageError:
    """The error for a ledger that cannot be read; StorageFull if the disk has no room for SQLite's own files, as the
    WAL index, which says nothing about the ledger."""
    kind = StorageFull if path.is_file() and is_room(error) else LedgerUnusable
    return kind(Text("{path}: {why} ({error})", path=path, why=as_storage_error(error), error=error))


def is_room(error: Exception) -> bool:
    if not isinstance(error, sqlite3.Error):
        return False
    return isinstance(storage_error(error), StorageFull) and not is_unreadable(error)


class Verification:
    """What is wrong with the file itself stands before what is wrong with what it holds."""

    def __init__(self, connection: sqlite3.Connection, progress: Progress) -> None:
        self._connection = connection
        self._progress = progress
        self._of_file: list[str] = []
        self._problems: list[str] = []
        self._losses: list[tuple[Book, RecordsLost]] = []
        self._books = self._records = self._closures = 0

    def note(self, problem: str) -> None:
        self._problems = [*self._problems, problem][:MAX_PROBLEMS]

    def run(self) -> VerifyResult:
        self._try(self._check_file)
        self._try(self._check_audit)
        total = self._try(lambda: count_records(self._connection)) or 0
        for book in self._try(lambda: all_books(self._connection)) or ():
            self._try(partial(self._check_book, book, total))
        notes = self._try(self._notes) or ()
        problems = (*self._of_file, *self._problems)[:MAX_PROBLEMS]
        counts = (self._books, self._records, self._closures)
        return VerifyResult(problems, *counts, len(self._of_file), notes, tuple(self._losses))

    def _notes(self) -> tuple[str, ...]:
        found = (find(self._connection) for find in (equal_numbers, series_gaps, lost_records))
        return tuple(islice(chain.from_iterable(found), MAX_PROBLEMS))

    def _try(self, check: Callable[[], T]) -> T | None:
        """Whatever damage makes of a value is a finding, and what comes after it is looked at all the same."""
        try:
            return check()
        except Exception as error:
            if is_room(error):
                raise
            # Without its frames, whose cursors would keep the file locked.
            found = Text("the file cannot be read to its end: {error}", error=error.with_traceback(None))
            (self._of_file if isinstance(error, sqlite3.DatabaseError) else self._problems).append(found)
        return None

    def _check_file(self) -> None:
        self._of_file.extend(islice(_file_problems(self._connection), MAX_PROBLEMS))

    def _check_audit(self) -> None:
        if entry := broken_entry(self._connection):
            self.note(
                Text(
                    "audit log: entry {number} ({action}) does not follow from the one before it",
                    number=entry.id,
                    action=entry.action,
                )
            )
        elif is_cut_off(self._connection):
            self.note(Text("audit log: its newest entries are missing"))

    def _check_book(self, book: Book, total: int) -> None:
        before = self._records

        def note(problem: str) -> None:
            self.note(Text("{nim} ({mode}): {problem}", nim=book.nim, mode=book.mode, problem=problem))

        recomputation = BookRecomputation(
            self._connection, book, note, lambda done: self._progress(before + done, total)
        )
        self._books += 1
        try:
            recomputation.run()
        finally:
            self._records += recomputation.records
            self._closures += recomputation.closures
            self._losses += [(book, loss) for loss in recomputation.losses]
        check_beside_chain(self._connection, book, note)


def _file_problems(connection: sqlite3.Connection) -> Iterator[str]:
    for text in file_faults(connection, most=MAX_PROBLEMS):
        yield Text("file: {text}", text=text)
    for table, row_id, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield Text(
            "file: row {row_id} of {table} refers to a missing {parent}", row_id=row_id, table=table, parent=parent
        )


# -- notes, which are no damage -----------------------------------------------------------------------------------------


def equal_numbers(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each duplicate of 0.1.0, which stays: two spellings of one number, a code entered for two invoices."""
    for query, sentence in _TWINS.items():
        yield from read_as(sentence, connection.execute(_SQL[query]))


def series_gaps(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each series of a live book with gaps (SFE 2.18: without), where one can be recognised: many numbers
    with the same prefix and nearly all digits in use. A missing number may be a sale that was given up."""
    for book in all_books(connection):
        if book.mode != "live":
            continue
        series: defaultdict[tuple[str, int], array[int]] = defaultdict(lambda: array("q"))
        for number, year in connection.execute(_SQL["series_numbers"], (book.id,)):
            if (found := _NUMBER.fullmatch(number)) is not None:
                series[found[1], year].append(int(found[2]))
        for (name, _), numbers in sorted(series.items()):
            gaps = gaps_of(numbers)
            if gaps:
                ranges = [str(first) if first == last else f"{first}-{last}" for first, last in gaps[:MAX_RANGES]]
                yield Text(
                    "{nim}: numbers are missing in the series {series!r}: {missing}",
                    nim=book.nim,
                    series=name,
                    missing=", ".join(ranges) + (", …" if len(gaps) > MAX_RANGES else ""),
                )


def lost_records(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each group."""
    for book in all_books(connection):
        for entry in losses(connection, book).values():
            yield Text(
                "{nim} ({mode}): a disk has lost the records {first} to {last}, which are missing since a restore; the totals count them",
                nim=book.nim,
                mode=book.mode,
                first=entry.first_seq,
                last=entry.last_seq,
            )


def gaps_of(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each; none where the numbers are no series."""
    there = sorted(set(numbers))
    if len(there) < LEAST or (there[-1] - there[0] + 1 - len(there)) * MAX_MISSING > len(there):
        return []
    return [(before + 1, after - 1) for before, after in pairwise(there) if after > before + 1]
