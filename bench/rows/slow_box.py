"""Row 18: the daemon on a core at a quarter of its speed, and the processor time that a certification takes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import ROOT
from bench.figures import Row, median
from bench.rows.lines import sold, wear_in
from bench.shop.shops import PACED, Bench, running

SIZES = (("18a", 1, 50), ("18b", 10, 20), ("18c", 100, 5))
TIMES, TOLERATED = 4.0, 0.2
"""A loop takes so many times as long, more or less."""
GUESSES = 12
LOOP = 100_000
TRIES = 11
"""Less than a second of both: the kernel takes 5 % of each second from those that run ahead of all."""
AHEAD = (os.SCHED_FIFO, os.sched_param(1))
"""Of what else runs on the core: that is not to be measured."""
AS_USUAL = (os.SCHED_OTHER, os.sched_param(0))


def slow_box() -> Iterator[Row]:
    cores = sorted(os.sched_getaffinity(0))
    with running(1, *PACED) as bench:
        wear_in(bench)
        (quick,) = sold(bench, (("18d", 1, 60),), walk_in=True)
        yield Row("18d", quick.detail["busy_ms"], f"walk-in customer, {quick.note}", dict(quick.detail))
        try:
            with _slowed(bench, cores) as factor:
                for row in sold(bench, SIZES, walk_in=True):
                    yield Row(row.row, row.value, f"a loop takes {factor:.1f} times as long; {row.note}", row.detail)
        except (OSError, IndexError) as error:
            for number, _, _ in SIZES:
                yield Row(number, None, f"nothing can be slowed down here: {error}")


@contextmanager
def _slowed(bench: Bench, cores: list[int]) -> Iterator[float]:
    """The daemon alone on the last core, of which somebody else takes so much that a loop takes `TIMES` as long; how long it really takes."""
    mine, slow = set(cores[:-1]), cores[-1]
    if not mine:
        raise IndexError("one core only")
    threads = [int(task.name) for task in Path(f"/proc/{bench.shop.pid}/task").iterdir()]
    machines = [machine.pid for machine in bench.machines]
    command = [sys.executable, "-m", "bench.shop.slow_core", str(slow)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as brake:
        assert brake.stdout is not None
        try:
            if brake.stdout.readline() != "ready\n":
                raise OSError("no right to run ahead of others")
            for task in [*threads, *machines, 0]:
                os.sched_setaffinity(task, {slow} if task in threads else mine)
            for thread in threads:
                os.sched_setscheduler(thread, *AHEAD)
            yield _regulated(brake, partial(_loop, slow, mine))
        finally:
            brake.communicate("")
            for thread in threads:
                os.sched_setscheduler(thread, *AS_USUAL)
            for task in [*threads, *machines, 0]:
                os.sched_setaffinity(task, cores)


def _regulated(brake: subprocess.Popen[str], loop: Callable[[], float]) -> float:
    """Finds the share that makes the loop take `TIMES` as long, by halves."""
    assert brake.stdin is not None
    assert brake.stdout is not None
    alone = loop()
    least, most = 0.0, 1.0
    for _ in range(GUESSES):
        share = (least + most) / 2
        print(share, file=brake.stdin, flush=True)
        brake.stdout.readline()
        times = loop() / alone
        if abs(times - TIMES) <= TOLERATED:
            return times
        least, most = (share, most) if times < TIMES else (least, share)
    raise OSError(f"a loop cannot be made to take {TIMES:g} times as long, last {times:.1f}")


def _loop(core: int, mine: set[int]) -> float:
    """Seconds that a loop takes on that core, ahead of what else runs there."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, *AHEAD)
    times = []
    for _ in range(TRIES):
        began = time.perf_counter()
        for _ in range(LOOP):
            pass
        times.append(time.perf_counter() - began)
    os.sched_setscheduler(0, *AS_USUAL)
    os.sched_setaffinity(0, mine)
    return median(times)
