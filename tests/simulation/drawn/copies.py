"""What stands in a ledger's file, read beside everything else."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from daemon.core.machine.state import short_nim
from daemon.store.tables.meta import read_meta


def restored_at(ledger: Path) -> str:
    """Empty for a ledger that was never put back, and for one that a disk did not take."""
    with contextlib.closing(sqlite3.connect(ledger)) as connection, contextlib.suppress(sqlite3.OperationalError):
        return read_meta(connection, "restored_at")
    return ""


def stored_numbers(ledger: Path, nim: str) -> tuple[set[str], set[str]]:
    """The numbers that a ledger holds as certified, and as begun or disputed, at the machine `nim`."""
    query = "SELECT number, state FROM certification JOIN book ON book.id = book_id WHERE book.nim GLOB ?"
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        rows = list(connection.execute(query, (f"{short_nim(nim)}*",)))
    return {n for n, state in rows if state == "certified"}, {n for n, state in rows if state in ("begun", "disputed")}
