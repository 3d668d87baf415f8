"""Activations of a machine (decision 33): the same taxpayer goes on in the same book with a new epoch, another one has a book of its own.
Functions on a connection, for the writer or a reader."""

from __future__ import annotations

import sqlite3

import msgspec

from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import Epoch
from daemon.core.ledger.verdict import went_down
from daemon.core.machine.nim import short_nim
from daemon.core.machine.state import FiscalCounters, MachineState
from daemon.store.sqlite.queries import load
from daemon.store.tables.book import books, entries

_SQL = load(__name__)


def begin_epoch(connection: sqlite3.Connection, book: Book, state: MachineState, nim: str, at: int) -> Book:
    """The book under the machine's name of now; one that holds nothing yet has only been misnamed."""
    now = books.book_state(connection, book)
    known = now.known or FiscalCounters(0, 0, 0)
    renamed = msgspec.structs.replace(book, nim=nim)
    if now.known is None and not now.last_seq and not now.z_number:
        connection.execute(_SQL["rename"], (nim, book.id))
        return renamed
    began_again = went_down(known, state.counters)
    after = state.counters if began_again else known
    entries.append(connection, book, Epoch(now.epoch + 1, book.nim, nim, state.ifu, known, after), at)
    unexplained = after.fvc + after.frc if began_again else 0
    connection.execute(_SQL["begin"], (nim, after.tc, after.fvc, after.frc, unexplained, began_again, book.id))
    return renamed


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


def epoch_of(connection: sqlite3.Connection, book: Book, machine: str) -> int:
    """The number of the newest epoch in which the machine had that name; the present one when it names none."""
    number, nim = connection.execute(_SQL["present"], (book.id,)).fetchone()
    if "-" not in machine or machine == nim:
        return int(number)
    for placed in reversed(entries.entries(connection, book)):
        entry = placed.entry
        if isinstance(entry, Epoch) and entry.was == machine:
            return entry.number - 1
    return int(number)
