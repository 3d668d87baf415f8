"""`mcfd verify`: the whole ledger recomputed from its rows alone, in one pass and flat memory, also beside a running daemon.

SQLite's own check; then for each book its records and closures in the order of the chain: every hash, no gap in the seqs, no
time that goes back, every checkpoint and the running totals, every closure's range, numbers and report.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from daemon.core.errors import LedgerUnusable, StorageError, StorageFull
from daemon.core.ledger.book import Book
from daemon.language import Text
from daemon.store.maintenance.health import examine
from daemon.store.maintenance.recompute import BookRecomputation, count_records
from daemon.store.sqlite.connection import open_to_read
from daemon.store.sqlite.faults import is_unreadable, storage_error
from daemon.store.sqlite.migrations import is_current, migrations
from daemon.store.tables.audit import broken_entry
from daemon.store.tables.book.books import all_books

OLDER = Text("{path}: the ledger is of an older version; start mcfd once to bring it up to date")
MOST = 100
"""Findings told; one damaged page can spoil a thousand records."""

Progress = Callable[[int, int], None]
"""How many records are done, of how many."""


class Findings(msgspec.Struct, frozen=True):
    """`problems` is empty when all is well; the first of each book names where its chain breaks."""

    problems: tuple[str, ...]
    books: int
    records: int
    closures: int

    @property
    def clean(self) -> bool:
        return not self.problems


def examine_shape(path: Path) -> None:
    """What a start looks at, without one: LedgerUnusable, saying what to do, when the file is not fit to work with."""
    try:
        with closing(open_to_read(path)) as connection:
            if not is_current(connection, migrations()):
                raise LedgerUnusable(OLDER(path=path))
            examine(connection)
    except sqlite3.Error as error:
        raise LedgerUnusable(
            Text("{path}: {why} ({error})", path=path, why=storage_error(error) or error, error=error)
        ) from error


def verify(path: Path, progress: Progress = lambda _, __: None) -> Findings:
    """`progress` is told now and then how many records are done, of how many. LedgerUnusable when the file is no ledger of this version."""
    try:
        with closing(open_to_read(path)) as connection:
            if not is_current(connection, migrations()):
                raise LedgerUnusable(OLDER(path=path))
            connection.execute("BEGIN")  # one view of the ledger, however long this takes
            return _verify(connection, progress)
    except sqlite3.Error as error:
        raise _cannot_be_verified(path, error) from error


def _cannot_be_verified(path: Path, error: sqlite3.Error) -> StorageError:
    """StorageFull is no word about the ledger: the disk does not take what SQLite needs beside it, as its index of the WAL."""
    is_room = path.is_file() and isinstance(storage_error(error), StorageFull) and not is_unreadable(error)
    kind = StorageFull if is_room else LedgerUnusable
    return kind(Text("{path}: {why} ({error})", path=path, why=storage_error(error) or error, error=error))


def _verify(connection: sqlite3.Connection, progress: Progress) -> Findings:
    problems: list[str] = []
    books = records = closures = 0
    note = partial(_note, problems)
    try:
        for problem in _file_problems(connection):
            note(problem)
        if entry := broken_entry(connection):
            note(
                Text(
                    "audit log: entry {number} ({action}) does not follow from the one before it",
                    number=entry.id,
                    action=entry.action,
                )
            )
        total = count_records(connection)
        for book in all_books(connection):
            tell = partial(_tell, progress, records, total)
            recomputation = BookRecomputation(connection, book, partial(_note_book, note, book), tell)
            books += 1
            recomputation.run()
            records += recomputation.records
            closures += recomputation.z_number
    except (sqlite3.DatabaseError, LedgerUnusable, msgspec.MsgspecError) as error:
        if (
            isinstance(error, sqlite3.Error)
            and isinstance(storage_error(error), StorageFull)
            and not is_unreadable(error)
        ):
            raise
        note(Text("the file cannot be read to its end: {error}", error=error))
    return Findings(tuple(problems), books, records, closures)


def _tell(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def _file_problems(connection: sqlite3.Connection) -> Iterator[str]:
    for (text,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
        if text != "ok":
            yield Text("file: {text}", text=text)
    for table, row_id, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield Text(
            "file: row {row_id} of {table} refers to a missing {parent}", row_id=row_id, table=table, parent=parent
        )


def _note(problems: list[str], problem: str) -> None:
    if len(problems) < MOST:
        problems.append(problem)


def _note_book(note: Callable[[str], None], book: Book, problem: str) -> None:
    note(Text("{nim} ({mode}): {problem}", nim=book.nim, mode=book.mode, problem=problem))
