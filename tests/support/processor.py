"""How long something took without what a busy box adds: the time that its processes were ready to run and had no processor."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def within(seconds: float, *pids: int) -> Iterator[None]:
    """It takes less time than that, leaving out what this process and those waited for a processor."""
    watched = (os.getpid(), *pids)
    before, began = [waited(pid) for pid in watched], time.monotonic()
    yield
    took = time.monotonic() - began
    without = sum(max(0.0, waited(pid) - had) for pid, had in zip(watched, before, strict=True))
    assert took - without < seconds, f"{took:.2f} s, of them {without:.2f} without a processor"


def waited(pid: int) -> float:
    """Seconds that the threads of a process were ready to run and did not; 0 of one that is gone."""
    nanoseconds = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            nanoseconds += int(thread.read_text().split()[1])
    return nanoseconds / 1e9
