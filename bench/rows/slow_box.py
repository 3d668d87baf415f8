"""Rows 18a to c: the daemon on a core at a quarter of its speed.

Where nothing can be slowed down (no right to run ahead of others, one core, or a host that leaves no steady share), the figure is reckoned from
the same core at its own speed: line + 4 × what the invoice took beside it, as if all of that were the processor's. The note says which it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import ROOT
from bench.figures import Row, median
from bench.rows.lines import sold, wear_in
from bench.shop.processor import AHEAD, AS_USUAL
from bench.shop.shops import PACED, Bench, running

SIZES = (("18a", 1, 40), ("18b", 10, 15), ("18c", 100, 3))
TIMES, TOLERATED = 4.0, 0.2
"""A loop takes so many times as long, more or less."""
GUESSES = 24
STEADY = 0.7
"""How much of what a guess was wrong by goes into the next: a single look is wrong by a fifth, on a host with other guests."""
LOOP = 100_000
TRIES = 11
"""Less than a second of both: the kernel takes 5 % of each second from those that run ahead of all."""


def slow_box() -> Iterator[Row]:
    cores = sorted(os.sched_getaffinity(0))
    with running(1, *PACED) as bench:
        wear_in(bench)
        with ExitStack() as braked:
            try:
                factor, why = braked.enter_context(_slowed(bench, cores)), ""
            except (OSError, IndexError) as error:
                factor, why = 0.0, str(error)
            for row in sold(bench, SIZES):
                yield _braked(row, factor) if factor else _reckoned(row, why)


def _braked(row: Row, factor: float) -> Row:
    return replace(row, note=f"a loop takes {factor:.1f} times as long; {row.note}")


def _reckoned(row: Row, why: str) -> Row:
    assert row.value is not None
    note = f"reckoned, {TIMES:g} × what is beside the line at full speed ({why}); {row.note}"
    return replace(row, value=1 + TIMES * (row.value - 1), note=note, detail={**row.detail, "at_full_speed": row.value})


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
            for thread in threads:  # what else runs on the core is not to be measured
                os.sched_setscheduler(thread, *AHEAD)
            yield _regulated(brake, partial(_loop, slow, mine))
        finally:
            brake.communicate("")
            for thread in threads:
                os.sched_setscheduler(thread, *AS_USUAL)
            for task in [*threads, *machines, 0]:
                os.sched_setaffinity(task, cores)


def _regulated(brake: subprocess.Popen[str], loop: Callable[[], float]) -> float:
    """Finds the share that makes the loop take `TIMES` as long: what is left to the loop is changed by what it took too long, time and again. Halving
    would never come back from a side that one wrong look has chosen."""
    assert brake.stdin is not None
    assert brake.stdout is not None
    alone = loop()
    left = 1 / TIMES
    for _ in range(GUESSES):
        print(1 - left, file=brake.stdin, flush=True)
        brake.stdout.readline()
        times = loop() / alone
        if abs(times - TIMES) <= TOLERATED:
            return times
        left = min(left * (times / TIMES) ** STEADY, 1.0)
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
