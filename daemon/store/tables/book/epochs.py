"""Activations of a machine (decision 33): the same taxpayer goes on in the same book with a new epoch, another one has a book of its own.
Functions on a connection, for the writer or a reader."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import msgspec

from daemon.core.ledger.book import Book, LastSeen
from daemon.core.ledger.entries import Epoch
from daemon.core.ledger.verdict import went_down
from daemon.core.machine.nim import short_nim
from daemon.core.machine.state import FiscalCounters
from daemon.store.sqlite.queries import load
from daemon.store.tables.book import books, entries
from daemon.store.tables.book.codec import counters_of, seen_text

_SQL = load(__name__)


class Activation(NamedTuple):
    """An epoch by its number, the machine's name in it, and its counters as they are known (None: never read)."""

    number: int
    nim: str
    counters: FiscalCounters | None


def begin_epoch(
    connection: sqlite3.Connection,
    book: Book,
    counters: FiscalCounters,
    *,
    ifu: str,
    nim: str,
    at: int,
    began_again: bool = False,
    ours: int = 0,
    seen: LastSeen | None = None,
) -> Book:
    """The book under the machine's name of now; one that holds nothing yet has only been misnamed, and one that has that name already, with
    counters that go on, stays as it is. `began_again`: the counters did, though they do not show it; counters that are below those known always
    did. Then they are taken over with the last invoice `seen` beside them, and all they count but `ours` invoices is unexplained."""
    now = books.book_state(connection, book)
    before = now.counters or FiscalCounters(0, 0, 0)
    renamed = msgspec.structs.replace(book, nim=nim)
    began_again = began_again or went_down(before, counters)
    was = present_epoch(connection, book).nim
    if was == nim and not began_again:
        return renamed
    if now.counters is None and not now.last_seq and not now.z_number:
        connection.execute(_SQL["rename"], (nim, book.id))
        return renamed
    after = counters if began_again else before
    entries.append(connection, book, Epoch(now.epoch + 1, was, nim, ifu or now.ifu, before, after), at)
    unexplained = max(0, after.fvc + after.frc - ours) if began_again else 0
    values = (nim, after.tc, after.fvc, after.frc, unexplained, began_again, seen_text(seen))
    connection.execute(_SQL["begin"], (book.id, *values))
    return renamed


def present_epoch(connection: sqlite3.Connection, book: Book) -> Activation:
    """As the ledger has it, whatever the caller's `book` remembers."""
    number, nim, *counters = connection.execute(_SQL["present"], (book.id,)).fetchone()
    return Activation(number, nim, counters_of(*counters))


def book_of_taxpayer(connection: sqlite3.Connection, book: Book, nim: str, ifu: str) -> Book:
    """Keys that were made until now are for the taxpayer that the machine had until now."""
    before = books.book_state(connection, book).ifu
    short = short_nim(nim)
    connection.execute(_SQL["bind_keys"], (before, book.mode, short, f"{short}-*"))
    connection.execute(_SQL["retire"], (book.mode, short, f"{short}-*"))
    found = connection.execute(_SQL["of_taxpayer"], (book.mode, short, f"{short}-*", ifu)).fetchone()
    taken = Book(found[0], found[1], book.mode) if found else books.new_book(connection, nim, book.mode)
    connection.execute(_SQL["take_up"], (ifu, taken.id))
    return taken
