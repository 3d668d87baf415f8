"""What is let go of after its time, facts about the file, and the small write that asks whether it can be written."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from daemon.store.sqlite.queries import OUTBOX, load
from daemon.store.tables.events import prune_events
from daemon.store.tables.meta import write_meta

_SQL = load(__name__)
_OUTBOX = load(OUTBOX)

DAY = 86_400_000
EVENT_DAYS = 7
KEY_DAYS = 30
"""Decision 6 asks for 7 at least."""
NOTICE_DAYS = 7
"""Events that were delivered. Closures are never let go of."""
BATCH = 500
"""Rows of each kind in one transaction: others write in between."""


class Kept(NamedTuple):
    """The file, without its WAL."""

    bytes: int
    free_bytes: int
    sqlite: str
    """the library's version (field notes: 3.51.3 mends a rare WAL bug)"""


def prune(connection: sqlite3.Connection, now: int) -> int:
    """At most `BATCH` rows of each kind; how many, 0 when there is nothing left to do.

    By the time of the books: a clock that jumps ahead lets go of nothing that a shop may still ask for."""
    (newest,) = connection.execute(_SQL["newest"]).fetchone()
    now = min(now, newest)
    return (
        prune_events(connection, now - EVENT_DAYS * DAY, BATCH)
        + connection.execute(_SQL["prune_keys"], (now - KEY_DAYS * DAY, BATCH)).rowcount
        + connection.execute(_OUTBOX["prune"], (now - NOTICE_DAYS * DAY, BATCH)).rowcount
    )


def probe(connection: sqlite3.Connection) -> None:
    connection.execute(_SQL["probe"])


def measure(connection: sqlite3.Connection) -> Kept:
    pages, free, page_size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return Kept(pages * page_size, free * page_size, sqlite3.sqlite_version)


def mark_restored(connection: sqlite3.Connection, at: int) -> None:
    """Every book has to be compared with its machine before its counters are believed."""
    connection.execute(_SQL["mark_restored"], (at,))
    write_meta(connection, "restored_at", str(at))
