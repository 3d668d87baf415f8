"""Two shops side by side, turn and turn about: what differs between them is all that can make one slower."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import Row, milliseconds, ratio

WARM_UP = 6
"""Of each, but two, or no more than a quarter of what is measured."""


def warm_ups(count: int) -> int:
    return min(WARM_UP, max(2, count // 4))


def compare(row: str, pair: Sequence[Iterator[float]], names: tuple[str, str], count: int) -> Row:
    """Seconds of the first to those of the second, medians of `count` each; `names` are the sides' in the details."""
    times: list[list[float]] = [[], []]
    warm_up = warm_ups(count)
    for turn in range(count + warm_up):
        for side in (0, 1) if turn % 2 else (1, 0):
            took = next(pair[side])
            if turn >= warm_up:
                times[side].append(took)
    middle = [milliseconds(sorted(side)[len(side) // 2]) for side in times]
    details = {f"{name}_s": side for name, side in zip(names, times, strict=True)}
    return Row(row, ratio(*times), f"{middle[0]} / {middle[1]}, {count} of each", details)
