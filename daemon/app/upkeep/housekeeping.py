"""Whether somebody vouches for the box's clock, asked again and again. Once a day, what need not be kept is let go of: old idempotency keys and
events. Certifications and closures stay for good; those of a sandbox, which a developer can make without end, as long as there is room in its
share."""

from __future__ import annotations

import asyncio
import time

import structlog

from daemon.core.errors import StorageError
from daemon.store import Store
from daemon.time_sync import is_synchronised

log = structlog.get_logger(__name__)

ASK_EVERY = 60.0

FIRST_SECONDS = 600.0
EVERY_SECONDS = 86_400.0
SANDBOX_SECONDS = 60.0


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


async def keep_tidy(store: Store, first: float = FIRST_SECONDS, every: float = EVERY_SECONDS) -> None:
    """Until cancelled; the first time well after the start, when tills are being served."""
    await asyncio.sleep(first)
    while True:
        try:
            log.info("ledger.tidied", rows=await store.retention.prune(now_millis()))
        except StorageError as error:
            log.warning("ledger.not_tidied", cause=str(error))
        await asyncio.sleep(every)


async def keep_sandbox_small(store: Store, budget: int, every: float = SANDBOX_SECONDS) -> None:
    """Until cancelled; `budget` in bytes for each sandbox."""
    while True:
        await asyncio.sleep(every)
        try:
            await store.retention.trim_sandbox(now_millis(), budget)
        except StorageError as error:
            log.warning("sandbox.not_tidied", cause=str(error))
