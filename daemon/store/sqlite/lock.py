"""One daemon for one ledger: advisory locks on a file beside it and on the ledger itself, which the kernel drops when their holder dies.

The file beside it is found by the ledger's real path, whatever symbolic link leads there. The lock on the ledger is for its other hard links."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerUnusable
from daemon.store.sqlite.durable import real_path

_PID_DIGITS = 20


class LedgerLock:
    """Held from `acquire` to `unlock` or `release`. The file beside the ledger stays: removing it could let two daemons lock two different ones."""

    def __init__(self, *descriptors: int) -> None:
        self._descriptors = descriptors

    @classmethod
    def acquire(cls, ledger: Path) -> LedgerLock:
        """LedgerUnusable, with the other's process id, when somebody holds it."""
        path = lock_path(ledger)
        try:
            beside = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o640)
        except OSError as error:
            raise LedgerUnusable(Text("{path} cannot be written ({why})", path=path, why=reason(error))) from error
        opened = [beside]
        try:
            fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError, PermissionError):  # whoever opens it says so
                opened.append(os.open(real_path(ledger), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
                fcntl.flock(opened[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(beside, _PID_DIGITS).decode("ascii", "replace").strip() if opened == [beside] else ""
            for descriptor in opened:
                os.close(descriptor)
            raise LedgerUnusable(
                Text(
                    "{ledger} is in use by another mcfd (process {process}); stop that one first",
                    ledger=ledger,
                    process=holder or "?",
                )
            ) from error
        _write_pid(beside)
        return cls(*opened)

    def unlock(self) -> None:
        """Others may have it. Where this process has the ledger open, `release` waits for its close, which drops SQLite's own locks of the file."""
        for descriptor in self._descriptors:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def release(self) -> None:
        """After the ledger is closed."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = ()


def lock_path(ledger: Path) -> Path:
    real = real_path(ledger)
    return real.with_name(real.name + ".lock")


def _write_pid(descriptor: int) -> None:
    """For people. A disk too full for it is told by what comes next, in better words."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        return
