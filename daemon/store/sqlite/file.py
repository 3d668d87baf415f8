"""Opening the ledger's file: what a command needs that only reads (`connection.py` has what a daemon works with)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["ro", "rw", "rwc"]
"""As in an SQLite URI."""

STATEMENTS = 256
"""Prepared statements kept by each connection; the store has about a hundred."""

BUSY_SECONDS = 5.0
"""How long to wait for a lock of the file's."""


def open_file(path: Path, mode: Mode) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions are begun and ended by name
        cached_statements=STATEMENTS,
    )


def open_to_read(path: Path) -> sqlite3.Connection:
    """Beside the process that writes the file. A WAL that a crash has left is read, and stays for the next one who writes."""
    connection = open_file(path, "ro")
    connection.execute("PRAGMA query_only = ON")
    return connection
