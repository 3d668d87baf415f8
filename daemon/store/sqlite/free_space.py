"""Checks before a certification that its outcome can be stored: enough free space beyond the reserve, and a sound file
(507).

After a failed write a small one is tried each second; the first success makes the ledger healthy again without a
restart."""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerMoved, LedgerUnusable, StorageError, StorageFull
from daemon.store.sqlite.disk_failure import DAMAGED, LEDGER_MOVED
from daemon.store.sqlite.file import open_file

RESERVE_BYTES = 16 * 1024 * 1024
PAGES_PER_MB, BYTES_PER_MB = 256, 1024 * 1024
SANDBOX_RESERVES = 4
"""Times the reserve that a sandbox leaves free: live sales go on long after it."""
ASK_AGAIN = 1.0
"""Seconds for which an answer of the file system stands."""


@dataclass(eq=False)
class FreeSpace:
    """`probe`: a small durable write, or an error; `limit`: greatest size of the file in pages, 0 for none. Call `look`
    if `is_due`, then `check`."""

    path: Path
    _: KW_ONLY
    reserve_bytes: int
    limit: int
    connection: sqlite3.Connection
    probe: Callable[[], Awaitable[None]]
    _fault: StorageError | None = field(default=None, init=False)
    _found: StorageError | None = field(default=None, init=False)
    _checked_at: float = field(default=float("-inf"), init=False)
    _left: int = field(init=False)

    def __post_init__(self) -> None:
        self._file = _file_at(self.path)

    def note(self, fault: StorageError | None) -> None:
        """What became of the last write: the writer says so after each."""
        if (fault is None) != (self._fault is None):
            self.reset()
            self._found = fault
        self._fault = fault

    def reset(self) -> None:
        """What was found stands no longer."""
        self._checked_at = float("-inf")

    @property
    def is_due(self) -> bool:
        return asyncio.get_running_loop().time() - self._checked_at >= ASK_AGAIN

    async def measure(self, damage: Sequence[str] = ()) -> None:
        """`damage`: what is known to be damaged in the file."""
        self._checked_at = asyncio.get_running_loop().time()
        self._found = (
            LedgerUnusable(Text("{state} ({found})", state=DAMAGED, found=damage[0])) if damage else await self._check()
        )

    def check(self, *, sandbox: bool = False) -> None:
        """StorageFull when there is no room, LedgerMoved when the file is gone; LedgerUnusable when the file turned out to be damaged."""
        if self._found is not None:
            raise type(self._found)(*self._found.args)
        if sandbox and self._left < SANDBOX_RESERVES * self.reserve_bytes:
            raise StorageFull(Text("what is free on the disk is left to live sales"))

    async def _check(self) -> StorageError | None:
        try:
            self._look()
            if self._fault is not None:
                await self.probe()
        except StorageError as error:
            return error
        return None

    def _look(self) -> None:
        try:
            if _file_at(self.path) != self._file:
                raise LedgerMoved(LEDGER_MOVED)
            disk = os.statvfs(self.path)
        except OSError as error:
            raise StorageFull(Text("the ledger's disk cannot be read ({why})", why=reason(error))) from error
        if disk.f_flag & os.ST_RDONLY or not os.access(self.path, os.W_OK):
            raise StorageFull(Text("the ledger is read-only"))
        left = [(disk.f_bavail * disk.f_frsize, Text("the disk is full: less than the reserve is free"))]
        if self.limit:
            left.append(
                (_left_in_file(self.connection, self.limit), Text("the ledger has grown to the size it may have"))
            )
        self._left, why = min(left)
        if self._left < self.reserve_bytes:
            raise StorageFull(why)


def is_grown_to(path: Path, max_mb: int, reserve_mb: int) -> bool:
    """Whether less than the reserve is left in a ledger of at most so many MB; False for one that cannot be read."""
    with contextlib.suppress(sqlite3.Error, StorageError), contextlib.closing(open_file(path, "ro")) as connection:
        return _left_in_file(connection, max_mb * PAGES_PER_MB) < reserve_mb * BYTES_PER_MB
    return False


def _left_in_file(connection: sqlite3.Connection, limit: int) -> int:
    """Bytes that are left in its unused pages and those that it may still get, up to `limit` pages."""
    sizes = [
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    ]
    pages, unused, page_size = sizes
    return int((limit - pages + unused) * page_size)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Device and inode; None for no file. SQLite itself goes on with a file that was moved."""
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None
