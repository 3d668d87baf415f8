"""Which tests touch which lines, and how long they take, by one run of the tests under coverage (`mutate.contexts`)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from coverage import CoverageData
from mutate.daemons import MEASURED
from mutate.spoiled import TREE

TRIED = ("tests/unit", "tests/contract", "tests/integration", "tests/simulation", "tests/acceptance")
LEFT_OUT = (
    "tests/integration/package/*", "tests/acceptance/page/*", "*/test_demo.py", "*/test_readme_commands.py",
    "*/test_schemathesis.py",
)  # fmt: skip
"""Not of Python's lines, or in a browser, or a daemon that is started from outside, or with another draw each time."""
KEPT = TREE / "build" / "mutate"
ROOMS = ("daemon/core", "daemon/usecases", "daemon/store", "daemon/machines", "bridge", "daemon/upstream", "daemon/api")

_CONFIG = """
[run]
branch = False
source = bridge,daemon,exchange
core = ctrace
disable_warnings = module-not-measured,no-data-collected,already-imported,module-not-imported
"""


def files() -> list[str]:
    """Of the rooms, as paths in the tree; the pages for people and what only documents have tests of another kind."""
    found = [path for room in ROOMS for path in (TREE / room).rglob("*.py")]
    return sorted(str(path.relative_to(TREE)) for path in found if not {"page", "document"} & set(path.parts))


def state() -> str:
    """Of everything that decides which test touches which line."""
    told = hashlib.sha256()
    for name in ("bridge", "daemon", "exchange", "simulator", *TRIED, "tests/support"):
        for path in sorted((TREE / name).rglob("*.py")):
            told.update(path.read_bytes())
    return told.hexdigest()[:16]


def options() -> list[str]:
    """Of pytest, for the tests that mistakes are tried against."""
    return [*TRIED, *(f"--ignore-glob={each}" for each in LEFT_OUT)]


class Touched:
    """Measured once for a state of the tree, and kept."""

    def __init__(self, workers: int) -> None:
        kept = KEPT / state()
        if not (kept / "whole").exists():
            measure(kept, workers)
        measured = CoverageData(str(kept / "whole"))
        measured.read()
        self.seconds: Counter[str] = Counter()
        for part in kept.glob("seconds-*.json"):
            self.seconds.update(json.loads(part.read_text()))
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._at_import: set[tuple[str, int]] = set()
        self._weight: Counter[str] = Counter()
        self._in: dict[str, Counter[str]] = {}
        for name in files():
            lines = measured.contexts_by_lineno(str(TREE / name))
            self._at_import |= {(name, line) for line, contexts in lines.items() if "" in contexts}
            self._lines[name] = {line: [each for each in contexts if each] for line, contexts in lines.items()}
            self._in[name] = Counter(each for contexts in self._lines[name].values() for each in contexts)
            self._weight += self._in[name]

    def is_run_at_import(self, file: str, line: int) -> bool:
        return (file, line) in self._at_import

    def tests(self, file: str, line: int) -> list[str]:
        """Functions (`tests/…/test_x.py::test_y`) that touch the line, the closest first: those of whose lines the largest share lies in that file."""
        touching = self._lines.get(file, {}).get(line, [])
        if touching and (file, line) in self._at_import:  # what is made there is seen by whoever uses the module
            touching = list(self._in[file])
        return sorted(touching, key=lambda each: self._weight[each] / self._in[file][each])


def measure(kept: Path, workers: int) -> None:
    sys.stdout.write("mutate: measuring which tests touch which lines (once for a state of the tree) …\n")
    sys.stdout.flush()
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    kept.chmod(0o777)  # commands that the tests run as another user write here too
    (kept / "coveragerc").write_text(_CONFIG)
    spread = ["-n", str(workers), "--max-worker-restart", "0", "--dist", "loadfile", "--no-loadscope-reorder"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "mutate.contexts",
        "-p",
        "no:cacheprovider",
        *spread,
        *options(),
    ]
    environment = {**os.environ, "PYTHONPATH": str(TREE / "tests"), MEASURED: str(kept)}
    with (kept / "log").open("wb") as log:
        subprocess.run(command, cwd=TREE, stdout=log, stderr=log, check=False, env=environment)
    whole = CoverageData(str(kept / "half"))
    for part in kept.glob("data*"):
        data = CoverageData(str(part))
        data.read()
        whole.update(data)
        part.unlink()
    whole.write()
    (kept / "half").rename(kept / "whole")
    for other in KEPT.iterdir():
        if other != kept:
            shutil.rmtree(other, ignore_errors=True) if other.is_dir() else other.unlink()
