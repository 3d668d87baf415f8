"""Letterheads by version (`core.report.letterhead`): functions on a connection, for the writer or a reader."""

from __future__ import annotations

import sqlite3

from daemon.core.ledger.book import Book
from daemon.store.sqlite.queries import load

_SQL = load(__name__)


def keep(connection: sqlite3.Connection, book: Book, digest: bytes, content: bytes, at: int) -> None:
    connection.execute(_SQL["keep"], (book.id, digest, at, content))


def find(connection: sqlite3.Connection, book: Book, digest: bytes) -> bytes | None:
    row = connection.execute(_SQL["find"], (book.id, digest)).fetchone()
    return row[0] if row else None


def newest(connection: sqlite3.Connection, book: Book) -> tuple[bytes, bytes] | None:
    """Digest and content."""
    row: tuple[bytes, bytes] | None = connection.execute(_SQL["newest"], (book.id,)).fetchone()
    return row
