"""Row 18: the daemon on a core at a quarter of its speed, and the processor time that a certification takes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import ROOT
from bench.figures import Row, median
from bench.rows.lines import sold, wear_in
from bench.shop.shops import PACED, Bench, running

SIZES = (("18a", 1, 50), ("18b", 10, 20), ("18c", 100, 5))
SHARE = 0.75
LOOP = 200_000
TRIES = 7


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
    """The daemon alone on the last core, which somebody else takes three quarters of; how much longer a loop takes there."""
    mine, slow = set(cores[:-1]), cores[-1]
    if not mine:
        raise IndexError("one core only")
    threads = [int(task.name) for task in Path(f"/proc/{bench.shop.pid}/task").iterdir()]
    machines = [machine.pid for machine in bench.machines]
    for task in [*threads, *machines, 0]:
        os.sched_setaffinity(task, {slow} if task in threads else mine)
    command = [sys.executable, "-m", "bench.shop.slow_core", str(slow), str(SHARE)]
    alone = _loop(slow, mine)
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "ready\n":
                raise OSError("no right to run ahead of others")
            yield _loop(slow, mine) / alone
        finally:
            process.communicate("")
            for task in [*threads, *machines, 0]:
                os.sched_setaffinity(task, cores)


def _loop(core: int, mine: set[int]) -> float:
    """Seconds that a loop takes on that core."""
    os.sched_setaffinity(0, {core})
    times = []
    for _ in range(TRIES):
        began = time.perf_counter()
        for _ in range(LOOP):
            pass
        times.append(time.perf_counter() - began)
    os.sched_setaffinity(0, mine)
    return median(times)
