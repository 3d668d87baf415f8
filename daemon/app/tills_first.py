"""Tills go before whatever else a box may do in its own time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from daemon.usecases.worker.machine_worker import MachineWorker

REST: Final = 0.001
"""Seconds before each command of a sandbox's machine while a till waits for a real one: a trial of a thousand lines is as many commands,
which without it took the whole loop for a quarter of a second."""
STEP: Final = 0.005
LONGEST: Final = 0.25
"""Seconds that a request or a write of the sandbox lets tills go first; in a shop that never stops selling it goes on then."""


class TillsFirst:
    """The one that knows whether a till waits, at whichever machine. A long reading of the journal rests between its slices then; the sandbox
    waits until it is over: to read an invoice of a thousand lines holds the loop up for 20 ms, to write it down the ledger's one writer for
    up to 100, and a sale that meets one of each takes twice its time."""

    def __init__(self, workers: Sequence[MachineWorker]) -> None:
        self._workers = workers

    def till_waits(self) -> bool:
        """For a real machine."""
        return any(worker.waiting and worker.book.mode == "live" for worker in self._workers)

    def rest(self) -> float:
        """Seconds before the next command of a sandbox's machine."""
        return REST if self.till_waits() else 0.0

    async def let_pass(self) -> None:
        """Until no till waits for a real machine, or it has been long enough."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST
        while self.till_waits() and loop.time() < until:  # noqa: ASYNC110  a till does not tell when it has its answer
            await asyncio.sleep(STEP)
