"""Recorded runs, and what this one does better or worse by more than they differ among themselves.

`bench/history/RELEASE-KIND.json` has the last runs of one release on one kind of machine. `python -m bench --record` adds one; every run is
compared with the newest file of its kind.
"""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from bench import RESULTS, ROOT
from bench.figures import LIMITS, Row, median, significant

FOLDER = ROOT / "bench" / "history"
RUNS = 3
"""Enough to know the noise."""
LEAST_NOISE = 0.01
"""Of a single run the noise is unknown."""

Values = Mapping[str, float]
Verdict = Literal["better", "worse", "as before"]


class Recorded(msgspec.Struct, frozen=True):
    """`at`: of the last run."""

    release: str
    kind: str
    at: str
    runs: tuple[dict[str, float], ...] = ()


@dataclass(frozen=True)
class Difference:
    """`noise`: how far the recorded runs lie from their median, as a share of it."""

    row: str
    before: float
    now: float
    noise: float

    @property
    def verdict(self) -> Verdict:
        if abs(self.now - self.before) <= self.noise * abs(self.before):
            return "as before"
        lower = self.now < self.before
        return "better" if lower == (LIMITS[self.row].sense == "≤") else "worse"

    def __str__(self) -> str:
        change = f"{significant(self.before)} → {significant(self.now)}"
        return f"{self.row:>4}  {self.verdict:9}  {change:18}  noise {self.noise:.1%}  {LIMITS[self.row].what}"


def kind_of(box: Mapping[str, Any]) -> str:
    """A machine as far as figures can be compared: processor and cores."""
    return re.sub(r"[^a-z0-9]+", "-", f"{box['cpu']} {box['cores']} cores".lower()).strip("-")


def values_of(rows: Sequence[Row]) -> dict[str, float]:
    return {row.row: row.value for row in rows if row.value is not None}


def last_recorded(kind: str, folder: Path = FOLDER) -> Recorded | None:
    """The newest of that kind."""
    found = [msgspec.json.decode(file.read_bytes(), type=Recorded) for file in folder.glob(f"*-{kind}.json")]
    return max(found, key=lambda recorded: recorded.at, default=None)


def record(release: str, kind: str, at: str, values: Values, folder: Path = FOLDER) -> Path:
    """Adds a run to those of that release and kind; the oldest goes."""
    target = folder / f"{release}-{kind}.json"
    before = msgspec.json.decode(target.read_bytes(), type=Recorded).runs if target.exists() else ()
    rounded = {row: float(f"{value:.4g}") for row, value in values.items()}
    recorded = Recorded(release, kind, at, (*before, rounded)[-RUNS:])
    folder.mkdir(parents=True, exist_ok=True)
    target.write_bytes(msgspec.json.format(msgspec.json.encode(recorded), indent=1) + b"\n")
    return target


def differences(recorded: Recorded, values: Values) -> list[Difference]:
    """Of the rows that both have, in the order of the table."""
    found = []
    for row in LIMITS:
        before = [run[row] for run in recorded.runs if row in run]
        if before and row in values:
            middle = median(before)
            spread = max(abs(value - middle) for value in before) / abs(middle) if middle else 0.0
            found.append(Difference(row, middle, values[row], max(spread, LEAST_NOISE)))
    return found


def box() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "fsync_ms": round(_fsync_seconds() * 1000, 3),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "revision": _revision(),
    }


def _fsync_seconds() -> float:
    """Median of a commit's worth of writing where the ledgers of the bench lie."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    times = []
    with tempfile.TemporaryFile(dir=RESULTS, buffering=0) as file:
        for turn in range(100):
            os.pwrite(file.fileno(), bytes(20_480), turn * 20_480)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times)


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return names[-1] if names else platform.machine()


def _revision() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
