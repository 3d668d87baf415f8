"""SQLite's troubles in the ledger's words (`core.errors`).

full, I/O error, read-only, cannot open, busy   StorageFull       nothing was stored; it may be possible again later
corrupt, not a database                         LedgerUnusable    a backup has to be put back

In the daemon an I/O error is not raised: it ends the process (`disk_failure`), unless it is one of reading, of memory or of a lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from common.language import Text
from daemon.core.errors import LedgerUnusable, StorageError, StorageFull
from daemon.store.sqlite.disk_failure import disk_failed

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
"""What a value that nobody wrote comes to: errors of a statement, without a code of their own."""

DAMAGED = Text("the ledger is damaged; put the last backup back with `mcfd restore`")


def code_of(error: sqlite3.Error) -> int:
    """The primary result code; 0 for an error of the Python module itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & _PRIMARY


def is_unreadable(error: sqlite3.Error) -> bool:
    """What is in the file cannot be read, which is no matter of room."""
    return getattr(error, "sqlite_errorcode", 0) in _UNREADABLE


def is_rubbish(error: sqlite3.Error) -> bool:
    """A value is none that was ever written."""
    return str(error).startswith(_RUBBISH)


def storage_error(error: sqlite3.Error) -> StorageError | None:
    """The same in our words, or None when it is a mistake of ours."""
    code = code_of(error)
    if code == sqlite3.SQLITE_IOERR and error.sqlite_errorcode not in _NOT_WRITING:
        disk_failed(error.sqlite_errorname, is_sync=error.sqlite_errorcode in _SYNC)
    if code in _ROOM:
        return StorageFull(_ROOM[code])
    if code in _DAMAGE or is_rubbish(error):
        return LedgerUnusable(DAMAGED)
    return None


@contextmanager
def storage_faults() -> Iterator[None]:
    """SQLite's errors within it are raised in our words."""
    try:
        yield
    except sqlite3.Error as error:
        raise (storage_error(error) or error) from error
