"""What was measured, how it is summed up, printed and kept."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.goals import GOALS


@dataclass(frozen=True)
class Row:
    """One row of the table. `value` is None when it could not be measured on this box; `note` then says why.

    `detail` are the two sides of the ratio and the counts behind it."""

    row: str
    value: float | None
    note: str
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        goal = GOALS[self.row]
        if goal.limit is None:
            return "beside"
        return "pass" if goal.is_met(self.value) else "MISS"

    def as_json(self) -> dict[str, Any]:
        goal = GOALS[self.row]
        return {**asdict(self), "what": goal.what, "goal": str(goal), "verdict": self.verdict}


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank: the least of `values` that so many of them do not exceed; of a hundred, the p99 is the 99th."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def ratio(ours: Sequence[float], baseline: Sequence[float]) -> float:
    return median(ours) / median(baseline)


def milliseconds(seconds: float) -> str:
    """Readable from microseconds to minutes."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def shown(value: float) -> str:
    """Three digits that count."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"


def table(rows: Sequence[Row]) -> str:
    lines = [("#", "what", "goal", "value", "", "how")]
    for row in rows:
        goal = GOALS[row.row]
        value = "–" if row.value is None else shown(row.value)
        lines.append((row.row, goal.what, str(goal), value, row.verdict, row.note))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[5]]).rstrip()
        for line in lines
    )
