"""How a book stands at this moment, for the box's presence."""

from __future__ import annotations

import sqlite3

from daemon.core.delivery import BookStanding
from daemon.core.ledger.book import Book
from daemon.store.sqlite.queries import load
from daemon.store.tables.book.codec import counters_of
from daemon.store.tables.lineage import read_lineage

_SQL = load(__name__)


def standing(connection: sqlite3.Connection, book: Book) -> BookStanding:
    lineage = read_lineage(connection)
    *heads, tc, fvc, frc, certified_at, z_asked = connection.execute(_SQL["standing"], (book.id,)).fetchone()
    values = (lineage.ledger_id, lineage.epoch, *heads, counters_of(tc, fvc, frc), certified_at, z_asked > 0)
    return BookStanding(*values)
