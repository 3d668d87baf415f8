"""One daemon for one ledger: an advisory lock on a file beside it, which the kernel drops when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from daemon.core.errors import LedgerUnusable
from daemon.language import Text
from daemon.language.system import reason

_PID_DIGITS = 20


class LedgerLock:
    """Held from `acquire` to `release`. The file stays: removing it could let two daemons lock two different ones."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, ledger: Path) -> LedgerLock:
        """LedgerUnusable, with the other's process id, when somebody holds it."""
        path = lock_path(ledger)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o640)
        except OSError as error:
            raise LedgerUnusable(Text("{path} cannot be written ({why})", path=path, why=reason(error))) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, _PID_DIGITS).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise LedgerUnusable(
                Text(
                    "{ledger} is in use by another mcfd (process {process}); stop that one first",
                    ledger=ledger,
                    process=holder or "?",
                )
            ) from error
        _write_pid(descriptor)
        return cls(descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def lock_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ".lock")


def _write_pid(descriptor: int) -> None:
    """For people. A disk too full for it is told by what comes next, in better words."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        return
