"""Stands for Python where pytest-xdist starts a worker: `forked_worker.py SOCKET ARGUMENTS…`. The worker is a fork of a process that has
imported and collected (`support.collected`), on this process' own input and outputs; this one waits for its end. Without a fork, it becomes
the Python that was asked for."""

import os
import select
import socket
import sys


def forked(at: str) -> int:
    """Its number; 0: there is none."""
    with socket.socket(socket.AF_UNIX) as collected:
        try:
            collected.connect(at)
            socket.send_fds(collected, [b"."], [0, 1, 2])
            return int(collected.recv(20) or 0)
        except OSError:
            return 0


if worker := forked(sys.argv[1]):
    looks = select.poll()
    try:
        looks.register(os.pidfd_open(worker), select.POLLIN)
        looks.poll()
    except ProcessLookupError:  # it has ended, and no other process waits for it
        pass
else:
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])  # noqa: S606  with its arguments as they are
