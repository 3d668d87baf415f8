"""Cancellations that a library loses: nats-py does in several places, `asyncio.wait_for` of Python 3.11 when the result and the
cancellation come in the same turn. The task then goes on, and who waits for its end waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_SECONDS = 0.1


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
