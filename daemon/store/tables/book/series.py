"""How far the series of numbers of a book goes. Functions on a connection."""

from __future__ import annotations

import sqlite3

from daemon.core.invoice.number import number_key
from daemon.core.ledger.book import Book
from daemon.store.sqlite.queries import load
from daemon.store.tables.book import deferred

_SQL = load(__name__)


def count_numbers(connection: sqlite3.Connection, book: Book, prefix: str, digits: int) -> tuple[int, int]:
    """How many numbers of that prefix and so many digits are in use, and the highest of them, 0 without one."""
    glob = prefix + "[0-9]" * digits
    count, highest = connection.execute(_SQL["count_numbers"], (book.id, prefix, glob)).fetchone()
    waiting, last = deferred.numbers_in_use(connection, book, prefix, digits)
    return count + waiting, max(int(highest[len(prefix) :] or 0), last)


def is_reserved(connection: sqlite3.Connection, book: Book, number: str) -> bool:
    """Whether an attempt has that number, or one equal to it, or a sale waits with it."""
    return bool(connection.execute(_SQL["is_reserved"], (book.id, number, number_key(number))).fetchone()[0])
