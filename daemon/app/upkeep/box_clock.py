"""Whether somebody vouches for the box's clock (decision 21): systemd-timesyncd by the file it leaves, chrony and others by what the kernel
was told, which timedatectl asks for us: the service itself may not."""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

BOOTED = Path("/run/systemd/system")
"""There where systemd runs the box (sd_booted(3))."""
SYNCHRONISED = Path("/run/systemd/timesync/synchronized")
ASK = ("timedatectl", "show", "--property=NTPSynchronized", "--value")
ASK_EVERY = 60.0
PATIENCE = 2.0
"""Seconds."""


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


async def is_synchronised() -> bool:
    if SYNCHRONISED.exists():  # noqa: ASYNC240  in memory
        return True
    if not BOOTED.is_dir():  # noqa: ASYNC240  in memory
        return False
    try:
        asked = await asyncio.create_subprocess_exec(*ASK, stdout=PIPE, stderr=DEVNULL, stdin=DEVNULL)
    except OSError:
        return False
    try:
        async with asyncio.timeout(PATIENCE):
            answer, _ = await asked.communicate()
    except TimeoutError:
        asked.kill()
        await asked.wait()
        return False
    return answer.strip() == b"yes"
