"""How long something took without what a busy box adds: the time that its processes were ready to run and had no processor."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Spent:
    seconds: float = 0.0
    without_processor: float = 0.0
    """Of these seconds, already left out of them; those of several threads added up."""


@contextmanager
def measured(*pids: int) -> Iterator[Spent]:
    """What it takes, known at its end, leaving out what this process and those waited for a processor."""
    watched = (os.getpid(), *pids)
    before, began = [waited(pid) for pid in watched], time.monotonic()
    spent = Spent()
    yield spent
    took = time.monotonic() - began
    spent.without_processor = sum(max(0.0, waited(pid) - had) for pid, had in zip(watched, before, strict=True))
    spent.seconds = max(0.0, took - spent.without_processor)


@contextmanager
def within(seconds: float, *pids: int) -> Iterator[None]:
    """It takes less than that, measured so."""
    with measured(*pids) as spent:
        yield
    assert spent.seconds < seconds, spent


def waited(pid: int) -> float:
    """Seconds that the threads of a process were ready to run and did not; 0 of one that is gone."""
    nanoseconds = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            nanoseconds += int(thread.read_text().split()[1])
    return nanoseconds / 1e9
