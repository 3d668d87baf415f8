"""Acts beside certifications that the journal tells: duplicates, reports that were given out. Functions on a connection."""

from __future__ import annotations

import sqlite3

from common.language import Text
from daemon.core.errors import NotFound
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import Placed
from daemon.store.sqlite.queries import load, read_as
from daemon.store.tables.book.entries import COLUMNS

_SQL = load(__name__, columns=COLUMNS)


def copies(connection: sqlite3.Connection, book: Book, code: str) -> int:
    """How many duplicates of that certification were given out."""
    found: int = connection.execute(_SQL["copies"], (book.id, code)).fetchone()[0]
    return found


def last_closed(connection: sqlite3.Connection, book: Book) -> Placed | None:
    """The newest closed report of articles."""
    return next(read_as(Placed, connection.execute(_SQL["last_closed"], (book.id,))), None)


def closed(connection: sqlite3.Connection, book: Book, number: int) -> Placed:
    for placed in read_as(Placed, connection.execute(_SQL["closed"], (book.id, number))):
        return placed
    raise NotFound(Text("there is no report of articles number {number}", number=number))


def report(connection: sqlite3.Connection, book: Book, entry_id: int) -> Placed:
    for placed in read_as(Placed, connection.execute(_SQL["report"], (book.id, entry_id))):
        return placed
    raise NotFound(Text("there is no report {number}", number=entry_id))


def acts(connection: sqlite3.Connection, book: Book, *, start: int, end: int, after: int, limit: int) -> list[Placed]:
    """Cash, duplicates, reports and outages of `start <= t < end` (ms), oldest first, from the one after the id `after`."""
    return list(read_as(Placed, connection.execute(_SQL["acts"], (book.id, start, end, after, limit))))
