"""A loop for quick timers on a machine that is busy with something else.

A test whose machine has 40 ms to answer, in the same process, fails when that process does not run for so long: the answer is there, and
nobody had time to read it. On this loop's clock such a pause is no longer than `STEP`, so that whatever is ready is done before a timer ends.
"""

import asyncio
import selectors
import time

STEP = 0.005
"""Seconds by which the clock goes on at once, at most."""
UP_FOR = 1_000_000.0
"""Seconds that the clock shows at its beginning, as that of a box which has been up for days: near nought, the sum of two moments is as good
as their difference, and code that mistakes the one for the other is not found out."""


class _InSteps(selectors.DefaultSelector):
    """A wait that counts has to be one of many short ones."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout if timeout is None else min(timeout, STEP))


class SteadyLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._steady = UP_FOR
        self._seen = time.monotonic()
        super().__init__(_InSteps())

    def time(self) -> float:
        now = time.monotonic()
        self._steady += min(now - self._seen, STEP)
        self._seen = now
        return self._steady
