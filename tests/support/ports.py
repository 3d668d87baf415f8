"""Ports of the loopback that nobody else takes between the question and the start of who is to listen on them."""

from __future__ import annotations

import functools
import itertools
import os
import random
import socket
from collections.abc import Iterator

FIRST, LAST = 10_000, 32_767
"""Below what Linux gives to outgoing connections (32 768 to 60 999): one of those, on any address of the loopback, would hold the port
against a server that listens on all of them."""
WORKERS = 16


def _of_this_process() -> range:
    """The suite's workers do not meet; programs beside them begin elsewhere."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    size = (LAST - FIRST + 1) // WORKERS
    first = FIRST + int(worker) % WORKERS * size
    return range(first, first + size)


@functools.cache
def _turns() -> Iterator[int]:
    """Begun with the first question: workers are forks of one process."""
    mine = _of_this_process()
    start = random.randrange(len(mine))
    return itertools.cycle((*mine[start:], *mine[:start]))


def free_port() -> int:
    """Not given again until all of this worker's have had their turn; OSError when each of them is taken."""
    mine = _of_this_process()
    for port in itertools.islice(_turns(), len(mine)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {mine.start} to {mine.stop - 1}")
