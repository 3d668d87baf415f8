"""What is let go of after its time, facts about the file, and the small write that asks whether it can be written."""

import sqlite3

from common.language.reasons import SALE_RESTORED, to_stored
from daemon.core.clock import DAY
from daemon.store.sqlite.file import load
from daemon.store.tables.book.books import all_books, read_head
from daemon.store.tables.meta import write_meta

_SQL = load(__name__)

BACKUP_AT, RESTORED_AT = "backup_at", "restored_at"
"""When a copy was made, and when it was put back, in ms; in `meta`."""
EVENT_DAYS = 7
KEY_DAYS = 30
"""Decision 6 asks for 7 at least."""
NOTICE_DAYS = 7
"""Events that were delivered. Closures are never let go of."""
PRUNED = (
    ("events_day", "prune_events", EVENT_DAYS),
    ("keys_day", "prune_keys", KEY_DAYS),
    ("notices_day", "prune_notices", NOTICE_DAYS),
)
LOST_WRITES = "lost_writes"
"""Key in `meta`: acknowledged writes are missing, and some books were not compared with their machine since."""
BATCH = 500
"""Rows of each kind in one transaction: others write in between."""


def prune(connection: sqlite3.Connection, now: int) -> int:
    """Deletes at most `BATCH` old rows of each kind and book; returns how many, 0 when done.

    A row is deleted if it is older than its days by the book's time, and its book has rows of that kind on more later
    days than that: so a clock that was fast for a moment adds one day and deletes nothing."""
    gone = 0
    for book in all_books(connection):
        at = min(now, read_head(connection, book.id).at)
        for seen, delete, days in PRUNED:
            if (found := connection.execute(_SQL[seen], (book.id, days)).fetchone()) is not None:
                gone += connection.execute(_SQL[delete], (book.id, horizon(at, found[0], days), BATCH)).rowcount
    return gone


def horizon(now: int, earliest_day: int, days: int) -> int:
    """Rows before this time (ms) may be deleted. `earliest_day` (days since 1970): first of the last `days + 1` days
    with rows of that kind."""
    return min(now - days * DAY, earliest_day * DAY)


def probe(connection: sqlite3.Connection) -> None:
    connection.execute(_SQL["probe"])


def mark_restored(connection: sqlite3.Connection, at: int) -> None:
    """Every book has to be compared with its machine before its counters are believed; the file is no copy any more."""
    connection.execute(_SQL["mark_restored"], (at,))
    connection.execute(_SQL["doubt_waiting_sales"], (to_stored(SALE_RESTORED),))
    connection.execute(_SQL["forget_evidence"])
    connection.execute(_SQL["forget_signs_of_life"])
    write_meta(connection, RESTORED_AT, str(at))
    write_meta(connection, BACKUP_AT, "")
    write_meta(connection, LOST_WRITES, "")  # of the ledger that gave way
