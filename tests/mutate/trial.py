"""Mistakes tried, from the side of `make mutate`: a warm pytest of its own for each worker (`mutate.warm`), and a cold one where the mistake
stands outside of functions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from mutate.contexts import function_of
from mutate.mistakes import Mistake
from mutate.spoiled import TREE, told
from mutate.touched import options
from mutate.warm import ANSWERS, ORDERS, START_SECONDS

Outcome = Literal["found", "hangs", "survives"]
FIRST_LOOK, SECOND_LOOK = 15.0, 60.0
"""Seconds that the tests of each take when nothing is wrong; the second one is for what the first lets through."""
NO_TEST_RAN = (4, 5)
PATIENCE = 20.0
"""Seconds that a test has beyond five times what it takes; more is a hang, on a busy box too."""


@dataclass(frozen=True)
class Tried:
    mistake: Mistake
    outcome: Outcome
    seconds: float
    tests: int
    by: str = ""

    @property
    def is_found(self) -> bool:
        return self.outcome in ("found", "hangs")


class Worker:
    """One warm pytest, which takes one trial at a time."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._seconds = seconds
        self._sound: set[str] = set()
        self._unsound: set[str] = set()
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-s",
            "-x",
            "-p",
            "mutate.warm",
            "-p",
            "no:cacheprovider",
            *options(),
        ]
        environment = {**_environment(None), ORDERS: str(theirs_in), ANSWERS: str(theirs_out)}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
        self._process = subprocess.Popen(
            command, cwd=TREE, env=environment, pass_fds=(theirs_in, theirs_out), stdout=self._log, stderr=self._log
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._orders, self._answers = os.fdopen(ours_out, "w"), os.fdopen(ours_in)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._process.wait()
        self._answers.close()
        self._log.close()

    def tried(self, mistake: Mistake, tests: Sequence[str], *, is_run_at_import: bool) -> Tried:
        """`tests` are functions, the closest first. What is computed at the import of a module is computed without the mistake in a warm
        process, so that for `is_run_at_import` a cold one has the last word."""
        began = time.monotonic()
        first = self._within(tests, FIRST_LOOK)
        second = self._within([each for each in tests if each not in first], SECOND_LOOK)
        for look, is_cold_last in ((first, is_run_at_import), (second, False)):
            outcome, by = self._look(mistake, look, is_cold_last=is_cold_last)
            if outcome != "survives":
                break
        return Tried(mistake, outcome, time.monotonic() - began, len(first) + len(second), by)

    def _within(self, tests: Sequence[str], seconds: float) -> list[str]:
        """The first of them that take no longer together, without those that are too long for what is left; one at least. Those of one file stay
        together."""
        chosen: list[str] = []
        left = seconds
        for each in tests:
            takes = self._seconds.get(each, 0.1)
            if takes <= left or not chosen:
                chosen.append(each)
                left -= takes
        files = list(dict.fromkeys(each.partition("::")[0] for each in chosen))
        return sorted(chosen, key=lambda each: files.index(each.partition("::")[0]))

    def _look(self, mistake: Mistake, tests: Sequence[str], *, is_cold_last: bool) -> tuple[Outcome, str]:
        """A test counts as having seen it when it passes without the mistake, and fails with it a second time too, or is not over in time a
        second time: on a busy box some fail now and then."""
        while left := [each for each in tests if each not in self._unsound]:
            end, by = self._order(mistake, left)
            if end == "cold" or (end == "passed" and is_cold_last):
                end, by = self._cold(mistake, left)
            if end == "passed":
                return "survives", ""
            test = function_of(by)
            if test not in left or (self._is_sound(test) and self._fails_again(mistake, test)):
                return ("hangs" if end == "late" else "found"), by
            self._unsound.add(test)
        return "survives", ""

    def _is_sound(self, test: str) -> bool:
        if test not in self._sound | self._unsound:
            passes = self._order(None, [test])[0] == "passed"
            (self._sound if passes else self._unsound).add(test)
        return test in self._sound

    def _fails_again(self, mistake: Mistake, test: str) -> bool:
        return self._order(mistake, [test])[0] != "passed"

    def _limit(self, test: str) -> float:
        return PATIENCE + 5 * self._seconds.get(test, 0.1)

    def _order(self, mistake: Mistake | None, tests: Sequence[str]) -> tuple[str, str]:
        told_of = asdict(mistake) if mistake else None
        self._orders.write(
            json.dumps({"mistake": told_of, "tests": [(each, self._limit(each)) for each in tests]}) + "\n"
        )
        self._orders.flush()
        line = self._answers.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            raise SystemExit(f"mutate: pytest ended\n{self._log.read().decode()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer["end"], answer["by"]

    def _cold(self, mistake: Mistake | None, tests: Sequence[str]) -> tuple[str, str]:
        with tempfile.TemporaryDirectory(prefix="mcfd-mutate-") as folder:
            listed = Path(folder, "tests")
            listed.write_text("\n".join(tests) + "\n")
            environment = {**_environment(mistake), "TMPDIR": folder}
            plugins = [*(("-p", "mutate.spoiled") if mistake else ()), "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", "pytest", "-q", "-x", *plugins, f"@{listed}"]
            process = subprocess.Popen(
                command,
                cwd=TREE,
                env=environment,
                text=True,
                start_new_session=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            try:
                said, _ = process.communicate(timeout=START_SECONDS + sum(map(self._limit, tests)))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return "late", ""
        if process.returncode in NO_TEST_RAN:
            if mistake is None:
                raise SystemExit(f"mutate: no test ran\n{said[-3000:]}")
            self._cold(None, tests)  # with the mistake they could not even be collected; without it they can
        failed = [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return (
            ("passed", "") if process.returncode == 0 else ("failed", failed[0].split()[1] if failed else "the start")
        )


def _environment(mistake: Mistake | None) -> dict[str, str]:
    return {
        **os.environ,
        **told(mistake),
        "PYTHONPATH": str(TREE / "tests"),
        "HYPOTHESIS_STORAGE_DIRECTORY": "/dev/null/none",
    }
