"""Takes most of a core away from whoever else is on it, in slices far shorter than what anybody there does at a time.

    python -m bench.shop.slow_core CORE SHARE

A cgroup's quota is given out by the millisecond, and looked at when the kernel's clock ticks: a daemon that works for a tenth of a millisecond
and then waits for its line would never meet it. This one runs ahead of everything (SCHED_FIFO) for `SHARE` of each 200 µs, so whatever takes
longer than that takes so much longer as on a core of that speed; its caches are the big core's, its context switches are paid for. Ends with
its stdin.
"""

from __future__ import annotations

import os
import select
import sys
import time

PERIOD = 200e-6
"""Seconds; the shortest sleep that a virtual machine keeps is about 60 µs."""


def main(core: int, share: float) -> None:
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print("ready", flush=True)
    clock = time.perf_counter
    began, taken, turns = clock(), 0.0, 0
    while True:
        woken = clock()
        until = woken + min(max(share * (woken - began + PERIOD) - taken, 0.0), 4 * PERIOD)
        while clock() < until:
            pass
        taken += clock() - woken
        turns += 1
        if turns % 512 == 0 and select.select([sys.stdin], [], [], 0)[0]:
            return
        time.sleep((1 - share) * PERIOD / 2)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
