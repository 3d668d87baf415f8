"""The end of tasks."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_SECONDS = 0.5


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancelled until they are over: nats-py, and `wait_for` of Python 3.11, lose a cancellation at some moments."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
