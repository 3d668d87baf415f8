"""How long to wait before the next try, so that ten thousand boxes that were told "not now" do not come back as one."""

from __future__ import annotations

import random
from collections.abc import Callable

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds: a receiver may ask for a day; more is taken for a mistake."""
WIDEST_SPREAD = 3_600.0
MOST_DOUBLINGS = 1000
"""A float ends soon after."""

_dice = random.SystemRandom().random  # each box for itself


class Backoff:
    """Exponential with full jitter, at most `most` seconds. What the receiver asks for is honoured even beyond that, and the jitter
    comes on top: up to as much again, an hour at the most."""

    def __init__(
        self,
        *,
        first: float = 1.0,
        most: float = 300.0,
        dice: Callable[[], float] = _dice,
    ) -> None:
        self._first = first
        self._most = most
        self._dice = dice

    def wait(self, tries: int, retry_after: float | None = None) -> float:
        """Seconds after the `tries`-th failure in a row, counted from 1."""
        ceiling = min(self._most, self._first * 2.0 ** min(tries - 1, MOST_DOUBLINGS))
        asked = min(retry_after or 0.0, LONGEST_RETRY_AFTER)
        return asked + self._dice() * max(min(asked, WIDEST_SPREAD), ceiling)
