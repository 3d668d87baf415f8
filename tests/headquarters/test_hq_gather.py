"""What comes one by one is taken together."""

from __future__ import annotations

import asyncio
import contextlib

from common.turns import ended
from headquarters.intake.gather import Gatherer


@contextlib.asynccontextmanager
async def gathering(every):
    """The gatherer, and what it has taken at a time."""
    taken = []

    async def take(batch):
        taken.append(list(batch))
        return batch

    gatherer = Gatherer(take, every)
    running = asyncio.create_task(gatherer.run())
    try:
        async with asyncio.timeout(60):
            yield gatherer, taken
    finally:
        await ended(running)


async def test_alone_waits_for_nothing():
    """What comes after a quiet time is taken at once, however seldom a transaction begins."""
    async with gathering(every=3600.0) as (gatherer, _):
        assert await gatherer.add("alone") == "alone"


async def test_others_go_together():
    """What comes soon after a transaction waits for the next one, and goes with the others."""
    async with gathering(every=0.5) as (gatherer, taken):
        await gatherer.add("alone")
        assert await asyncio.gather(*map(gatherer.add, "abc")) == ["a", "b", "c"]
        assert taken == [["alone"], ["a", "b", "c"]]
