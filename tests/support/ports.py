"""Ports of the loopback that no other process takes between the question and the start of who is to listen on them."""

import itertools
import os
import random
import socket
from collections.abc import Iterator
from functools import cache

FIRST, LAST = 10_000, 32_767
"""Below what Linux gives to outgoing connections (32 768 to 60 999): one of those, on any address of the loopback, would hold the port
against a server that listens on all of them."""
WORKERS = 16


@cache
def _of(worker: str) -> tuple[range, Iterator[int]]:
    """The suite's workers do not meet; programs beside them begin elsewhere."""
    size = (LAST - FIRST + 1) // WORKERS
    first = FIRST + int(worker.removeprefix("gw")) % WORKERS * size
    start = first + random.randrange(size)
    return range(first, first + size), itertools.cycle((*range(start, first + size), *range(first, start)))


def free_port() -> int:
    """Not given again until all of this worker's have had their turn; OSError when each of them is taken."""
    mine, turns = _of(os.environ.get("PYTEST_XDIST_WORKER", "gw0"))
    for port in itertools.islice(turns, len(mine)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {mine.start} to {mine.stop - 1}")
