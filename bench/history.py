"""What earlier runs have measured, and what this one does better or worse by more than the runs differ among themselves.

`bench/history/RELEASE-KIND.json` holds the runs of one release on one kind of machine, at most `RUNS` of them, each the values of its rows.
`python -m bench --record` adds this run to those of the release at work; every run is compared with the newest file of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from bench import ROOT
from bench.figures import Row, median, shown
from bench.goals import GOALS

FOLDER = ROOT / "bench" / "history"
RUNS = 3
"""What a table is made of (`bench.published`), and how noise is known: of one tree, not of what it was weeks ago."""
LEAST_NOISE = 0.01
"""A hundredth: of a single run nobody knows how far it would come back."""

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
        return "better" if lower == (GOALS[self.row].sense == "≤") else "worse"

    def __str__(self) -> str:
        change = f"{shown(self.before)} → {shown(self.now)}"
        return f"{self.row:>4}  {self.verdict:9}  {change:18}  noise {self.noise:.1%}  {GOALS[self.row].what}"


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
    for row in GOALS:
        before = [run[row] for run in recorded.runs if row in run]
        if before and row in values:
            middle = median(before)
            spread = max(abs(value - middle) for value in before) / abs(middle) if middle else 0.0
            found.append(Difference(row, middle, values[row], max(spread, LEAST_NOISE)))
    return found
