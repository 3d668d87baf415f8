"""An event loop whose clock is a number and whose order is drawn from a seed: one seed, one history, bit for bit.

Waiting costs nothing: when nothing is ready, the clock is set to the next timer. Whatever tasks are ready at the same moment run in a drawn
order; callbacks (bytes that arrive, timers) keep theirs, since a serial line does not swap its bytes. There are no threads and no descriptors.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any

PROCESS: ContextVar[object] = ContextVar("PROCESS", default=None)
"""In whose life a task or a timer began; None: in the world outside."""

MOST_TURNS = 50_000


class NothingLeft(Exception):
    """Everybody waits for something that will never happen: a hang, found without waiting for it."""


class VirtualLoop(asyncio.BaseEventLoop):
    """`now` in seconds. `delay` draws how long a thread of the pool takes for its job (seconds)."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.now = 0.0
        self.turns = 0
        self.delay: Callable[[], float] = lambda: 0.0
        self._clock_resolution = 1e-9
        self._draw = random.Random(f"order {seed}")
        self._created = 0
        self._ended: set[object] = set()
        self._generators: dict[int, object] = {}
        """In whose life each asynchronous generator was begun, by its `id`; who comes to life again under it is entered anew."""
        self.set_task_factory(_numbered)
        self.set_exception_handler(lambda _loop, _context: None)  # what nobody awaits is seen by what the oracle finds

    def time(self) -> float:
        return self.now

    def next_number(self) -> int:
        self._created += 1
        return self._created

    def run_in_executor(self, _: Any, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """A thread: the job is done at a moment of its own."""

        async def thread() -> Any:
            await asyncio.sleep(self.delay())
            return work(*arguments)

        return self.create_task(thread())

    async def end(self, process: object) -> None:
        """Everything of a process that is gone: timers and callbacks never run, tasks are cancelled (nothing they do on their way out reaches
        anybody)."""
        self._ended.add(process)
        for handle in (*self._ready, *self._scheduled):
            if handle._context.get(PROCESS) is process and _task_of(handle) is None:
                handle.cancel()
        while left := [task for task in asyncio.all_tasks(self) if task.process is process]:  # type: ignore[attr-defined]
            for task in sorted(left, key=lambda task: task.number):  # type: ignore[attr-defined]
                task.cancel()
            await asyncio.wait(left, timeout=0.0)

    def _asyncgen_firstiter_hook(self, generator: AsyncGenerator[Any, Any]) -> None:
        super()._asyncgen_firstiter_hook(generator)  # type: ignore[misc]
        self._generators[id(generator)] = PROCESS.get()

    def _asyncgen_finalizer_hook(self, generator: AsyncGenerator[Any, Any]) -> None:
        """asyncio makes a task that closes it. One that a process has left behind is never closed: when the garbage collector comes upon it, and
        in whose life, is in no seed."""
        if self._generators[id(generator)] not in self._ended:
            super()._asyncgen_finalizer_hook(generator)  # type: ignore[misc]

    def _run_once(self) -> None:
        """As asyncio has it, without a selector: what is due becomes ready, and whatever is ready runs once."""
        self.turns += 1
        if self.turns > MOST_TURNS:
            raise NothingLeft("it goes round and round without coming to an end")
        ready, scheduled = self._ready, self._scheduled
        while scheduled and (scheduled[0]._cancelled or scheduled[0]._when <= self.now or not ready):
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if timer._cancelled:
                self._timer_cancelled_count -= 1
                continue
            self.now = max(self.now, timer._when)
            ready.append(timer)
        if not ready and not self._stopping:
            raise NothingLeft("nothing is ready, no timer runs, and somebody still waits")
        if len(ready) > 1:
            self._shuffle()
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _shuffle(self) -> None:
        """Only tasks change places, and among themselves. By number first: what a set of tasks was walked in depends on addresses."""
        ready = self._ready
        places = [at for at, handle in enumerate(ready) if _task_of(handle) is not None]
        if len(places) > 1:
            handles = sorted((ready[at] for at in places), key=lambda handle: _task_of(handle).number)
            self._draw.shuffle(handles)
            for at, handle in zip(places, handles, strict=True):
                ready[at] = handle

    def _write_to_self(self) -> None:
        pass


class NumberedTask(asyncio.Task):
    number = 0
    process: object = None


def _numbered(loop: VirtualLoop, work: Coroutine[Any, Any, Any], **named: Any) -> NumberedTask:
    task = NumberedTask(work, loop=loop, **named)
    task.number = loop.next_number()
    context: Context | None = named.get("context")
    task.process = PROCESS.get() if context is None else context.get(PROCESS)
    return task


def _task_of(handle: asyncio.Handle) -> NumberedTask | None:
    owner = getattr(handle._callback, "__self__", None)
    return owner if isinstance(owner, NumberedTask) else None
