"""The rows of the bench, their limits, the summary and output of measurements, and recorded runs: a row is better or
worse if it differs from them by more than they differ among themselves.

`bench/history/RELEASE-KIND.json` has the last runs of one release on one kind of machine. `python -m bench --record`
adds one; every run is compared with the newest file of its kind."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

from bench import ROOT

Sense = Literal["≤", "≥"]

FOLDER = ROOT / "bench" / "history"
RUNS = 3
"""Runs that are recorded: enough to estimate the noise."""
LEAST_NOISE = 0.01
"""Minimum: the noise of a single run is unknown."""

Values = Mapping[str, float]
Verdict = Literal["better", "worse", "as before"]


@dataclass(frozen=True)
class Limit:
    """The limit of a row."""

    what: str
    sense: Sense
    value: float

    def is_reached(self, value: float) -> bool:
        return value <= self.value if self.sense == "≤" else value >= self.value

    def __str__(self) -> str:
        return f"{self.sense} {self.value:,g}"


LIMITS = {
    "sale": Limit("a sale over HTTP, durable / a bare blocking pyserial script", "≤", 1.08),
    "line-1": Limit("certify, walk-in customer, 1 item / its line time", "≤", 1.15),
    "line-10": Limit("certify, walk-in customer, 10 items / its line time", "≤", 1.07),
    "line-100": Limit("certify, walk-in customer, 100 items / its line time", "≤", 1.045),
    "processor": Limit("ms of processor time of a sale of 1 item", "≤", 6),
    "slow-disk": Limit("tills in a queue, 10 items, every sync 20 ms slower / line time", "≤", 1.08),
    "machines": Limit("8 machines at once: the slowest one's rate / a rate alone", "≥", 0.95),
    "syncs": Limit("syncs of the disk for a sale, one till", "≤", 2.1),
    "memory": Limit("MB resident after 10 000 sales", "≤", 80),
    "start": Limit("seconds from start to ready on a million sales", "≤", 0.5),
    "reports": Limit("ms of the slowest of X, A and the closures on a million sales", "≤", 50),
    "memory-large": Limit("MB resident on a million sales, its page in use", "≤", 96),
    "today": Limit("ms of the page's Today on a million sales", "≤", 100),
    "first-load": Limit("KB of the page's first load, compressed", "≤", 90),
    "search": Limit("ms of a search in the journal of a million sales", "≤", 1000),
    "waiting": Limit("p99 of a sale while 10 000 that wait are worked off / without any", "≤", 1.05),
    "start-waiting": Limit("seconds that a start with 10 000 waiting sales takes longer", "≤", 1),
    "upstream": Limit("certify, headquarters dead / alive", "≤", 1.02),
    "command": Limit("seconds to the first output of `mcfd keys list`", "≤", 0.2),
    "relay": Limit("ms that the relay adds to an answer, p50, without network", "≤", 3),
    "relay-rate": Limit("calls that the relay passes on in a second of its processor", "≥", 1500),
    "relay-idle": Limit("MB of nats-server for 10 000 boxes that listen", "≤", 1000),
    "hq": Limit("closures a second that headquarters stores in PostgreSQL", "≥", 150),
}
"""In the order of the output."""


@dataclass(frozen=True)
class Row:
    """One row of the table. `value` is None if it could not be measured on this box; `note` has the reason."""

    row: str
    value: float | None
    note: str

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "pass" if LIMITS[self.row].is_reached(self.value) else "MISS"


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank: of a hundred values, the p99 is the 99th."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def milliseconds(seconds: float) -> str:
    """Readable from microseconds to minutes."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def significant(value: float) -> str:
    """Three digits."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"


def table(rows: Sequence[Row]) -> str:
    lines = [("row", "what", "limit", "value", "", "how")]
    for row in rows:
        limit = LIMITS[row.row]
        value = "–" if row.value is None else significant(row.value)
        lines.append((row.row, limit.what, str(limit), value, row.verdict, row.note))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[5]]).rstrip()
        for line in lines
    )


class Recorded(msgspec.Struct, frozen=True):
    """`at`: time of the last run."""

    release: str
    kind: str
    at: str
    runs: tuple[dict[str, float], ...] = ()


@dataclass(frozen=True)
class Difference:
    """`noise`: largest distance of the recorded runs from their median, as a share of it."""

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


def kind_of_machine() -> str:
    """The kind of this machine, with comparable figures: processor and cores."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    processor = names[-1] if names else platform.machine()
    return re.sub(r"[^a-z0-9]+", "-", f"{processor} {len(os.sched_getaffinity(0))} cores".lower()).strip("-")


def values_of(rows: Sequence[Row]) -> dict[str, float]:
    return {row.row: row.value for row in rows if row.value is not None}


def last_recorded(kind: str, folder: Path = FOLDER) -> Recorded | None:
    """The newest recorded run of that kind."""
    found = [msgspec.json.decode(file.read_bytes(), type=Recorded) for file in folder.glob(f"*-{kind}.json")]
    return max(found, key=lambda recorded: recorded.at, default=None)


def record(release: str, kind: str, at: str, values: Values, folder: Path = FOLDER) -> Path:
    """Adds a run for that release and kind, and drops the oldest."""
    target = folder / f"{release}-{kind}.json"
    before = msgspec.json.decode(target.read_bytes(), type=Recorded).runs if target.exists() else ()
    rounded = {row: float(f"{value:.4g}") for row, value in values.items()}
    recorded = Recorded(release, kind, at, (*before, rounded)[-RUNS:])
    folder.mkdir(parents=True, exist_ok=True)
    target.write_bytes(msgspec.json.format(msgspec.json.encode(recorded), indent=1) + b"\n")
    return target


def differences(recorded: Recorded, values: Values) -> list[Difference]:
    """Rows that both have, in the order of the table."""
    found = []
    for row in LIMITS:
        before = [run[row] for run in recorded.runs if row in run]
        if before and row in values:
            middle = median(before)
            spread = max(abs(value - middle) for value in before) / abs(middle) if middle else 0.0
            found.append(Difference(row, middle, values[row], max(spread, LEAST_NOISE)))
    return found
