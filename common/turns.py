"""Expensive work on request: one at a time, and few unknown clients."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

WAITING: Final = 4
"""Known clients, and unknown ones, that may wait; the one at work included."""
WAITING_OF_ONE: Final = 2
"""For one address."""

AGAIN_SECONDS = 0.1


class Busy(Exception):
    """Too many are waiting."""


class Turns:
    """For one event loop. Unknown clients, however many, never keep known ones out."""

    def __init__(self, most: int = WAITING) -> None:
        self._most = most
        self._pending: Counter[bool] = Counter()
        self._of_one: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self, network: str = "", *, is_trusted: bool = False) -> AsyncIterator[None]:
        """Exclusive, in the order of arrival. Raises Busy if too many wait, in all or from that address."""
        if self._pending[is_trusted] >= self._most or (network and self._of_one[network] >= WAITING_OF_ONE):
            raise Busy
        self._pending[is_trusted] += 1
        self._of_one[network] += 1
        try:
            async with self._turn:
                yield
        finally:
            self._pending[is_trusted] -= 1
            self._of_one[network] -= 1
            if not self._of_one[network]:
                del self._of_one[network]


def raise_if_cancelled() -> None:
    """For each round of a loop that runs until it is cancelled: raises CancelledError in a cancelled task."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancels the tasks, again and again until all are over."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)


def run_beside(stack: contextlib.AsyncExitStack, work: Coroutine[Any, Any, None], name: str) -> None:
    """Runs `work` until the stack is left."""
    stack.push_async_callback(ended, asyncio.get_running_loop().create_task(work, name=name))
