"""After a disk error (`sqlite.disk_failure`) the ledger is copied into a new file before anything is certified.

So what the kernel still has of the old file is written to other places of the disk, and synced. The complete, synced
copy gets its own name before the old ledger is touched. From then on it is the ledger, and the next start completes
what was interrupted. The old write-ahead log is never used with the copy: its end may be missing on disk, and its
beginning alone would corrupt the copy."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from common import notify
from common.files import real_path, sync_path
from common.language import Text
from common.language.system import reason
from common.wire.instants import now_millis
from daemon.core.clock import millis_text
from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.store.maintenance.backup import complete_copy, in_the_making, keep_as
from daemon.store.maintenance.health import examine
from daemon.store.sqlite.disk_failure import (
    as_storage_error,
    file_failed,
    is_copy_due,
    is_unreadable,
    note_copied,
    read_failures,
)
from daemon.store.sqlite.file import open_to_read
from daemon.store.sqlite.migrations import is_current, migrations

OLD = ".failed-"
MAX_FILES = 2
"""Old files that stay, where there is room for them."""
PAGES = 1024
STEP_SECONDS = 600.0
"""A worn card has to write so many pages, or to sync the whole, within that time."""
MEGABYTE = 1024 * 1024


async def renew_after_failure(ledger: Path) -> bool:
    """Whether the ledger was copied; the caller has its lock. StorageFull, or LedgerUnusable if unreadable."""
    real = real_path(ledger)
    was_begun = complete_copy(real).exists()
    if was_begun:
        await _put_in_place(real)
    if not is_copy_due(real):
        return was_begun
    if not was_begun and real.stat().st_size:
        await _renew(real)
    note_copied(real)
    return True


async def _renew(ledger: Path) -> None:
    _make_room(ledger)
    try:
        with in_the_making(ledger) as copy:
            await _copy(ledger, copy)
            await asyncio.to_thread(_examine, copy)
            shutil.copymode(ledger, copy)
            notify.still_starting(STEP_SECONDS)
            await asyncio.to_thread(_complete, copy, ledger)
    except sqlite3.Error as error:
        raise _cannot_be_copied(error) from error
    await _put_in_place(ledger)


def _make_room(ledger: Path) -> None:
    """For the copy, of the old files' own room where there is no other."""
    old = sorted(ledger.parent.glob(f"{ledger.name}{OLD}*[0-9Z]"))
    for file in old[: -(MAX_FILES - 1)]:
        _remove(file)
    files = (ledger, ledger.with_name(f"{ledger.name}-wal"))
    needed = sum(file.stat().st_size for file in files if file.exists())
    for file in old:
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
    import aiosqlite  # noqa: PLC0415  only a ledger whose disk has failed is copied: nothing else loads it

    def progress(*_: int) -> None:
        notify.still_starting(STEP_SECONDS)

    source = aiosqlite.connect(f"{ledger.as_uri()}?mode=ro", uri=True, isolation_level=None)
    async with source as old, aiosqlite.connect(copy, isolation_level=None) as new:
        await new.execute_fetchall("PRAGMA journal_mode = OFF")
        await old.backup(new, pages=PAGES, progress=progress)


def _examine(copy: Path) -> None:
    """The end of each book; of an older schema it is looked at once it is migrated."""
    with closing(open_to_read(copy)) as connection:
        if is_current(connection, migrations()):
            examine(connection)


def _complete(copy: Path, ledger: Path) -> None:
    """From here on it is the ledger."""
    with _failing():
        _sync_and_name(copy, complete_copy(ledger))


def _sync_and_name(copy: Path, complete: Path) -> None:
    sync_path(copy)
    copy.replace(complete)
    sync_path(complete.parent)


async def _put_in_place(ledger: Path) -> None:
    stamp = millis_text(now_millis()).replace(":", "").replace(".", "")
    aside = ledger.with_name(f"{ledger.name}{OLD}{stamp}")
    with _failing():
        await asyncio.to_thread(_exchange, ledger, aside)
    failures = read_failures(ledger)
    import structlog  # noqa: PLC0415  a command that only reads has nothing to log, and starts without it

    structlog.get_logger(__name__).warning(
        "ledger.copied", aside=aside.name, cause=failures[-1].cause if failures else ""
    )


def _exchange(ledger: Path, aside: Path) -> None:
    """The copy keeps its name until the ledger's durably leads to it: a power cut may lose either one."""
    complete, part = complete_copy(ledger), ledger.with_name(f"{ledger.name}.part")
    if not (ledger.exists() and ledger.samefile(complete)):  # the log of what is in place already is its own
        _set_aside(ledger, aside)
        sync_path(ledger.parent)
        part.unlink(missing_ok=True)
        keep_as(complete, part)
        part.replace(ledger)
    sync_path(ledger.parent)
    complete.unlink()
    sync_path(ledger.parent)


def _set_aside(ledger: Path, aside: Path) -> None:
    if ledger.exists():
        keep_as(ledger, aside)
    log_of_old = ledger.with_name(f"{ledger.name}-wal")
    if log_of_old.exists():
        log_of_old.replace(aside.with_name(f"{aside.name}-wal"))
    ledger.with_name(f"{ledger.name}-shm").unlink(missing_ok=True)


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        file_failed(error)
        raise StorageFull(
            Text("the copy of the ledger cannot be put in its place ({why})", why=reason(error))
        ) from error


def _cannot_be_copied(error: sqlite3.Error) -> Exception:
    if is_unreadable(error):
        return LedgerUnusable(
            Text(
                "after an error of the disk the ledger cannot be read; put the last backup back with `mcfd restore --keep-newer`"
            )
        )
    return as_storage_error(error)


def _remove(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _free(ledger: Path) -> int:
    try:
        disk = os.statvfs(ledger.parent)
    except OSError as error:
        raise StorageFull(Text("the ledger's disk cannot be read ({why})", why=reason(error))) from error
    return disk.f_bavail * disk.f_frsize
