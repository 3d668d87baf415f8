"""The real daemon on a disk whose every fsync is counted, and takes longer if asked.

    python -m support.slow_disk COUNT_FILE MILLISECONDS run --config FILE

SQLite reaches the disk through a table of functions, its VFS. A copy of the system's own, with a sync that counts, waits and
then does what the original does, is made the default before the daemon starts: nothing of the daemon is changed, it needs no
compiler, and it sits exactly where SQLite asks for durability (the WAL at a commit, WAL and file at a checkpoint). COUNT_FILE
holds the count as eight bytes, to be read by others while the daemon runs.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import mmap
import struct
import sys
import time
from pathlib import Path

COUNT = struct.Struct("=q")
IO_METHODS = 18  # of the third version of the structure, each a pointer; the version stands before them
SYNC = 5  # xClose, xRead, xWrite, xTruncate, xSync …, counted from 1 after the version

OPEN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int)
)
SYNC_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class Vfs(ctypes.Structure):
    """sqlite3_vfs, as far as it is needed here: https://sqlite.org/c3ref/vfs.html"""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("app_data", ctypes.c_void_p),
        ("open", OPEN),
        ("others", ctypes.c_void_p * 14),
    )


class NoSqlite(Exception):
    """This Python carries SQLite inside itself, out of reach."""


class CountingDisk:
    """Keep a reference for as long as SQLite is used."""

    def __init__(self, count_file: Path, delay: float) -> None:
        count_file.write_bytes(COUNT.pack(0))
        with count_file.open("r+b") as file:
            self._count = mmap.mmap(file.fileno(), COUNT.size)
        self._delay = delay
        self._syncs = 0
        self._tables: dict[int, ctypes.Array[ctypes.c_void_p]] = {}
        self._callbacks: list[object] = []

    def install(self) -> None:
        sqlite = library()
        sqlite.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
        found = sqlite.sqlite3_vfs_find(None)
        self._vfs = Vfs.from_buffer_copy(found.contents)
        self._vfs.name = b"counting"
        self._open = found.contents.open
        self._vfs.open = OPEN(self._opened)
        if sqlite.sqlite3_vfs_register(ctypes.byref(self._vfs), 1):
            raise NoSqlite("SQLite does not take another VFS")

    def _opened(self, vfs: int, name: int, file: int, flags: int, out: ctypes.Array[ctypes.c_int]) -> int:
        code: int = self._open(vfs, name, file, flags, out)
        methods = ctypes.c_void_p.from_address(file)
        if methods.value:
            methods.value = self._table_for(methods.value)
        return code

    def _table_for(self, original: int) -> int:
        """The file's own functions, but for the sync; one table for each kind of file."""
        if original not in self._tables:
            table = (ctypes.c_void_p * (IO_METHODS + 1)).from_buffer_copy(
                ctypes.string_at(original, ctypes.sizeof(ctypes.c_void_p) * (IO_METHODS + 1))
            )
            sync = SYNC_CALL(table[SYNC] or 0)

            def counted(file: int, flags: int) -> int:
                return self.syncing() or sync(file, flags)

            callback = SYNC_CALL(counted)
            self._callbacks.append(callback)
            table[SYNC] = ctypes.cast(callback, ctypes.c_void_p).value
            self._tables[original] = table
        return ctypes.addressof(self._tables[original])

    def syncing(self) -> int:
        """What SQLite is told of a sync that is not even tried; 0: it is."""
        self._syncs += 1
        COUNT.pack_into(self._count, 0, self._syncs)
        if self._delay:
            time.sleep(self._delay)
        return 0


def library() -> ctypes.CDLL:
    """SQLite as `sqlite3` uses it: found through the module that is linked with it."""
    try:
        sqlite = ctypes.CDLL(_sqlite3.__file__)
        sqlite.sqlite3_vfs_find  # noqa: B018  # AttributeError where it is not to be seen
    except (AttributeError, OSError) as error:
        raise NoSqlite(f"this Python's SQLite cannot be reached: {error}") from error
    return sqlite


def read_count(count_file: Path) -> int:
    count: int = COUNT.unpack(count_file.read_bytes())[0]
    return count


def main() -> None:
    count_file, milliseconds, *arguments = sys.argv[1:]
    disk = CountingDisk(Path(count_file), float(milliseconds) / 1000)
    disk.install()
    from daemon.cli import main as mcfd  # noqa: PLC0415  # after its disk

    sys.argv = ["mcfd", *arguments]
    mcfd()


if __name__ == "__main__":
    main()
