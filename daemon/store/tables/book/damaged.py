"""Reading past rows that are damaged: each becomes a record that names its entry, and the others are what they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from daemon.core.errors import LedgerUnusable
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import unreadable
from daemon.store.sqlite.queries import load
from daemon.store.tables.book.codec import RECORD_COLUMNS, record_of

_SQL = load(__name__, columns=RECORD_COLUMNS)

UNREADABLE = (sqlite3.DatabaseError, LedgerUnusable)
"""What comes of reading a damaged row: a page that is none, a text that is not UTF-8, a value that nothing of ours wrote."""

Place = tuple[int, int]
"""id and seq of a record"""


def each_of(connection: sqlite3.Connection, places: Iterable[Place]) -> Iterator[Record]:
    """One by one."""
    for record_id, seq in places:
        try:
            yield record_of(connection.execute(_SQL["by_id"], (record_id,)).fetchone())
        except (*UNREADABLE, TypeError):  # TypeError: the row is gone
            yield unreadable(record_id, seq, *_named(connection, record_id))


def _named(connection: sqlite3.Connection, record_id: int) -> tuple[str, str]:
    """Its number, as the index has it where the row has none, and its machine; empty where neither can be read."""
    number = nim = ""
    for name in ("row", "indexed"):
        try:
            with lenient(connection):
                row = connection.execute(_SQL[name], (record_id,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            number, nim = number or _text(row[0]), nim or _text(row[1])
    return number, nim


def _text(value: object) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


@contextmanager
def lenient(connection: sqlite3.Connection) -> Iterator[None]:
    """A text that is not UTF-8 is a text with surrogates, and no error of the whole row."""
    before = connection.text_factory
    connection.text_factory = as_it_stands
    try:
        yield
    finally:
        connection.text_factory = before


def as_it_stands(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
