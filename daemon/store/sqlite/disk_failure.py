"""A disk error ends the daemon and is recorded for its next start (docs/reliability.md).

After a failed sync the kernel may drop the written data and report the next sync as a success. A program that tries
again would acknowledge what the next power cut takes. So nothing is tried again in that process. A full disk is no such
error.

The record is a small file in the unit's `RUNTIME_DIRECTORY` (in memory), else beside the ledger. It is not synced,
since it has to outlast the process only. If it cannot be written, the next start still checkpoints the whole
write-ahead log (`Store.open`); only the copy into another file, and one count, are lost.

SQLite's errors become those of `core.errors`:

full, I/O error, read-only, cannot open, busy   StorageFull       nothing was stored; may work later
corrupt, not a database                         LedgerUnusable    a backup has to be restored

In the daemon an I/O error ends the process instead, except one of reading, of memory or of a lock."""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from common.files import read_file, real_path, runtime_folder
from common.language import Text
from common.wire.instants import now_millis
from daemon.core.clock import DAY, HOUR
from daemon.core.errors import LedgerMoved, LedgerUnusable, StorageError, StorageFull

_PRIMARY = 0xFF
"""The low byte of an extended result code is the primary one (sqlite.org/rescode.html)."""

_ROOM = {
    sqlite3.SQLITE_FULL: Text("the disk is full"),
    sqlite3.SQLITE_IOERR: Text("the disk does not take what is written"),
    sqlite3.SQLITE_READONLY: Text("the ledger is read-only"),
    sqlite3.SQLITE_CANTOPEN: Text("the ledger cannot be opened for writing"),
    sqlite3.SQLITE_BUSY: Text("the ledger is held by another program"),
    sqlite3.SQLITE_LOCKED: Text("the ledger is held by another program"),
}
LEDGER_MOVED = Text("the ledger's file is not in its place any more: it was moved, deleted or replaced")
_UNREADABLE = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
_NOT_WRITING = {
    *_UNREADABLE,
    sqlite3.SQLITE_IOERR_DATA,
    sqlite3.SQLITE_IOERR_NOMEM,
    sqlite3.SQLITE_IOERR_GETTEMPPATH,
    sqlite3.SQLITE_IOERR_BLOCKED,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
}
"""I/O errors that lose nothing of what was written."""
_SYNC = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_RUBBISH = ("malformed JSON", "Could not decode to UTF-8")
"""What a damaged value comes to: errors of a statement, without a code of their own."""

DAMAGED = Text("the ledger is damaged; put the last backup back with `mcfd restore --keep-newer`")

SUFFIX = ".disk-failures"
COPIED = "copied"
LARGEST = 4096
"""Bytes of the record: a daemon that fails at each start does not fill a disk with it."""
MAX_FAILURES = 16
"""Failures that stay on record when the ledger was copied."""
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
"""The kernel refuses every write, whatever the disk; nothing that was written before is lost by it."""
TRIED_BYTES = 65_536
FAILURES_IN_AN_HOUR = 3
REPORT_PERIOD = 7 * DAY

End = Callable[[str], None]
_watched: list[tuple[Path, End]] = []


def extended_code(error: sqlite3.Error) -> int:
    """SQLite's result code; 0 for an error of the Python module itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code


def code_of(error: sqlite3.Error) -> int:
    """The primary one."""
    return extended_code(error) & _PRIMARY


def is_unreadable(error: sqlite3.Error) -> bool:
    """What is in the file cannot be read, which is no matter of room."""
    return extended_code(error) in _UNREADABLE


def is_rubbish(error: sqlite3.Error) -> bool:
    """A value is none that was ever written."""
    return str(error).startswith(_RUBBISH)


def storage_error(error: sqlite3.Error) -> StorageError | None:
    """The same in our words, or None when it is a mistake of ours."""
    code = code_of(error)
    if extended_code(error) == sqlite3.SQLITE_READONLY_DBMOVED:
        return LedgerMoved(LEDGER_MOVED)
    if code == sqlite3.SQLITE_IOERR and error.sqlite_errorcode not in _NOT_WRITING:
        disk_failed(error.sqlite_errorname, is_sync=error.sqlite_errorcode in _SYNC)
    if code in _ROOM:
        return StorageFull(_ROOM[code])
    if code in _DAMAGE or is_rubbish(error):
        return LedgerUnusable(DAMAGED)
    return None


def as_storage_error(error: sqlite3.Error | UnicodeDecodeError) -> Exception:
    """The same; a mistake of ours as it is. UnicodeDecodeError comes of SQLite's message, which quotes a damaged
    schema."""
    if isinstance(error, UnicodeDecodeError):
        return LedgerUnusable(DAMAGED)
    return storage_error(error) or error


@contextmanager
def storage_faults() -> Iterator[None]:
    """SQLite's errors within it are raised in our words."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise as_storage_error(error) from error


class DiskFailure(NamedTuple):
    at: int
    cause: str


@contextlib.contextmanager
def ending_on_failure(ledger: Path, end: End) -> Iterator[None]:
    """Within this context a disk error calls `end`, which does not return, on its thread. Elsewhere it is raised."""
    _watched.append((ledger, end))
    try:
        yield
    finally:
        _watched.clear()


def disk_failed(cause: str, *, is_sync: bool) -> None:
    """Ends the process. Returns outside `ending_on_failure`, or if the disk is only full: a full disk refuses SQLite's
    shared memory, or a file's growth, with other errors too."""
    for ledger, end in _watched:
        if is_sync or not _refuses_all(ledger):
            _record(ledger, cause)
            end(cause)


def file_failed(error: OSError, *, is_sync: bool = True) -> None:
    """The same for a file of our own, which is synced unless `is_sync` says otherwise."""
    if error.errno == errno.EIO:
        disk_failed(str(error), is_sync=is_sync)


def read_failures(ledger: Path) -> Sequence[DiskFailure]:
    """Oldest first."""
    found = []
    for line in chain.from_iterable(map(_lines_of, _paths(ledger))):
        at, _, cause = line.partition(" ")
        if at.isdecimal() and cause != COPIED:
            found.append(DiskFailure(int(at), cause))
    return sorted(found)


def is_copy_due(ledger: Path) -> bool:
    """Whether a process ended by such an error, and the ledger was not copied since."""
    records = filter(None, map(_lines_of, _paths(ledger)))
    return any(not lines[-1].endswith(f" {COPIED}") for lines in records)


def note_copied(ledger: Path) -> None:
    """What is on record goes beside the ledger. A disk that does not take it has the ledger copied once more."""
    beside, *others = _paths(ledger)[::-1]
    lines = [f"{failure.at} {failure.cause}" for failure in read_failures(ledger)][-MAX_FAILURES:]
    with contextlib.suppress(OSError):
        part = beside.with_name(beside.name + ".part")
        part.write_text("\n".join([*lines, f"{now_millis()} {COPIED}\n"]))
        part.replace(beside)
        for other in others:
            other.unlink()


def disk_trouble(failures: Sequence[DiskFailure], now: int) -> str:
    """The warning for an operator, for a week after three failures within an hour; else empty."""
    times = [failure.at for failure in failures if failure.at > now - REPORT_PERIOD]
    if all(last - first > HOUR for first, last in zip(times, times[FAILURES_IN_AN_HOUR - 1 :], strict=False)):
        return ""
    return Text(
        "the disk failed {count} times in the last days, and mcfd ended each time: nothing is lost, but the card or disk has to be replaced. "
        "Now: sudo mcfd backup --all onto a stick; then a new card or disk, and mcfd restore there",
        count=len(times),
    )


def _paths(ledger: Path) -> list[Path]:
    """Where a record may be, in the order in which they are tried."""
    name = real_path(ledger).name + SUFFIX
    return [folder / name for folder in (runtime_folder(), real_path(ledger).parent) if folder]


def _record(ledger: Path, cause: str) -> None:
    """Nothing here may keep the process from its end."""
    line = f"{now_millis()} {cause}\n".encode("utf-8", "replace")
    for path in _paths(ledger):
        try:
            flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW
            with os.fdopen(os.open(path, flags, 0o640), "ab", buffering=0) as file:
                if file.tell() < LARGEST:
                    file.write(line)
        except OSError:
            continue
        return


def _lines_of(path: Path) -> list[str]:
    """Empty where there is no record."""
    try:
        return read_file(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _refuses_all(ledger: Path) -> bool:
    tried = ledger.with_name(f"{ledger.name}.room")
    try:
        descriptor = os.open(tried, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        try:
            written = os.write(descriptor, bytes(TRIED_BYTES))
        finally:
            os.close(descriptor)
            tried.unlink()
    except OSError as error:
        return error.errno in NO_ROOM
    return written < TRIED_BYTES
