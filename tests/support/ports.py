"""Ports of the loopback that nobody else takes between the question and the start of who is to listen on them."""

from __future__ import annotations

import itertools
import os
import random
import socket

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


_mine = _of_this_process()
_next = itertools.cycle((*_mine[(start := random.randrange(len(_mine))) :], *_mine[:start]))


def free_port() -> int:
    """Not given again until all of this worker's have had their turn; OSError when each of them is taken."""
    for port in itertools.islice(_next, len(_mine)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {_mine.start} to {_mine.stop - 1}")
