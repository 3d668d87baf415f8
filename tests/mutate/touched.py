"""Which tests touch which lines, by coverage of one run of the tests that work in the process of pytest.

What a test does in a daemon that it starts is not seen here: the acceptance tests come as a second try, for what the others let through.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from coverage import CoverageData
from mutate.trial import TREE

INSIDE = ("tests/unit", "tests/contract", "tests/integration")
NOT_OF_PYTHON = "tests/integration/package/test_package_*.py"
KEPT = TREE / "build" / "mutate"
ROOMS = ("daemon/core", "daemon/usecases", "daemon/store", "daemon/machines", "bridge", "daemon/upstream", "daemon/api")
MOST = 150
"""Tests for one mistake: where more touch the line, those that touch the fewest lines, which are the closest to it."""

_CONFIG = """
[run]
branch = False
data_file = {data}
source = bridge,daemon,exchange
core = ctrace
"""


def files() -> list[str]:
    """Of the rooms, as paths in the tree; the pages for people and what only documents have tests of another kind."""
    found = [path for room in ROOMS for path in (TREE / room).rglob("*.py")]
    return sorted(str(path.relative_to(TREE)) for path in found if not {"page", "document"} & set(path.parts))


def state() -> str:
    """Of everything that decides which test touches which line."""
    told = hashlib.sha256()
    for name in (*("bridge", "daemon", "exchange", "simulator"), *INSIDE, "tests/support"):
        for path in sorted((TREE / name).rglob("*.py")):
            told.update(path.read_bytes())
    return told.hexdigest()[:16]


class Touched:
    """Measured once for a state of the tree, and kept."""

    def __init__(self) -> None:
        KEPT.mkdir(parents=True, exist_ok=True)
        data = KEPT / f"{state()}.coverage"
        if not data.exists():
            self._measure(data)
        measured = CoverageData(str(data))
        measured.read()
        self._data = measured
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._weight: defaultdict[str, int] = defaultdict(int)
        for name in files():
            lines = measured.contexts_by_lineno(str(TREE / name))
            self._lines[name] = {line: [each for each in contexts if each] for line, contexts in lines.items()}
            for contexts in self._lines[name].values():
                for each in contexts:
                    self._weight[each] += 1

    def _measure(self, data: Path) -> None:
        sys.stdout.write("mutate: measuring which tests touch which lines (once for a state of the tree) …\n")
        sys.stdout.flush()
        config = KEPT / "coveragerc"
        config.write_text(_CONFIG.format(data=data.with_suffix(".half")))
        pytest = ["-m", "pytest", "-q", "-p", "no:xdist", "-p", "mutate.contexts"]
        command = [sys.executable, "-m", "coverage", "run", f"--rcfile={config}", *pytest]
        with (KEPT / "measuring.log").open("wb") as log:
            subprocess.run([*command, *INSIDE, f"--ignore-glob={NOT_OF_PYTHON}"], cwd=TREE, stdout=log, stderr=log, check=False,
                           env={**os.environ, "PYTHONPATH": str(TREE / "tests")})  # fmt: skip
        data.with_suffix(".half").rename(data)

    def tests(self, file: str, line: int) -> list[str]:
        """Files and functions (`tests/…/test_x.py::test_y`) that touch the line, the closest first."""
        contexts = sorted(self._lines.get(file, {}).get(line, []), key=lambda each: self._weight[each])
        return contexts[:MOST]
