"""Detects acknowledged writes that are missing when the ledger is opened: by the mark of the last commit, or without
one by the WAL behind its last valid frame. The ledger then counts as restored: each live book is compared with its
machine, and an operator decides."""

import contextlib
import os
import shutil
import sqlite3
import struct
from collections.abc import Collection
from itertools import count
from pathlib import Path

from common.files import real_path, sync_path
from common.language import NO_TEXT, Text
from common.language.reasons import WRITES_LOST, WRITES_LOST_WITH_LOG, from_stored, to_stored
from common.language.system import reason
from daemon.core.errors import StorageFull
from daemon.core.machine.state import short_nim
from daemon.store.maintenance.housekeeping import LOST_WRITES, mark_restored
from daemon.store.sqlite.file import load, transaction
from daemon.store.sqlite.lock import MarkRow
from daemon.store.tables.meta import begin_epoch, read_lineage, read_meta, read_number, write_meta

_SQL = load(__name__)

COMMITS = "commits"

_HEADER = struct.Struct(">16x8s8x")
"""Of a WAL: its salts (sqlite.org/walformat.html)."""
_FRAME = struct.Struct(">4xI8s8x")
"""Of each of its frames: the database's size in pages after the commit that it ends, else 0; and the salts."""
CERTAIN = 2
"""Number of transactions behind the break that proves a loss without a mark: each was synced before the next began, so
a power cut leaves at most one incomplete."""


def count_commit(connection: sqlite3.Connection) -> int:
    """In the transaction that is counted."""
    (number,) = connection.execute(_SQL["count"]).fetchone()
    return int(number)


def ledger_name(connection: sqlite3.Connection) -> str:
    """Empty for a ledger that has no id yet."""
    lineage = read_lineage(connection)
    return f"{lineage.ledger_id}.{lineage.epoch}" if lineage.ledger_id else ""


def find_lost(connection: sqlite3.Connection, ledger: Path, mark: MarkRow | None, *, alone: bool) -> Text:
    """What is missing in a ledger that was just opened; empty for nothing. If something is, its WAL is copied aside.
    `alone`: no other process may write in it; `mark`: read before the opening."""
    if not connection.execute(_SQL["has_meta"]).fetchone()[0]:
        return NO_TEXT
    real = real_path(ledger)
    wal = real.with_name(real.name + "-wal")
    missing = count_missing(connection, mark)
    if missing:
        return _finding(missing, _copy_aside(wal))
    if not alone or (mark is not None and mark.name == ledger_name(connection)):
        return NO_TEXT
    behind = transactions_behind(connection, wal)
    return _finding(behind, _copy_aside(wal)) if behind >= CERTAIN else NO_TEXT


def count_missing(connection: sqlite3.Connection, mark: MarkRow | None) -> int:
    """How many acknowledged commits this ledger lacks; also while others write, if `mark` was read before the present
    view. A mark of a later epoch shows a copy that was put in place by hand; their number is then unknown."""
    lineage = read_lineage(connection)
    if mark is None or not lineage.ledger_id or mark.ledger_id != lineage.ledger_id or mark.epoch < lineage.epoch:
        return 0
    return max(int(mark.epoch > lineage.epoch), mark.number - read_number(connection, COMMITS))


def transactions_behind(connection: sqlite3.Connection, wal: Path) -> int:
    """Number of commits in the WAL behind the last frame that SQLite accepts. No other process may write meanwhile."""
    _, valid, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    commits = 0
    with contextlib.suppress(FileNotFoundError), wal.open("rb") as file:
        header = file.read(_HEADER.size)
        file.seek(max(0, valid) * (_FRAME.size + page_size), os.SEEK_CUR)
        while len(frame := file.read(_FRAME.size)) == _FRAME.size:
            pages, salts = _FRAME.unpack(frame)
            commits += pages > 0 and (salts,) == _HEADER.unpack(header)
            file.seek(page_size, os.SEEK_CUR)
    return commits


def note_lost(connection: sqlite3.Connection, found: str, mark: MarkRow | None) -> None:
    """Every book has to be compared with its machine, and headquarters learns that this is not the ledger it knew."""
    with transaction(connection):
        (at,) = connection.execute(_SQL["newest"]).fetchone()
        mark_restored(connection, max(at, 1))
        begin_epoch(connection, at, mark)
        write_meta(connection, LOST_WRITES, to_stored(found))


def read_lost(connection: sqlite3.Connection, machines: Collection[str] | None = None) -> Text:
    """What was found, as long as a live book is not yet compared with its machine; else empty. `machines`: NIMs of
    those that can answer, else all."""
    waiting = {short_nim(nim) for (nim,) in connection.execute(_SQL["waiting"])}
    waits = waiting if machines is None else waiting & set(map(short_nim, machines))
    return from_stored(read_meta(connection, LOST_WRITES)) if waits else NO_TEXT


def _finding(count: int, aside: Path | None) -> Text:
    return WRITES_LOST(count=count) if aside is None else WRITES_LOST_WITH_LOG(count=count, file=aside.name)


def _copy_aside(wal: Path) -> Path | None:
    """For a repair that reads more of it than SQLite does."""
    if not wal.exists() or wal.stat().st_size <= _HEADER.size:
        return None
    names = (wal.with_name(f"{wal.name}.damaged-{number}") for number in count(1))
    aside = next(name for name in names if not name.exists())
    try:
        shutil.copy2(wal, aside)
        sync_path(aside)
    except OSError as error:
        raise StorageFull(Text("{path} cannot be written ({why})", path=aside, why=reason(error))) from error
    return aside
