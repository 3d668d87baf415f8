"""The lock of a ledger, and the mark of its last acknowledged commit.

One process writes a ledger: it has advisory locks on a lock file and on the ledger, which the kernel releases when the
process ends. The lock file is found by the ledger's real path, through any symbolic link; the lock on the ledger itself
is for other hard links.

The mark is a small file with the last commit whose callers got their answer. If the ledger has fewer, acknowledged
writes are lost (after a flipped bit in the WAL, SQLite silently ignores the rest). It is written after each commit and
never synced, so nothing waits for it. After a power cut it may be behind, never ahead. Its name has the ledger's id and
epoch, so a restored ledger has another one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import zlib
from pathlib import Path
from typing import NamedTuple

from common.files import read_file, real_path
from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerInUse, LedgerUnusable
from daemon.store.sqlite.disk_failure import file_failed

PATIENCE = 5.0
"""Seconds for a command that has the ledger to end."""
LOOK_AGAIN = 0.02
_COMMAND = "command"
_LONGEST = 4096
SUFFIX = ".commits"


class LedgerLock:
    """Locked from `acquire` to `release`. The lock file stays, or two daemons could lock two different ones."""

    def __init__(self, *descriptors: int) -> None:
        self._descriptors = descriptors

    @classmethod
    def acquire(cls, ledger: Path, *, control: Path | None = None, is_command: bool = False) -> LedgerLock:
        """LedgerInUse, with its process id, if a daemon has the lock, or a command still has it after `PATIENCE`.
        `control`: the daemon's socket, for commands."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return cls._acquire(ledger, _COMMAND if is_command else str(control or ""))
            except LedgerInUse as error:
                if not error.is_command or time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_AGAIN)

    @classmethod
    def _acquire(cls, ledger: Path, word: str) -> LedgerLock:
        path = lock_path(ledger)
        try:
            beside = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o640)
        except OSError as error:
            raise LedgerUnusable(Text("{path} cannot be written ({why})", path=path, why=reason(error))) from error
        opened = [beside]
        try:
            fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError, PermissionError):  # the open itself reports it
                opened.append(os.open(real_path(ledger), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
                fcntl.flock(opened[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            found = os.read(beside, _LONGEST).decode("utf-8", "replace") if opened == [beside] else ""
            for descriptor in opened:
                os.close(descriptor)
            process, _, holder = found.rstrip("\n").partition("\n")
            control = Path(holder) if holder.startswith("/") else None
            raise LedgerInUse(ledger, process, control, is_command=holder == _COMMAND) from error
        with contextlib.suppress(OSError):  # a full disk is reported by the next write, in better words
            os.ftruncate(beside, 0)
            os.write(beside, f"{os.getpid()}\n{word}\n".encode())
        return cls(*opened)

    def release(self) -> None:
        """Call it after the ledger is closed: closing a descriptor of an open ledger would drop SQLite's own locks."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = ()


def lock_path(ledger: Path) -> Path:
    real = real_path(ledger)
    return real.with_name(real.name + ".lock")


class MarkRow(NamedTuple):
    name: str
    """`<ledger id>.<epoch>`; empty of a ledger that has no id yet"""
    number: int

    @property
    def ledger_id(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def epoch(self) -> int:
        return int(self.name.rpartition(".")[2] or 0)


def mark_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + SUFFIX)


def read_mark(ledger: Path) -> MarkRow | None:
    """None when there is none, or none that can be read."""
    try:
        text, _, check = read_file(mark_path(ledger)).rstrip(b"\n").rpartition(b" ")
        name, _, number = text.decode("ascii").rpartition(" ")
        return MarkRow(name, int(number)) if int(check, 16) == zlib.crc32(text) else None
    except (OSError, ValueError):
        return None


class CommitMark:
    """The mark of one open ledger. A full disk is noticed by the ledger's own writes."""

    def __init__(self, ledger: Path, name: str) -> None:
        self._name = name
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            self._descriptor = os.open(
                mark_path(ledger), os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, 0o640
            )

    def write(self, number: int) -> None:
        """Always as long, in one write of less than a sector."""
        if self._descriptor is not None:
            text = f"{self._name} {number:020}".encode("ascii")
            try:
                os.pwrite(self._descriptor, b"%b %08x\n" % (text, zlib.crc32(text)), 0)
            except OSError as error:
                file_failed(error, is_sync=False)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
