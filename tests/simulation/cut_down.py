"""A history that fails, cut down to the fewest events that still fail."""

from simulation.drawn.events import Script
from simulation.history import play

MAX_TRIES = 300


def cut_down(script: Script) -> list[int]:
    """Which events are left; without any one of them nothing fails any more (or it took too long to find out)."""
    indexes = list(range(len(script.events)))
    size, tries = max(1, len(indexes) // 2), 0
    while indexes and tries < MAX_TRIES:
        for at in range(0, len(indexes), size):
            fewer = indexes[:at] + indexes[at + size :]
            tries += 1
            if play(script.keeping(fewer)).failure:
                indexes = fewer
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return indexes
