"""Expensive work on request: one after the other, known clients first, and few of unknown ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

WAITING: Final = 4
"""Of each kind, with the one that is at work."""
WAITING_OF_ONE: Final = 2
"""From one address."""

AGAIN_SECONDS = 0.1


class Busy(Exception):
    """Too many wait already."""


class Turns:
    """For one event loop. Strangers, however many, never keep those out who are known."""

    def __init__(self, most: int = WAITING) -> None:
        self._most = most
        self._pending: Counter[bool] = Counter()
        self._of_one: Counter[str] = Counter()
        self._waiting: dict[bool, deque[asyncio.Future[None]]] = {True: deque(), False: deque()}
        self._is_taken = False

    @contextlib.asynccontextmanager
    async def turn(self, network: str = "", *, is_trusted: bool = False) -> AsyncIterator[None]:
        """Alone. Busy when too many were first, or too many of that address."""
        if self._pending[is_trusted] >= self._most or (network and self._of_one[network] >= WAITING_OF_ONE):
            raise Busy
        self._pending[is_trusted] += 1
        self._of_one[network] += 1
        try:
            await self._wait(is_trusted)
            try:
                yield
            finally:
                self._next()
        finally:
            self._pending[is_trusted] -= 1
            self._of_one[network] -= 1
            if not self._of_one[network]:
                del self._of_one[network]

    async def _wait(self, is_trusted: bool) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting[is_trusted].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._next()  # it was given to one that no longer wants it
            raise

    def _next(self) -> None:
        for is_trusted in (True, False):
            while self._waiting[is_trusted]:
                turn = self._waiting[is_trusted].popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._is_taken = False


def heed_cancellation() -> None:
    """Called once in each round of a loop that runs until it is cancelled. Raises CancelledError in a task that was."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancelled until they are over."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)


def beside(stack: contextlib.AsyncExitStack, work: Coroutine[Any, Any, None], name: str) -> None:
    """Work that goes on until the stack is left."""
    stack.push_async_callback(ended, asyncio.get_running_loop().create_task(work, name=name))
