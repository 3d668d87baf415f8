"""Limits the sandbox's share of the disk by deleting its oldest records; a live book keeps all.

A developer may certify in the sandbox without end, in the file of live sales. Records are deleted from the beginning of
the book. `book_start` stores the new beginning with the chain's hash and the totals there, so that the rest can be
verified. The number of a deleted invoice may be used again, and its Idempotency-Key is deleted too."""

import sqlite3
from itertools import islice
from typing import Any

import msgspec

from daemon.core.clock import DAY
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import Placed
from daemon.store.sqlite.file import load, read_as
from daemon.store.tables.book.books import BookStart, all_books, book_state, read_start, write_start
from daemon.store.tables.book.codec import read_tally
from daemon.store.tables.book.entries import COLUMNS as ENTRY_COLUMNS
from daemon.store.tables.book.entries import in_order
from daemon.store.tables.book.totals import read_totals

_SQL = load(__name__, entry=ENTRY_COLUMNS)

DAYS = 90
BATCH = 500
"""Records, closures or entries in one transaction: others write in between."""
COUNTED = 5_000
ROW_BYTES = 800
"""What a record takes beside its own bytes: indexes, its event, its key."""
NEWEST = 128
"""Records, closures and entries that stay whatever their age and size."""


_COUNTED = {
    "uncounted_records": "counted_seq",
    "uncounted_closures": "counted_z",
    "uncounted_entries": "counted_id",
}


def trim(connection: sqlite3.Connection, now: int, budget: int) -> int:
    """One step for each sandbox: deletes at most `BATCH` records that are older than `DAYS` or beyond `budget` bytes.
    Returns how many, 0 when done. `now` in ms."""
    return sum(_step(connection, book, now, budget) for book in all_books(connection) if book.mode == "test")


def _step(connection: sqlite3.Connection, book: Book, now: int, budget: int) -> int:
    start = read_start(connection, book.id)
    counted = _count(connection, book, start)
    horizon = min(now, book_state(connection, book).last_at) - DAYS * DAY
    gone = _Walk(connection, book, start, horizon, budget).run() if counted < COUNTED else 0
    if gone:
        _let_go(connection, book, start)
    if gone or counted:
        write_start(connection, book.id, start)
    return gone + counted


def _count(connection: sqlite3.Connection, book: Book, start: BookStart) -> int:
    """Adds what has come since the last time."""
    found = 0
    for kind, place in _COUNTED.items():
        rows = connection.execute(_SQL[kind], (book.id, getattr(start, place), COUNTED)).fetchall()
        start.byte_count += sum(size + ROW_BYTES for _, size in rows)
        if rows:
            setattr(start, place, rows[-1][0])
        found += len(rows)
    return found


class _Link(msgspec.Struct, frozen=True):
    """A closure between two records."""

    z_number: int
    last_seq: int
    at: int
    period_end: int
    hash: bytes
    size: int


_Item = tuple[Any, ...] | _Link | Placed


class _Walk:
    """Moves the start of a book forward, over its records, closures and entries in the order of the chain, as
    `BookRecomputation` goes."""

    def __init__(self, connection: sqlite3.Connection, book: Book, start: BookStart, horizon: int, budget: int) -> None:
        self._start = start
        self._horizon = horizon
        self._budget = budget
        totals, state = read_totals(connection, book.id), book_state(connection, book)
        (entries_left,) = connection.execute(_SQL["entries_left"], (book.id, start.entry_id)).fetchone()
        self._left = totals.seq - start.seq + state.z_number - start.z_number + entries_left
        records = connection.execute(_SQL["oldest_records"], (book.id, start.seq, totals.seq, BATCH))
        closures = connection.execute(_SQL["oldest_closures"], (book.id, start.z_number, BATCH))
        placed = connection.execute(_SQL["oldest_entries"], (book.id, start.entry_id, BATCH))
        by_seq = ((row[0], row) for row in records)
        self._chain = in_order(by_seq, read_as(_Link, closures), read_as(Placed, placed))

    def run(self) -> int:
        """How many things are behind the start that were before it."""
        gone = 0
        for (seq, *_), item in islice(self._chain, BATCH):
            if not self._may_go(seq, item):
                break
            self._pass(item)
            gone += 1
        return gone

    def _may_go(self, seq: int, item: _Item) -> bool:
        """What lies behind a record that was not read stays."""
        at = item[1] if isinstance(item, tuple) else item.at
        is_next = isinstance(item, tuple) or seq <= self._start.seq
        return is_next and self._left > NEWEST and (self._start.byte_count > self._budget or at < self._horizon)

    def _pass(self, item: _Item) -> None:
        self._left -= 1
        start = self._start
        match item:
            case _Link():
                start.pass_closure(item.z_number, item.at, item.hash, item.period_end)
                size = item.size
            case Placed():
                start.pass_entry(item)
                size = len(item.body)
            case _:
                seq, at, kind, fvc, link, tally, size = item
                start.pass_record(seq, at, link, read_tally(tally), kind=kind, fvc=fvc)
        start.byte_count -= size + ROW_BYTES


def _let_go(connection: sqlite3.Connection, book: Book, start: BookStart) -> None:
    connection.execute(_SQL["settlements"], (book.id, start.seq))
    connection.execute(_SQL["records"], (book.id, start.seq))
    connection.execute(_SQL["checkpoints"], (book.id, start.seq))
    connection.execute(_SQL["closures"], (book.id, start.z_number))
    connection.execute(_SQL["cash"], (book.id, start.entry_id))  # but the newest entry of all: no id is given twice
    for name in ("keys", "outbox", "deferred", "events"):
        connection.execute(_SQL[name], (book.id, start.at))
