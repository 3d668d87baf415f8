"""A history that fails, cut down to the fewest events that still fail."""

from __future__ import annotations

from simulation.drawn.events import Script
from simulation.history import play

MOST_TRIES = 300


def cut_down(script: Script) -> list[int]:
    """Which events are left; without any one of them nothing fails any more (or it took too long to find out)."""
    kept = list(range(len(script.events)))
    size, tries = max(1, len(kept) // 2), 0
    while kept and tries < MOST_TRIES:
        for at in range(0, len(kept), size):
            fewer = kept[:at] + kept[at + size :]
            tries += 1
            if play(script.keeping(fewer)).failure:
                kept = fewer
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return kept
