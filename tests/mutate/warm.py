"""A plugin of pytest: the tests are collected once, and each trial is a fork of that process. It takes orders instead of running tests.

    {"mistake":{…}|null,"tests":[[TEST,SECONDS],…]}   →   {"end":"failed"|"passed"|"late"|"cold","by":TEST}

Each test has those seconds, with all its parameters.

A trial ends with everything it started: this process is the parent of what loses its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from mutate.contexts import function_of
from mutate.mistakes import Mistake
from mutate.spoiled import Alive, alive, spoil, told
from support.nursery import Nursery

ORDERS, ANSWERS = "MCFD_MUTATE_ORDERS", "MCFD_MUTATE_ANSWERS"
PASSED, FAILED, COLD = 0, 1, 2
SUBREAPER = 36
START_SECONDS = 60.0
Items = dict[str, list[pytest.Item]]


def pytest_configure() -> None:
    """Before any test is imported: the same examples in each trial, and one that fails is enough."""
    settings.register_profile("mutate", derandomize=True, database=None, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutate")


def pytest_runtestloop(session: pytest.Session) -> bool:
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    items: Items = defaultdict(list)
    for item in session.items:
        items[function_of(item.nodeid)].append(item)
    functions = alive()
    orders, answers = (int(os.environ[name]) for name in (ORDERS, ANSWERS))
    with os.fdopen(orders) as asked, os.fdopen(answers, "w") as answered:
        for line in asked:
            order = json.loads(line)
            mistake = Mistake(**order["mistake"]) if order["mistake"] else None
            limits = dict(order["tests"])
            found = trial(session, [each for name in limits for each in items[name]], mistake, functions, limits)
            answered.write(json.dumps(found) + "\n")
            answered.flush()
    return True


def trial(
    session: pytest.Session,
    items: Sequence[pytest.Item],
    mistake: Mistake | None,
    functions: Alive,
    limits: Mapping[str, float],
) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="mcfd-mutate-"))
    running = folder / "running"
    running.write_text("")
    pid = os.fork()
    if pid == 0:
        run(session, items, mistake, functions, folder)
    try:
        code = ended(pid, running, limits)
        end = {None: "late", PASSED: "passed", COLD: "cold"}.get(code, "failed")
        return {"end": end, "by": running.read_text()}
    finally:
        end_all()
        shutil.rmtree(folder, ignore_errors=True)


def run(
    session: pytest.Session, items: Sequence[pytest.Item], mistake: Mistake | None, functions: Alive, folder: Path
) -> None:
    """In the fork: to its end."""
    code = FAILED
    try:
        os.setsid()
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        if mistake is not None:
            os.environ.update(told(mistake))
            Nursery.command = (sys.executable, "-m", "mutate.daemons")
        is_spoiled = mistake is None or spoil(mistake, functions)
        code = outcome(session, items, folder / "running") if is_spoiled else COLD
    finally:
        os._exit(code)


def outcome(session: pytest.Session, items: Sequence[pytest.Item], running: Path) -> int:
    for at, item in enumerate(items):
        running.write_text(item.nodeid)
        following = items[at + 1] if at + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return FAILED
    return PASSED


def ended(pid: int, running: Path, limits: Mapping[str, float]) -> int | None:
    """Its exit code; None when one of the tests was not over in time."""
    test, deadline = "", time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if (now := function_of(running.read_text())) in limits and now != test:  # not while it is half written
            test, deadline = now, time.monotonic() + limits[now]
        time.sleep(0.005)
    return None


def end_all() -> None:
    """Everything that is below this process, and what it leaves to this process by its end."""
    while below := list(children()):
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.002)


def children() -> Iterator[int]:
    for task in Path("/proc/self/task").iterdir():
        yield from map(int, (task / "children").read_text().split())
