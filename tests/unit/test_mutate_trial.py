"""When `make mutate` says that a mistake was found: a busy box is no test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from mutate.mistakes import Mistake
from mutate.trial import Worker
from mutate.warm import ended

MISTAKE = Mistake("x.py", 1, 0, 1, "y", "x → y")


class Scripted(Worker):
    """Ends as it is told, instead of running tests; without the mistake each passes but those that are broken."""

    def __init__(self, *ends: str, broken: Sequence[str] = ()) -> None:
        self._seconds = {"long": 13.95, "longer": 40.0}
        self._sound, self._unsound = set(), set()
        self._ends = list(ends)
        self._broken = broken
        self.asked: list[tuple[str, ...]] = []

    def _order(self, mistake: Mistake | None, tests: Sequence[str]) -> tuple[str, str]:
        if mistake is None:
            return ("failed" if tests[0] in self._broken else "passed"), tests[0]
        self.asked.append(tuple(tests))
        return self._ends.pop(0), tests[0]


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        (["passed"], "survives"),
        (["failed", "failed"], "found"),
        (["late", "late"], "hangs"),
        (["failed", "late"], "found"),
        (["failed", "passed", "passed"], "survives"),
        (["late", "passed", "passed"], "survives"),
        (["late", "passed", "failed", "failed"], "found"),
    ],
)
def test_a_mistake_is_found_by_a_test_that_sees_it_twice(ends: list[str], outcome: str) -> None:
    """One that fails, or is not over in time, only once has seen the box; it is not asked again, and the others are."""
    worker = Scripted(*ends)
    tried = worker.tried(MISTAKE, ["a", "b"], is_run_at_import=False)
    assert (tried.outcome, worker._ends) == (outcome, [])
    if "passed" in ends[1:]:
        assert worker.asked[2] == ("b",)


def test_a_test_that_fails_without_the_mistake_has_seen_nothing() -> None:
    """Nor has it for any later one."""
    worker = Scripted("failed", "passed", "passed", broken=["a"])
    for _ in range(2):
        assert worker.tried(MISTAKE, ["a", "b"], is_run_at_import=False).outcome == "survives"
    assert worker.asked == [("a", "b"), ("b",), ("b",)]


def test_a_name_that_is_half_written_is_no_test(tmp_path: Path) -> None:
    """Of the two processes one writes which test runs while the other reads it: found when a whole run ended with a KeyError."""
    running = tmp_path / "running"
    running.write_text("tests/test_x.py::test_shor")
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])
    assert ended(process.pid, running, {"tests/test_x.py::test_short": 60.0}) == 1
    process.wait()


def test_a_long_test_does_not_keep_those_after_it_out_of_a_look() -> None:
    """The looks take 15 and 60 seconds of tests: what does not fit into what is left of one is left to the next, and what comes after it is taken."""
    worker = Scripted("passed", "passed")
    tests = ["a", "long", "longer", "b", *(f"c{at}" for at in range(20))]
    worker.tried(MISTAKE, tests, is_run_at_import=False)
    assert worker.asked == [("a", "long", "b", *tests[4:12]), ("longer", *tests[12:])]
