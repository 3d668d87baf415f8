"""Is this file fit to work with? Asked at every start, in bounded time also for a ledger of gigabytes: SQLite's own check,
of all tables in a small file and of the small ones in a large file, and the end of each book's chain. The whole is the
business of `mcfd verify`.
"""

from __future__ import annotations

import sqlite3

from daemon.core import chain
from daemon.core.closure import Book
from daemon.core.errors import LedgerUnusable
from daemon.store.books import Head, all_books, read_head
from daemon.store.closures import COLUMNS, closure_of
from daemon.store.codec import PAYLOAD, RECORD_COLUMNS, record_of, unpack
from daemon.store.faults import DAMAGED
from daemon.store.queries import load

SMALL_BYTES = 16 * 1024 * 1024
"""A file that is read in well under a second from an SD card. SQLite 3.40 does not let its check be interrupted."""
_SMALL_TABLES = ("meta", "book", "total", "api_key", "outbox", "settlement")

_SQL = load("health", record=RECORD_COLUMNS, closure=COLUMNS)


def examine(connection: sqlite3.Connection) -> None:
    """LedgerUnusable, saying what to do, when something is wrong."""
    try:
        _quick_check(connection)
        for book in all_books(connection):
            _check_end(connection, book)
    except sqlite3.DatabaseError as error:
        raise LedgerUnusable(f"{DAMAGED} ({error})") from error


def previous_hash(connection: sqlite3.Connection, book: Book, seq: int) -> bytes:
    """What the record `seq` is chained to: the last closure before it, or the record before it."""
    row = connection.execute(_SQL["closed_at"], (book.id, seq - 1)).fetchone()
    if row is None:
        row = connection.execute(_SQL["hash_at"], (book.id, seq - 1)).fetchone()
    return row[0] if row else chain.GENESIS


def _quick_check(connection: sqlite3.Connection) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    scopes = ["(1)"] if pages * page_size <= SMALL_BYTES else [f"({table})" for table in _SMALL_TABLES]
    for scope in scopes:
        (found,) = connection.execute(f"PRAGMA quick_check{scope}").fetchone()
        if found != "ok":
            raise LedgerUnusable(f"{DAMAGED} ({found})")


def _check_end(connection: sqlite3.Connection, book: Book) -> None:
    """The last record and the last closure are what their hashes say, and the book's head is the later of the two."""
    head = read_head(connection, book.id)
    last_hash, record_seq = chain.GENESIS, 0
    row = connection.execute(_SQL["last_record"], (book.id,)).fetchone()
    if row is not None:
        content = unpack(row[PAYLOAD])
        record = record_of(row, content)
        record_seq, last_hash = record.seq, record.hash
        previous = previous_hash(connection, book, record.seq)
        _expect(book, chain.record_hash(previous, record, content) == record.hash, f"record {record.seq}")
    row = connection.execute(_SQL["last_closure"], (book.id,)).fetchone()
    if row is not None:
        closure = closure_of(row)
        before = _before_closure(connection, book, closure.z_number, closure.last_seq)
        _expect(book, chain.closure_hash(before, closure) == closure.hash, f"Z {closure.z_number}")
        if closure.last_seq == record_seq:
            last_hash = closure.hash
    _expect(book, head == Head(record_seq, head.at, last_hash), "the end of the chain")


def _before_closure(connection: sqlite3.Connection, book: Book, z_number: int, last_seq: int) -> bytes:
    row = connection.execute(_SQL["closure_before"], (book.id, last_seq, z_number)).fetchone()
    if row is None:
        row = connection.execute(_SQL["hash_at"], (book.id, last_seq)).fetchone()
    return row[0] if row else chain.GENESIS


def _expect(book: Book, holds: bool, what: str) -> None:
    if not holds:
        raise LedgerUnusable(f"{DAMAGED} ({what} of {book.nim}, {book.mode}, is not what it was; see `mcfd verify`)")
