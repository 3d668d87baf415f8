"""What a book says of itself between its records (`core.ledger.entries`), and what each link of its chain hangs on. Functions on a
connection, for the writer or a reader."""

from __future__ import annotations

import sqlite3
import sys

import msgspec

from daemon.core.ledger import chain
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import Entry, Placed, entry_bytes
from daemon.store.sqlite.queries import load, read_as
from daemon.store.tables.book.books import BookHead, advance, book_state, read_head, read_start

COLUMNS = "id, after_seq, after_z, at, body, hash, coalesce(chained_at, 0) AS chained_at"
_SQL = load(__name__, columns=COLUMNS)
_LAST = sys.maxsize


def append(connection: sqlite3.Connection, book: Book, entry: Entry, at: int) -> Placed:
    """At the end of the book; `at` in ms, not before anything in it."""
    return place(connection, book, entry, max(at, next_time(connection, book)))


def next_time(connection: sqlite3.Connection, book: Book) -> int:
    """The earliest time of what is appended next (ms)."""
    return read_head(connection, book.id).at


def place(connection: sqlite3.Connection, book: Book, entry: Entry, at: int) -> Placed:
    """The same at a time that the caller answers for: the book goes on from there."""
    head = read_head(connection, book.id)
    z_number = book_state(connection, book).z_number
    placed = Placed(0, head.seq, z_number, at, entry_bytes(entry))
    link = chain.entry_hash(head.hash, placed)
    values = (book.id, placed.after_seq, placed.after_z, placed.at, placed.body, link)
    (entry_id,) = connection.execute(_SQL["insert"], values).fetchone()
    advance(connection, book.id, BookHead(head.seq, placed.at, link))
    return msgspec.structs.replace(placed, id=entry_id, hash=link)


def entries(connection: sqlite3.Connection, book: Book) -> list[Placed]:
    """In the order of the chain."""
    return list(read_as(Placed, connection.execute(_SQL["all"], (book.id,))))


def last_entry(connection: sqlite3.Connection, book: Book) -> Placed | None:
    return next(read_as(Placed, connection.execute(_SQL["last"], (book.id,))), None)


def link_after(
    connection: sqlite3.Connection, book: Book, seq: int, upto_z: int = _LAST, before_id: int = _LAST
) -> bytes:
    """What hangs on to the record `seq`: the last closure (up to the number `upto_z`) or entry (after that closure at most, and with an id
    below `before_id` there) after it, or the record itself."""
    row = connection.execute(_SQL["last_link"], (book.id, seq, upto_z, before_id)).fetchone()
    if row is None:
        row = connection.execute(_SQL["record_link"], (book.id, seq)).fetchone()
    return row[0] if row else read_start(connection, book.id).hash
