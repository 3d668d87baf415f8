"""SQLite's way to the disk with functions of a test in front: a copy of one of its VFS, whose files have other methods.

Nothing of the daemon is changed, it needs no compiler, and it sits exactly where SQLite writes, and where it asks for durability (the WAL at a
commit, WAL and file at a checkpoint).
"""

import _sqlite3
import ctypes
import sqlite3
from typing import Any


class Vfs(ctypes.Structure):
    """sqlite3_vfs: https://sqlite.org/c3ref/vfs.html"""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("version", "file_size", "longest_path")),
        *((name, ctypes.c_void_p) for name in ("next", "name", "data", "open", *(f"other_{at}" for at in range(15)))),
    )


class Methods(ctypes.Structure):
    """sqlite3_io_methods, of the third version."""

    _fields_ = (
        ("version", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("close", "read", "write", "truncate", "sync")),
        *((f"other_{at}", ctypes.c_void_p) for at in range(13)),
    )


_File, _Long = ctypes.c_void_p, ctypes.c_int64
Open = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _File, ctypes.c_int, ctypes.c_void_p)
Close = ctypes.CFUNCTYPE(ctypes.c_int, _File)
WriteAt = ctypes.CFUNCTYPE(ctypes.c_int, _File, ctypes.c_void_p, ctypes.c_int, _Long)
Truncate = ctypes.CFUNCTYPE(ctypes.c_int, _File, _Long)
Sync = ctypes.CFUNCTYPE(ctypes.c_int, _File, ctypes.c_int)


class PatchedVfs:
    """Keep a reference for as long as SQLite is used."""

    def __init__(self, usual: bytes | None = None) -> None:
        """`usual`: the name of the VFS that is copied, else the default one."""
        self.library = ctypes.CDLL(_sqlite3.__file__)  # whatever SQLite Python itself uses
        self.library.sqlite3_vfs_find.restype = ctypes.c_void_p
        self.library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        self.library.sqlite3_vfs_register.argtypes = [ctypes.c_void_p, ctypes.c_int]
        sqlite3.connect(":memory:").close()  # SQLite is initialised by the first connection
        self.before, self.usual = self.library.sqlite3_vfs_find(None), self.library.sqlite3_vfs_find(usual)
        self._vfs = Vfs.from_buffer_copy(Vfs.from_address(self.usual))
        self.own = ctypes.addressof(self._vfs)
        self._usual_open = Open(self._vfs.open)
        self._buffers: list[Any] = [ctypes.create_string_buffer(b"patched")]
        self._vfs.name = ctypes.addressof(self._buffers[0])
        self._vfs.open = self.pointer(Open(self._open))
        self._methods: dict[int, Methods] = {}

    def register(self, vfs: int) -> None:
        """From now on that one (`own`, `usual` or `before`) is the default."""
        self.library.sqlite3_vfs_register(vfs, 1)

    def pointer(self, function: Any) -> int | None:
        self._buffers.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value

    def is_patched(self, path: bytes, file: int, flags: int) -> bool:  # noqa: ARG002  for those that override it
        """Whether a file that was opened, at `path` if it has a name, gets other methods."""
        return True

    def patch(self, methods: Methods) -> None:
        """Puts functions of ours (`pointer`) in the place of the usual ones."""
        raise NotImplementedError  # each file system of the tests has its own

    def _open(self, _: int, name: int | None, file: int, flags: int, flags_out: int) -> int:
        path = ctypes.string_at(name) if name else b""
        done: int = self._usual_open(self.usual, name, file, flags, flags_out)
        pointer = ctypes.c_void_p.from_address(file)
        if done == 0 and pointer.value is not None and self.is_patched(path, file, flags):
            pointer.value = ctypes.addressof(self._patched(pointer.value))
        return done

    def _patched(self, usual: int) -> Methods:
        """SQLite has a table of methods for each way of locking."""
        if usual not in self._methods:
            self._methods[usual] = Methods.from_buffer_copy(Methods.from_address(usual))
            self.patch(self._methods[usual])
        return self._methods[usual]
