"""Entries of a book between its records (`core.ledger.entries`), and the predecessor of each link of its chain.
Functions on a connection, for the writer or a reader.

A time repair moves the times of records that were written by a fast clock. They keep their hash, and `chained_at` has
the original time in it. The repair's entry in the chain names the records, the difference and the reason, so that `mcfd
verify` can recompute all of it."""

import sqlite3
import sys
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

import msgspec

from common.language import Text
from daemon.core.clock import HOUR
from daemon.core.errors import NotFound
from daemon.core.ledger import chain
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import Entry, Placed, RecordsLost, TimeRepair, entry_bytes
from daemon.store.sqlite.file import load, read_as, value_of
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


def in_order(
    records: Iterable[tuple[int, Any]], closures: Iterable[Any], placed: Iterable[Placed]
) -> Iterator[tuple[tuple[int, int, int], Any]]:
    """As the chain goes, each with its place: seq, Z, the id of an entry. Records come with their seq."""
    parts = (
        (((seq, -1, 0), record) for seq, record in records),
        (((closure.last_seq, closure.z_number, 0), closure) for closure in closures),
        (((each.after_seq, each.after_z, each.id), each) for each in placed),
    )
    return merge(*parts, key=itemgetter(0))


def losses(connection: sqlite3.Connection, book: Book) -> dict[str, RecordsLost]:
    """The entries for lost records, by the hash (hex) of what follows these."""
    found = read_as(Placed, connection.execute(_SQL["lost"], (book.id,)))
    entries = [(placed.hash.hex(), placed.entry_of(RecordsLost)) for placed in found]
    return {entry.next_hash or link: entry for link, entry in entries}


def last_entry(connection: sqlite3.Connection, book: Book) -> Placed | None:
    return next(read_as(Placed, connection.execute(_SQL["last"], (book.id,))), None)


def link_after(
    connection: sqlite3.Connection, book: Book, seq: int, upto_z: int = _LAST, before_id: int = _LAST
) -> bytes:
    """The hash of the last link after the record `seq`: a closure (up to the number `upto_z`), an entry (after that
    closure at most, with an id below `before_id` there), or the record itself."""
    link = value_of(connection.execute(_SQL["last_link"], (book.id, seq, upto_z, before_id)), b"")
    link = link or value_of(connection.execute(_SQL["record_link"], (book.id, seq)), b"")
    return link or read_start(connection, book.id).hash


def hours_ahead(last_at: int, now: int) -> int:
    """By how many ms the clock was fast, in whole hours: clocks are usually wrong by hours, days or years."""
    return -(-(last_at - now) // HOUR) * HOUR


def repair_time(connection: sqlite3.Connection, book: Book, *, now: int, ahead: int, reason: str) -> Placed:
    """Moves times after `now` (the right time, ms) that a clock wrote `ahead` ms fast; NotFound for none."""
    state = book_state(connection, book)
    if state.last_at <= now:
        raise NotFound(Text("the book has no time that is still to come"))
    (first_seq,) = connection.execute(_SQL["first_seq"], (book.id, now)).fetchone()
    (first_z,) = connection.execute(_SQL["first_z"], (book.id, now)).fetchone()
    floor = max(connection.execute(_SQL["floor"], (book.id, now) * 3).fetchone())
    entry = TimeRepair(first_seq or state.last_seq + 1, first_z or state.z_number + 1, ahead, floor, reason)
    change = {"book": book.id, "now": now, "ahead": ahead, "floor": floor, "seq": entry.first_seq, "z": entry.first_z}
    for name in (
        "entries",
        "deferred",
        "take_over_begins",
        "take_over_ends",
        "records",
        "period_starts",
        "closures",
        "checkpoints",
        "totals",
        "start",
        "period_start",
        "open",
        "keys",
        "events",
    ):
        connection.execute(_SQL[name], change)
    placed = place(connection, book, entry, now)
    connection.execute(_SQL["count"], change)
    return placed
