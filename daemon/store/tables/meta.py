"""Single values of the ledger that belong to no other table."""

from __future__ import annotations

import sqlite3

from daemon.store.sqlite.queries import load

_SQL = load(__name__)


def read_meta(connection: sqlite3.Connection, name: str) -> str:
    """Empty when it was never written."""
    row = connection.execute(_SQL["read"], (name,)).fetchone()
    return str(row[0]) if row else ""


def write_meta(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute(_SQL["write"], (name, value))
