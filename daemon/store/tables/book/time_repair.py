"""A book whose time was moved ahead by a wrong clock is set right again: a function on a connection, for the writer.

What was written with that clock keeps its hash, and what the hash holds stands beside it (`chained_at`); what counts from then on is that
much earlier. The entry in the chain says which records, by how much and why, so that `mcfd verify` computes it all again."""

from __future__ import annotations

import sqlite3

from common.language import Text
from daemon.core.clock import HOUR
from daemon.core.errors import NotFound
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import Placed, TimeRepair
from daemon.store.sqlite.queries import load
from daemon.store.tables.book import entries
from daemon.store.tables.book.books import book_state

_SQL = load(__name__)


def ahead_of(last_at: int, now: int) -> int:
    """By how much the clock was ahead, in ms: clocks are wrong by whole hours, days and years, and the last sale was a while ago."""
    return -(-(last_at - now) // HOUR) * HOUR


def repair(connection: sqlite3.Connection, book: Book, *, now: int, ahead: int, reason: str) -> Placed:
    """`now` is the right time (ms); what the book has after it was written by a clock that was `ahead` ms ahead. NotFound when there is
    nothing of that kind."""
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
    placed = entries.place(connection, book, entry, now)
    connection.execute(_SQL["count"], change)
    return placed
