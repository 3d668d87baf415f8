"""Books: what each knows of its machine, and the head of its chain. Functions on a connection, for the writer or a reader."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from daemon.core.certification import Counters, MachineState, Mode
from daemon.core.chain import GENESIS
from daemon.core.closure import Book, BookState
from daemon.core.errors import NotFound
from daemon.store.codec import counters_of, rates_text, read_rates, tally_bytes
from daemon.store.queries import load

_SQL = load("books")


class Head(NamedTuple):
    """The end of a book: the last seq, the youngest time (ms) and the chain's hash."""

    seq: int
    at: int
    hash: bytes


def open_book(connection: sqlite3.Connection, nim: str, mode: Mode) -> Book:
    found = connection.execute(_SQL["find"], (nim, mode)).fetchone()
    if found is None:
        (book_id,) = connection.execute(_SQL["insert"], (nim, mode, GENESIS)).fetchone()
        connection.execute(_SQL["insert_total"], (book_id, tally_bytes({}), tally_bytes({})))
        return Book(book_id, nim, mode)
    return Book(found[0], nim, mode)


def all_books(connection: sqlite3.Connection) -> list[Book]:
    return [Book(*row) for row in connection.execute(_SQL["all"])]


def book_state(connection: sqlite3.Connection, book: Book) -> BookState:
    row = connection.execute(_SQL["state"], (book.id,)).fetchone()
    if row is None:
        raise NotFound(f"the ledger has no book for {book.nim} ({book.mode})")
    tc, fvc, frc, last_number, last_at, last_seq, rates, ifu, attention, unexplained, z_number, begun_at = row
    return BookState(
        book=book,
        known=counters_of(tc, fvc, frc),
        last_number=last_number,
        last_at=max(last_at, begun_at or 0),
        last_seq=last_seq,
        rates=read_rates(rates),
        ifu=ifu,
        attention=attention,
        unexplained=unexplained,
        z_number=z_number,
    )


def read_head(connection: sqlite3.Connection, book_id: int) -> Head:
    return Head(*connection.execute(_SQL["head"], (book_id,)).fetchone())


def advance(connection: sqlite3.Connection, book_id: int, head: Head) -> None:
    connection.execute(_SQL["advance"], (*head, book_id))


def advance_certified(
    connection: sqlite3.Connection,
    book_id: int,
    head: Head,
    *,
    counters: Counters,
    number: str,
    unexplained: int,
) -> None:
    known = (counters.tc, counters.fvc, counters.frc)
    connection.execute(_SQL["advance_certified"], (*head, *known, number, unexplained, book_id))


def reconcile(connection: sqlite3.Connection, book: Book, state: MachineState, unexplained: int, at: int) -> None:
    """Writes only what is new, so that a connection to a machine that has not moved costs no fsync."""
    counters = state.counters
    now = (counters.tc, counters.fvc, counters.frc, rates_text(state.rates), state.ifu)
    *known, _, restored_at = connection.execute(_SQL["known"], (book.id,)).fetchone()
    if tuple(known) == now and not unexplained and not restored_at:
        return
    connection.execute(_SQL["reconcile"], (*now, unexplained, at, book.id))
    connection.execute(_SQL["raise_fvc"], (counters.fvc, book.id))


def attend(connection: sqlite3.Connection, book: Book, found: str, at: int) -> None:
    connection.execute(_SQL["attend"], (found, at, book.id))


def restored_at(connection: sqlite3.Connection, book: Book) -> int:
    """When this book was put back from a backup (ms), until it has been compared with its machine; else 0."""
    at: int = connection.execute(_SQL["restored"], (book.id,)).fetchone()[0]
    return at
