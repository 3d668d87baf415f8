"""A plugin of pytest: coverage in each worker, where what runs from a test's setup to its teardown counts as touched by that test, also in
tasks, threads and the daemons it starts; and how long each test takes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage
from mutate.daemons import MEASURED
from support.nursery import Nursery


def function_of(nodeid: str) -> str:
    """Without its parameters."""
    return nodeid.partition("[")[0]


class Measuring:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._coverage = Coverage(data_file=folder / "data", data_suffix=True, config_file=folder / "coveragerc")
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        test = function_of(item.nodeid)
        self._coverage.switch_context(test)
        (self._folder / f"test-{os.getpid()}").write_text(test)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._seconds[test] += time.monotonic() - began

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        (self._folder / f"seconds-{os.getpid()}.json").write_text(json.dumps(self._seconds))


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        Nursery.command = (sys.executable, "-m", "mutate.daemons")
        config.pluginmanager.register(Measuring(Path(os.environ[MEASURED])))
