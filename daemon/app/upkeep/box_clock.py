"""Watches whether somebody vouches for the box's clock."""

from __future__ import annotations

import asyncio
import time

import structlog

from daemon.time_sync import is_synchronised

log = structlog.get_logger(__name__)

ASK_EVERY = 60.0


def now_millis() -> int:
    return time.time_ns() // 1_000_000


class ClockWatch:
    """`synchronised` as last asked; False where nobody can be asked, and then clocks are judged by what they say."""

    def __init__(self) -> None:
        self.synchronised = False

    async def look(self) -> None:
        found = await is_synchronised()
        if found != self.synchronised:
            log.info("clock.synchronised" if found else "clock.not_synchronised")
        self.synchronised = found

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(ASK_EVERY)
            await self.look()
