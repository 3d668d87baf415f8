"""Long work that a person begins and may leave: it goes on in the box, and every screen can show how far it is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from daemon.api.page.rendering import Fault, fault_of

Kind = Literal["backup", "verify", "export"]
State = Literal["running", "done", "failed"]
MOST_JOBS: Final = 8
"""Of the last ones."""


class Job(msgspec.Struct):
    id: int
    kind: Kind
    subject: str
    state: State = "running"
    done: int = 0
    """pages or records"""
    of: int = 0
    """how many there are; 0 where it is not known"""
    result: str = ""
    """what came of it: a file's name, or a sentence's values"""
    fault: Fault | None = None
    """why nothing came of it"""

    def tell(self, done: int, of: int) -> None:
        self.done, self.of = done, of

    @property
    def percent(self) -> int | None:
        """None where it is not known."""
        return min(100, self.done * 100 // self.of) if self.of else None


Work = Callable[[Job], Awaitable[str]]
"""Gives the job's result; an error is the job's fault."""


class Jobs(msgspec.Struct):
    """One of a kind at a time: a second one while one runs is that one."""

    jobs: list[Job] = msgspec.field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = msgspec.field(default_factory=set)

    def begin(self, kind: Kind, subject: str, work: Work) -> Job:
        if running := next((job for job in self.jobs if job.kind == kind and job.state == "running"), None):
            return running
        job = Job(self.jobs[-1].id + 1 if self.jobs else 1, kind, subject)
        self.jobs = [*self.jobs[-MOST_JOBS + 1 :], job]
        task = asyncio.get_running_loop().create_task(_run(job, work), name=f"page {kind}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def of(self, *kinds: Kind) -> list[Job]:
        """Newest first, as they are now: a job that ends while a screen is made stays as the screen's other values have it."""
        return [msgspec.structs.replace(job) for job in reversed(self.jobs) if job.kind in kinds]

    async def close(self) -> None:
        """What runs is broken off."""
        for task in self._tasks:
            task.cancel()
        for task in tuple(self._tasks):
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _run(job: Job, work: Work) -> None:
    try:
        job.result = await work(job)
        job.state = "done"
    except Exception as error:  # noqa: BLE001  on the screen, and logged where it is unexpected
        job.fault, job.state = fault_of(error), "failed"
