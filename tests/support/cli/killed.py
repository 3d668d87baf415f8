"""A command that loses its power: SIGKILL at the n-th time that it opens, makes, moves or removes something."""

import os
import signal
import sys
from typing import Any

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.link", "sqlite3.connect", "tempfile.mkdtemp"}


def at(number: int, within: str) -> None:
    """Counts what concerns paths that begin with `within`; called in the process of the command before its `main`."""
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in EVENTS and str(arguments[0]).startswith((within, f"file://{within}")):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
