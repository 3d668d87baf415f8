"""A bound of time that a busy box does not break."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processor import waited, within

BUSY = "while True: pass"


@pytest.fixture
def crowded() -> Iterator[None]:
    """This process has one processor, and shares it with three others that never rest."""
    had = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(had)})
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(3)]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()
        os.sched_setaffinity(0, had)


def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_what_takes_longer_fails() -> None:
    """Sleep and work count."""
    for spend in (time.sleep, work):
        with pytest.raises(AssertionError, match="without_processor"), within(0.05):
            spend(0.5)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count it")
@pytest.mark.usefixtures("crowded")
def test_waiting_for_a_processor_does_not_count() -> None:
    """Work that takes four times as long beside three others is within what it takes alone, and a little."""
    before = waited(os.getpid())
    with within(0.45):
        work(0.15)
    assert waited(os.getpid()) - before > 0.05


def test_a_process_that_is_gone_has_not_waited() -> None:
    """It may end meanwhile: a stop is among what is measured."""
    child = subprocess.Popen([sys.executable, "-c", BUSY])
    with within(60, child.pid):
        child.kill()
        child.wait()
    assert waited(child.pid) == 0
