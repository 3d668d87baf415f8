"""A command that loses its power, or is stopped: a signal at the n-th time that it opens, makes, syncs, moves or removes something."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.link", "sqlite3.connect", "tempfile.mkdtemp"}


def at(number: int, within: str, by: int = signal.SIGKILL) -> None:
    """Counts what concerns paths that begin with `within`; called in the process of the command before its `main`."""
    seen = 0

    def passed(path: str) -> None:
        nonlocal seen
        if path.startswith((within, f"file://{within}")):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), by)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS:
            passed(str(arguments[1 if event == "os.link" else 0]))

    def fsync(descriptor: int) -> None:
        passed(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    sync, os.fsync = os.fsync, fsync
    sys.addaudithook(hook)
