"""One row for each attack, and the goals it is held against."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

SLOWER = 1.5
GAP = 2.0
MEMORY = 128.0
HEALED = 5.0

HEADS = ("attack", "p50", "p99", "× calm", "errors", "beat gap", "memory", "descriptors", "disk", "calm after", "")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, memory in MB; `ratio` is p99 by that of the calm, before and after together. `disk`: the longest that a page of
    somebody else's needed to reach the disk meanwhile."""

    attack: str
    p50: float
    p99: float
    ratio: float
    errors: int
    gap: float
    memory: float
    descriptors: int
    disk: float
    calm_after: float

    @property
    def missed(self) -> list[str]:
        """The goals that were not reached, in a word each."""
        goals = {
            "p99": self.ratio <= SLOWER,
            "errors": not self.errors,
            "beat": self.gap <= GAP,
            "memory": self.memory <= MEMORY,
            "healing": self.calm_after <= HEALED,
        }
        return [name for name, reached in goals.items() if not reached]

    def cells(self) -> tuple[str, ...]:
        return (
            self.attack,
            f"{self.p50 * 1000:.0f} ms",
            f"{self.p99 * 1000:.0f} ms",
            f"{self.ratio:.2f}",
            str(self.errors),
            f"{self.gap:.1f} s",
            f"{self.memory:.0f} MB",
            str(self.descriptors),
            f"{self.disk * 1000:.0f} ms",
            f"{self.calm_after:.1f} s",
            "MISS " + ", ".join(self.missed) if self.missed else "ok",
        )


def shown(row: Row) -> str:
    return "  {:16} {:>8} {:>9} {:>7} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7}  {}".format(*row.cells())


def markdown(rows: Sequence[Row]) -> str:
    lines = [HEADS, ("---", *["--:"] * 9, "---"), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
