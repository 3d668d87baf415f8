"""What a power cut leaves: a file system on which only what was synced is sure to be there.

SQLite's own writes and syncs are seen where it makes them, in its VFS (a copy of the usual one with five functions of ours in front); those of
Python where `os.fsync` is called. Of what was written since a file's last sync a cut keeps a drawn part: each write whole, torn at a sector, or
not at all, in any order; of names that were changed since the folder's last sync, the old or the new one. A sync may fail once: what it was for stays
readable until the power goes, and no later sync makes it durable (the kernel takes it for written).
"""

import ctypes
import errno
import os
import random
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from support.sqlite_vfs import Close, Methods, PatchedVfs, Sync, Truncate, WriteAt

SECTOR = 512
_CREATE, _JOURNALS = 0x4, 0x800 | 0x80000
"""Flags of xOpen: may be made; a rollback journal or a WAL, whose name SQLite syncs with it."""


_NO_CHECKPOINT_ON_CLOSE = 1006
"""Of `sqlite3_db_config`."""


class Write(NamedTuple):
    """`content` at `offset`; None: the file was cut off there."""

    offset: int
    content: bytes | None

    def put(self, image: bytearray) -> None:
        if self.content is None:
            del image[self.offset :]
            return
        image.extend(bytes(max(0, self.offset - len(image))))
        image[self.offset : self.offset + len(self.content)] = self.content


class DurableFiles:
    """Of one folder; files by their inode."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.folder = folder
        self._draw = draw
        self._images: dict[int, bytearray] = {}
        self._since: dict[int, list[Write]] = {}
        """Written since the last sync."""
        self._names: dict[str, int] = {}
        self.is_over = False
        """What is written now never was."""
        self._syncs_left = 0
        self._tell: Callable[[], None] = lambda: None
        self._fail: tuple[str, Callable[[], None]] | None = None
        self._is_killed = False
        self._left: dict[str, bytes] | None = None
        """What is on the disk since the power went; what is written and renamed from then on never was."""

    def listing(self) -> dict[str, int]:
        with os.scandir(self.folder) as found:
            return {file.name: file.inode() for file in found if not file.name.endswith(("-shm", ".lock"))}

    def settle(self) -> None:
        """Everything that is there now is durable."""
        self._names = self.listing()
        self._since.clear()
        self._images = {inode: bytearray((self.folder / name).read_bytes()) for name, inode in self._names.items()}

    def wrote(self, inode: int, write: Write) -> None:
        self._since.setdefault(inode, []).append(write)

    def cut_at(self, sync: int, tell: Callable[[], None], *, is_killed: bool = False) -> None:
        """The power goes just before the so many-th sync from now, or the process `is_killed` alone; `tell` is called then. 0: it does not."""
        self._syncs_left, self._tell, self._is_killed = sync, tell, is_killed

    def fail_next(self, what: str, tell: Callable[[], None]) -> None:
        """The next `sync`, or `write` of SQLite, fails; `tell` is called then."""
        self._fail = what, tell

    def fail_nothing(self) -> None:
        self._fail = None

    def fails(self, what: str, inode: int) -> bool:
        """Whether this one does. What was written since the sync before is lost with the power."""
        if self._fail is None or self._fail[0] != what or self.is_cut:
            return False
        self._fail[1]()
        self._fail = None
        if what == "sync":
            self._since.pop(inode, None)
        return True

    @property
    def is_cut(self) -> bool:
        return self._left is not None

    def syncing(self) -> None:
        """A file, or the folder, is about to be synced."""
        self._syncs_left -= 1
        if self._syncs_left == 0 and self._left is None:
            self._left = self._now() if self._is_killed else self._after_cut()
            self._tell()

    def synced(self, inode: int) -> None:
        image = self._images.setdefault(inode, bytearray())
        for write in self._since.pop(inode, ()):
            write.put(image)

    def synced_whole(self, inode: int, content: bytes) -> None:
        self._since.pop(inode, None)
        self._images[inode] = bytearray(content)

    def synced_names(self) -> None:
        self._names = self.listing()

    @contextmanager
    def ending(self, *, power_cut: bool) -> Iterator[None]:
        """Around the end of a process: what is still written meanwhile has never been written. Of one that is killed the kernel has all that was
        written, synced or not."""
        left = (self._left or self._after_cut()) if power_cut else None
        self._left, self._syncs_left = None, 0
        self.is_over = True
        yield
        self.is_over = False
        if left is None:
            return
        for name in self.listing().keys() - left.keys():
            (self.folder / name).unlink()
        for name, content in left.items():
            (self.folder / name).write_bytes(content)
        for shared in self.folder.glob("*-shm"):
            shared.unlink()
        self.settle()

    def _now(self) -> dict[str, bytes]:
        """The kernel has all that was written."""
        return {name: (self.folder / name).read_bytes() for name in self.listing()}

    def _after_cut(self) -> dict[str, bytes]:
        now, left = self.listing(), {}
        for name in sorted(now.keys() | self._names.keys()):
            inode = self._draw.choice((now.get(name), self._names.get(name)))
            if inode is not None:
                left[name] = self._torn(inode)
        return left

    def _torn(self, inode: int) -> bytes:
        image = bytearray(self._images.get(inode, b""))
        for write in self._since.get(inode, ()):
            fate = self._draw.randrange(3)
            if fate == 1 and write.content is not None:
                sectors = self._draw.randrange(len(write.content) // SECTOR + 1)
                write._replace(content=write.content[: sectors * SECTOR]).put(image)
            elif fate:
                write.put(image)
        return bytes(image)


class WatchedVfs(PatchedVfs):
    """SQLite's usual VFS, which tells `files` what is written and what is synced. There is one, registered while it is `watching`."""

    def __init__(self) -> None:
        # One process alone has the ledger: that one asks the kernel for no locks between processes, and keeps what others share in its own memory.
        super().__init__(b"unix-excl")
        self.files: DurableFiles | None = None
        self._inodes: dict[int, int] = {}
        self._new: set[int] = set()
        """Journals that were opened and not synced yet: their first sync is their name's too, whichever process made them (strace shows the folder's fdatasync)."""

    @contextmanager
    def watching(self, files: DurableFiles | None) -> Iterator[None]:
        """None: it stands there silently."""
        self.files = files
        self.register(self.own if files else self.usual)
        try:
            yield
        finally:
            self.register(self.before)
            self.files = None

    def is_patched(self, path: bytes, file: int, flags: int) -> bool:
        if not path or self.files is None:
            return False
        self._inodes[file] = os.stat(path).st_ino  # noqa: PTH116
        if flags & _CREATE and flags & _JOURNALS:
            self._new.add(file)
        return True

    def patch(self, methods: Methods) -> None:
        close, write, truncate = Close(methods.close), WriteAt(methods.write), Truncate(methods.truncate)

        def closed(file: int) -> int:
            self._inodes.pop(file, None)
            self._new.discard(file)
            return int(close(file))

        def written(file: int, content: int, size: int, offset: int) -> int:
            files = self.files
            if files is not None:
                if files.is_over:
                    return 0
                if files.fails("write", self._inodes[file]):
                    return sqlite3.SQLITE_IOERR_WRITE
                files.wrote(self._inodes[file], Write(offset, ctypes.string_at(content, size)))
            return int(write(file, content, size, offset))

        def truncated(file: int, size: int) -> int:
            files = self.files
            if files is not None:
                if files.is_over:
                    return 0
                files.wrote(self._inodes[file], Write(size, None))
            return int(truncate(file, size))

        methods.close = self.pointer(Close(closed))
        methods.write = self.pointer(WriteAt(written))
        methods.truncate = self.pointer(Truncate(truncated))
        methods.sync = self.pointer(Sync(self._synced))

    def _synced(self, file: int, _: int) -> int:
        if self.files is not None and not self.files.is_over:
            self.files.syncing()
            if self.files.fails("sync", self._inodes[file]):
                return sqlite3.SQLITE_IOERR_FSYNC
            self.files.synced(self._inodes[file])
            if file in self._new:
                self._new.discard(file)
                self.files.synced_names()
        return 0

    def close_as_killed(self, connection: sqlite3.Connection) -> None:
        """A killed process does not checkpoint first. Python 3.12 has a name for it (`setconfig`); SQLite's handle is a connection's first field."""
        handle = ctypes.c_void_p.from_address(id(connection) + object.__basicsize__).value
        if handle is not None:
            self.library.sqlite3_db_config(ctypes.c_void_p(handle), _NO_CHECKPOINT_ON_CLOSE, 1, None)
        connection.close()


the_vfs = cache(WatchedVfs)


@contextmanager
def watched(files: DurableFiles) -> Iterator[None]:
    """While it lasts, `files` hears of every write and sync of SQLite, and of every `os.fsync`, in its folder."""
    with pytest.MonkeyPatch.context() as patch, the_vfs().watching(files):
        patch.setattr(os, "fsync", _fsync(files))
        yield


def unwatched() -> AbstractContextManager[None]:
    """The same files, without a notification."""
    return the_vfs().watching(None)


def _fsync(files: DurableFiles) -> Callable[[int], None]:
    def fsync(descriptor: int) -> None:
        files.syncing()
        found = os.fstat(descriptor)
        if files.fails("sync", found.st_ino):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if stat.S_ISDIR(found.st_mode):
            files.synced_names()
        else:
            files.synced_whole(found.st_ino, Path(f"/proc/self/fd/{descriptor}").read_bytes())

    return fsync
