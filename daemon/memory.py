"""The memory of a daemon that has started: what is there now stays, and is touched after long pauses.

Between two commands on the line the daemon sleeps for milliseconds, and finds its caches cold when it wakes: then most of the time
goes into getting at memory. Two things make that cheaper, neither of them needed for anything to work.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Iterator
from pathlib import Path

GC_THRESHOLD = 20_000
"""Objects more than at the last look; Python's own 700 is for small programs."""

HUGE = 2 * 1024 * 1024
MADV_HUGEPAGE = 14
MADV_COLLAPSE = 25
"""Linux 6.1 and newer; an older kernel says no, and everything stays as it was."""

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ 0\s+(?:\[heap\])?\n")


def settle() -> None:
    """The garbage collector no longer goes through what the start has made, and the heap lies in large pages, where the system
    can: then an address is found without a walk through tables that are cold themselves."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    gather_pages()


def gather_pages() -> int:
    """Bytes of our own memory that lie in pages of 2 MiB from now on; it takes them no more than it did before."""
    try:
        madvise = ctypes.CDLL(None).madvise
        maps = Path("/proc/self/maps").read_text()
    except (AttributeError, OSError):
        return 0
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    gathered = 0
    for start, size in _large_parts(maps):
        madvise(start, size, MADV_HUGEPAGE)
        if madvise(start, size, MADV_COLLAPSE) == 0:
            gathered += size
    return gathered


def _large_parts(maps: str) -> Iterator[tuple[int, int]]:
    """Address and size of what of the heap fills whole large pages."""
    for found in _MAPPING.finditer(maps):
        start, end = (int(text, 16) for text in found.groups())
        first, last = -(-start // HUGE) * HUGE, end // HUGE * HUGE
        if last > first:
            yield first, last - first
