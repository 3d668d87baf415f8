"""Takes most of a core away from whoever else is on it, in slices far shorter than what anybody there does at a time.

    python -m bench.shop.slow_core CORE

A cgroup's quota is given out by the millisecond, and looked at when the kernel's clock ticks: a daemon that works for a tenth of a millisecond
and then waits for its line would never meet it. This one runs ahead of everything (SCHED_FIFO) for a share of each 200 µs, so whatever takes
longer than that takes so much longer as on a core of that speed; its caches are the big core's. Which share that is, is told on stdin, a
line each, answered when it holds: timers and switches take theirs as well, so somebody has to look how long things really take
(bench/rows/slow_box.py). Ends with its stdin.
"""

from __future__ import annotations

import os
import select
import sys
import time

PERIOD = 200e-6
"""Seconds; the shortest sleep that a virtual machine keeps is about 60 µs."""


AHEAD = 2
"""Of what is to be slowed down, which runs ahead of all else on the core (1)."""
TURNS = 512
"""Between two looks at stdin: a tenth of a second."""


def main(core: int) -> None:
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(AHEAD))
    print("ready", flush=True)
    while line := sys.stdin.readline():
        print("held", flush=True)
        _hold(float(line))


def _hold(share: float) -> None:
    """Until something is on stdin."""
    clock = time.perf_counter
    began, taken, turns = clock(), 0.0, 0
    while turns % TURNS or not select.select([sys.stdin], [], [], 0)[0]:
        woken = clock()
        until = woken + min(max(share * (woken - began + PERIOD) - taken, 0.0), 4 * PERIOD)
        while clock() < until:
            pass
        taken += clock() - woken
        turns += 1
        time.sleep((1 - share) * PERIOD / 2)


if __name__ == "__main__":
    main(int(sys.argv[1]))
