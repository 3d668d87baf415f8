"""Is this file fit to work with? Asked at every start, in bounded time also for a ledger of gigabytes: SQLite's own check,
of all tables in a small file and of the small ones in a large file, and the end of each book's chain. The whole is the
business of `mcfd verify`.
"""

from __future__ import annotations

import sqlite3

from daemon.core.errors import LedgerUnusable
from daemon.core.ledger import chain
from daemon.core.ledger.book import Book
from daemon.language import Text
from daemon.store.sqlite.faults import DAMAGED
from daemon.store.sqlite.queries import load
from daemon.store.tables.book.book_start import read_start
from daemon.store.tables.book.books import Head, all_books, read_head
from daemon.store.tables.book.closures import COLUMNS, closure_of
from daemon.store.tables.book.codec import PAYLOAD, RECORD_COLUMNS, record_of, unpack
from daemon.store.tables.book.entries import last_entry, link_after

SMALL_BYTES = 16 * 1024 * 1024
"""A file that is read in well under a second from an SD card. SQLite 3.40 does not let its check be interrupted."""
_SMALL_TABLES = ("meta", "book", "total", "api_key", "outbox", "settlement")

_SQL = load(__name__, record=RECORD_COLUMNS, closure=COLUMNS)


def examine(connection: sqlite3.Connection) -> None:
    """LedgerUnusable, saying what to do, when something is wrong."""
    try:
        _quick_check(connection)
        for book in all_books(connection):
            _check_end(connection, book)
    except sqlite3.DatabaseError as error:
        raise LedgerUnusable(Text("{told} ({error})", told=DAMAGED, error=error)) from error


def previous_hash(connection: sqlite3.Connection, book: Book, seq: int) -> bytes:
    """What the record `seq` is chained to: the last closure or entry before it, or the record before it."""
    return link_after(connection, book, seq - 1)


def _quick_check(connection: sqlite3.Connection) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    scopes = ["(1)"] if pages * page_size <= SMALL_BYTES else [f"({table})" for table in _SMALL_TABLES]
    for scope in scopes:
        (found,) = connection.execute(f"PRAGMA quick_check{scope}").fetchone()
        if found != "ok":
            raise LedgerUnusable(Text("{told} ({found})", told=DAMAGED, found=found))


def _check_end(connection: sqlite3.Connection, book: Book) -> None:
    """The last record and the last closure are what their hashes say, and the book's head is the later of the two."""
    head = read_head(connection, book.id)
    start = read_start(connection, book.id)
    record_seq = start.seq
    row = connection.execute(_SQL["last_record"], (book.id,)).fetchone()
    if row is not None:
        content = unpack(row[PAYLOAD])
        record = record_of(row, content)
        record_seq = record.seq
        previous = previous_hash(connection, book, record.seq)
        _expect(book, chain.record_hash(previous, record, content) == record.hash, Text("record {seq}", seq=record.seq))
    row = connection.execute(_SQL["last_closure"], (book.id,)).fetchone()
    if row is not None:
        closure = closure_of(row)
        before = link_after(connection, book, closure.last_seq, closure.z_number - 1)
        _expect(
            book, chain.closure_hash(before, closure) == closure.hash, Text("Z {z_number}", z_number=closure.z_number)
        )
    entry = last_entry(connection, book)
    if entry is not None and entry.id > start.entry_id:
        before = link_after(connection, book, entry.after_seq, entry.after_z, entry.id)
        _expect(book, chain.entry_hash(before, entry) == entry.hash, Text("entry {number}", number=entry.id))
    _expect(
        book, head == Head(record_seq, head.at, link_after(connection, book, record_seq)), Text("the end of the chain")
    )


def _expect(book: Book, holds: bool, what: str) -> None:
    if not holds:
        raise LedgerUnusable(
            Text(
                "{told} ({what} of {nim}, {mode}, is not what it was; see `mcfd verify`)",
                told=DAMAGED,
                what=what,
                nim=book.nim,
                mode=book.mode,
            )
        )
