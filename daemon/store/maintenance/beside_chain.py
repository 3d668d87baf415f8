"""What stands beside a book's chain and follows from it: what the book knows of its machine, attempts that have not ended, keys of requests, events, and
what is to go to headquarters."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from common.language import Counted, Text
from daemon.core.events import CERTIFIED, CLOSURE
from daemon.core.ledger.book import Book
from daemon.store.sqlite.queries import load
from daemon.store.tables.book.codec import RECORD_COLUMNS, record_of
from daemon.store.tables.events import UPSTREAM

_SQL = load(__name__, columns=RECORD_COLUMNS)

Note = Callable[[str], None]


def check_beside_chain(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    _check_unended(connection, book, note)
    _check_keys(connection, book, note)
    if book.mode == "live":  # of a sandbox they are let go of with what they are about
        _check_outbox(connection, book, note)
        _check_events(connection, book, note)


def _check_unended(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    """Of a begun or disputed attempt, which no chain holds yet, row and invoice say the same."""
    disputed = False
    for row in connection.execute(_SQL["unended"], (book.id,)).fetchall():
        record, told = record_of(row), row[1]
        disputed = disputed or record.state == "disputed"
        invoice = record.invoice
        if (invoice.number, invoice.type, invoice.total_ttc) != (record.number, record.type, record.total_ttc):
            note(Text("the attempt {number!r}, which has not ended, is for another invoice than it holds", number=told))
    (attention,) = connection.execute(_SQL["attention"], (book.id,)).fetchone()
    if disputed and not attention:
        note(Text("an attempt is disputed, and nobody is asked about it"))


def _check_keys(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    (count,) = connection.execute(_SQL["dangling_keys"], (book.id,)).fetchone()
    if count:
        note(
            Counted(
                "{count} Idempotency-Key stands for nothing that is in the book",
                "{count} Idempotency-Keys stand for nothing that is in the book",
                count,
            )
        )


def _check_outbox(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    """Every closure has its row for ever, whether it was sent or not."""
    sent = {ref for (ref,) in connection.execute(_SQL["outbox"], (UPSTREAM, book.id, CLOSURE))}
    for (z_number,) in connection.execute(_SQL["closures"], (book.id,)):
        if z_number not in sent:
            note(Text("Z {z_number} is missing among what goes to headquarters", z_number=z_number))


def _check_events(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    """Events are let go of from the oldest on: from the oldest certification that has one on, each has one."""
    rows = connection.execute(_SQL["unannounced"], (book.id, CERTIFIED)).fetchall()
    for seq, number in rows:
        note(Text("record {seq} (invoice {number!r}) has no event any more", seq=seq, number=number))
