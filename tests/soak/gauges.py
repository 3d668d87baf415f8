"""Memory and descriptors of the daemon over one of its lives."""

from __future__ import annotations

import os
import resource
import statistics
import threading
from dataclasses import dataclass, field
from pathlib import Path

PAGE = resource.getpagesize()
MEGABYTE = 1_000_000
EVERY = 0.5
GROWTH = 0.05
SLACK_MB = 3.0
"""Growth that is none: 5 % and 3 MB between the first and the last quarter; descriptors come and go with connections."""
SLACK_DESCRIPTORS = 8


@dataclass
class Gauges:
    """Of one process; `memory` in MB (resident)."""

    pid: int
    memory: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.over.wait(EVERY):
            try:
                pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
                self.descriptors.append(len(os.listdir(f"/proc/{self.pid}/fd")))  # noqa: PTH208  names are not needed
            except FileNotFoundError:
                return
            self.memory.append(pages * PAGE / MEGABYTE)

    def problems(self) -> list[str]:
        found = []
        memory, descriptors = ends(self.memory), ends(self.descriptors)
        if memory[1] > memory[0] * (1 + GROWTH) + SLACK_MB:
            found.append(f"memory grew from {memory[0]:.1f} to {memory[1]:.1f} MB")
        if descriptors[1] > descriptors[0] + SLACK_DESCRIPTORS:
            found.append(f"descriptors grew from {descriptors[0]:g} to {descriptors[1]:g}")
        return found

    def __str__(self) -> str:
        memory, descriptors = ends(self.memory), ends(self.descriptors)
        minutes = len(self.memory) * EVERY / 60
        course = " ".join(f"{value:.1f}" for value in tenths(self.memory))
        return (
            f"{minutes:.1f} min: memory {memory[0]:.1f} → {memory[1]:.1f} MB (by tenths {course}), "
            f"descriptors {descriptors[0]:g} → {descriptors[1]:g} (most {max(self.descriptors)})"
        )


def ends(values: list[float] | list[int]) -> tuple[float, float]:
    """The medians of the first and of the last quarter."""
    quarter = max(1, len(values) // 4)
    return statistics.median(values[:quarter]), statistics.median(values[-quarter:])


def tenths(values: list[float]) -> list[float]:
    """The median of each tenth."""
    step = max(1, len(values) // 10)
    return [statistics.median(values[at : at + step]) for at in range(0, step * 10, step) if values[at : at + step]]
