"""After an error of the disk (`sqlite.disk_failure`): the ledger is copied into a new file before anything is certified.

What the kernel still has of the old file is written anew, to other places of the disk, and synced there. Whatever is interrupted is done
again by the next start: the copy holds what the old file and its write-ahead log hold together, so that log over the copy changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import aiosqlite
import structlog

from common import notify
from common.language import Text
from common.language.system import reason
from daemon.core.clock import millis_text
from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.store.maintenance.backup import in_the_making, keep_as
from daemon.store.maintenance.health import examine
from daemon.store.sqlite.connection import open_to_read
from daemon.store.sqlite.disk_failure import file_failed, is_copy_due, note_copied, read_failures
from daemon.store.sqlite.durable import real_path, sync_path
from daemon.store.sqlite.faults import is_unreadable, storage_error
from daemon.store.sqlite.migrations import is_current, migrations

OLD = ".failed-"
KEPT = 2
"""Old files that stay, where there is room for them."""
PAGES = 1024
STEP_SECONDS = 600.0
"""A worn card has to write so many pages, or to sync the whole, within that time."""
MEGABYTE = 1024 * 1024

log = structlog.get_logger(__name__)


async def renew_after_failure(ledger: Path) -> bool:
    """Whether the ledger was copied; whoever calls has its lock. StorageFull where there is no room, LedgerUnusable where it cannot be read."""
    real = real_path(ledger)
    if not is_copy_due(real):
        return False
    if real.exists() and real.stat().st_size:
        await _renew(real)
    note_copied(real)
    return True


async def _renew(ledger: Path) -> None:
    _make_room(ledger)
    stamp = millis_text(time.time_ns() // 1_000_000).replace(":", "").replace(".", "")
    aside = ledger.with_name(f"{ledger.name}{OLD}{stamp}")
    try:
        with in_the_making(ledger) as copy:
            await _copy(ledger, copy)
            await asyncio.to_thread(_examine, copy)
            shutil.copymode(ledger, copy)
            notify.still_starting(STEP_SECONDS)
            try:
                await asyncio.to_thread(_put_in_place, copy, ledger, aside)
            except OSError as error:
                file_failed(error, is_sync=True)
                raise
    except sqlite3.Error as error:
        raise _cannot_be_copied(error) from error
    failures = read_failures(ledger)
    log.warning("ledger.copied", aside=aside.name, cause=failures[-1].cause if failures else "")


def _make_room(ledger: Path) -> None:
    """For the copy, of the old files' own room where there is no other."""
    old = sorted(ledger.parent.glob(f"{ledger.name}{OLD}*[0-9Z]"))
    for file in old[: -(KEPT - 1)]:
        _remove(file)
    needed = sum(_size(ledger.with_name(ledger.name + suffix)) for suffix in ("", "-wal"))
    for file in old[-(KEPT - 1) :]:
        if _free(ledger) < needed:
            _remove(file)
    if (free := _free(ledger)) < needed:
        raise StorageFull(
            Text(
                "after an error of the disk the ledger is copied before it is used again: {needed} MB have to be free in {folder}, {free} MB are; make room, or move to another disk with `mcfd backup --all`",
                needed=needed // MEGABYTE + 1,
                free=free // MEGABYTE,
                folder=ledger.parent,
            )
        )


async def _copy(ledger: Path, copy: Path) -> None:
    """Nothing is written to the old file, not even at the end of the connection."""

    def progress(*_: int) -> None:
        notify.still_starting(STEP_SECONDS)

    source = aiosqlite.connect(f"{ledger.as_uri()}?mode=ro", uri=True, isolation_level=None)
    async with source as old, aiosqlite.connect(copy, isolation_level=None) as new:
        await new.execute_fetchall("PRAGMA synchronous = OFF")  # synced once, before it counts
        await new.execute_fetchall("PRAGMA journal_mode = OFF")
        await old.backup(new, pages=PAGES, progress=progress)


def _examine(copy: Path) -> None:
    """The end of each book; of an older schema it is looked at once it is migrated."""
    with closing(open_to_read(copy)) as connection:
        if is_current(connection, migrations()):
            examine(connection)


def _put_in_place(copy: Path, ledger: Path, aside: Path) -> None:
    """At each moment there is a ledger that holds everything: the old file with its log, or the copy with it, or the copy."""
    sync_path(copy)
    keep_as(ledger, aside)
    copy.replace(ledger)
    sync_path(ledger.parent)
    log_of_old = ledger.with_name(f"{ledger.name}-wal")
    if log_of_old.exists():
        log_of_old.replace(aside.with_name(f"{aside.name}-wal"))
    ledger.with_name(f"{ledger.name}-shm").unlink(missing_ok=True)
    sync_path(ledger.parent)


def _cannot_be_copied(error: sqlite3.Error) -> Exception:
    if is_unreadable(error):
        return LedgerUnusable(
            Text("after an error of the disk the ledger cannot be read; put the last backup back with `mcfd restore`")
        )
    return storage_error(error) or error


def _remove(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _free(ledger: Path) -> int:
    try:
        disk = os.statvfs(ledger.parent)
    except OSError as error:
        raise StorageFull(Text("the ledger's disk cannot be read ({why})", why=reason(error))) from error
    return disk.f_bavail * disk.f_frsize


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
