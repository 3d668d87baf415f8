"""How a command opens a ledger, as Python's audit events tell it: each time that it does so to write, and whether it has the lock then.

`watch` is called in the process of the command before its `main`."""

import fcntl
import os
import sys
from typing import Any

from support.cli import root_watch

WRITING = os.O_WRONLY | os.O_RDWR


def watch(ledger: str, log: str) -> None:
    """Writes a line to the file `log` for each time: `locked`, or `free`."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    files = (ledger, f"{ledger}-wal", f"{ledger}-shm", f"{ledger}.commits", f"{ledger}.high-water")
    is_busy = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal is_busy
        if is_busy or not _writes(event, arguments, files):
            return
        is_busy = True
        os.write(descriptor, b"locked\n" if _is_locked(f"{ledger}.lock") else b"free\n")
        is_busy = False

    sys.addaudithook(hook)


def watch_as_root(expected: str, ledger: str, log: str) -> None:
    """With `root_watch` beside it."""
    watch(ledger, log)
    root_watch.watch(expected)


def _writes(event: str, arguments: tuple[Any, ...], files: tuple[str, ...]) -> bool:
    if event == "sqlite3.connect":
        path, _, mode = str(arguments[0]).removeprefix("file://").partition("?mode=")
        return path == files[0] and mode != "ro"
    return event == "open" and str(arguments[0]) in files and bool((arguments[2] or 0) & WRITING)


def _is_locked(path: str) -> bool:
    """Not by whom: in a command without a daemon it can be its own lock alone."""
    if not os.path.exists(path):  # noqa: PTH110  no Path in a hook: it opens nothing, and costs less
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
