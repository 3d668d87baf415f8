"""Long background work started by a person: it continues without the screen, and every screen can show its
progress."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from daemon.api.page.rendering import Fault, fault_of

Kind = Literal["backup", "verify", "export"]
State = Literal["running", "done", "failed"]
MAX_JOBS: Final = 8
"""Including finished ones."""


class Job(msgspec.Struct):
    id: int
    kind: Kind
    subject: str
    state: State = "running"
    done: int = 0
    """pages or records"""
    of: int = 0
    """total; 0 if unknown"""
    result: str = ""
    """a file's name, or values of a sentence"""
    fault: Fault | None = None
    """the reason of a failure"""

    def tell(self, done: int, of: int) -> None:
        self.done, self.of = done, of

    @property
    def percent(self) -> int | None:
        """None if the total is unknown."""
        return min(100, self.done * 100 // self.of) if self.of else None


Work = Callable[[Job], Awaitable[str]]
"""Returns the job's result; an exception becomes the job's fault."""


class Jobs(msgspec.Struct):
    """At most one running job per kind: starting a second one returns the running one."""

    jobs: list[Job] = msgspec.field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = msgspec.field(default_factory=set)

    def begin(self, kind: Kind, subject: str, work: Work) -> Job:
        if running := next((job for job in self.jobs if job.kind == kind and job.state == "running"), None):
            return running
        job = Job(self.jobs[-1].id + 1 if self.jobs else 1, kind, subject)
        self.jobs = [*self.jobs[-MAX_JOBS + 1 :], job]
        task = asyncio.get_running_loop().create_task(_run(job, work), name=f"page {kind}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def of(self, *kinds: Kind) -> list[Job]:
        """Newest first, as copies, so that they do not change while a screen is rendered."""
        return [msgspec.structs.replace(job) for job in reversed(self.jobs) if job.kind in kinds]

    async def close(self) -> None:
        """Cancels running jobs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _run(job: Job, work: Work) -> None:
    try:
        job.result = await work(job)
        job.state = "done"
    except Exception as error:  # noqa: BLE001  shown on the screen; unexpected ones are logged
        job.fault, job.state = fault_of(error), "failed"
