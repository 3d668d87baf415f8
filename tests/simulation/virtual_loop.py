"""An event loop whose clock is a number and whose order is drawn from a seed: one seed, one history, bit for bit.

Waiting costs nothing: when nothing is ready, the clock is set to the next timer. Whatever tasks are ready at the same moment run in a drawn
order; callbacks (bytes that arrive, timers) keep theirs, since a serial line does not swap its bytes. There are no threads and no descriptors.
"""

import asyncio
import random
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any

PROCESS: ContextVar[object] = ContextVar("PROCESS", default=None)
"""In whose life a task or a timer began; None: in the world outside."""

MAX_TURNS = 100_000
MAX_TURNS_OF_LANE = 200_000
"""On a day with a network."""


class NothingLeft(Exception):
    """Everybody waits for something that will never happen: a hang, found without waiting for it."""


class Turn(asyncio.TimerHandle):
    """A callback at its moment, with no more than a loop of one thread needs. Of two timers at the same moment neither is the lesser.

    The maker of one sets its fields: a call of a constructor for each would cost more than all the rest of it."""

    __slots__ = ()
    _args: Any
    _callback: Any
    _context: Context
    __init__ = object.__init__

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None

    def __lt__(self, _other: object) -> bool:
        return False

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class VirtualLoop(asyncio.BaseEventLoop):
    """`now` in seconds. `delay` draws how long a thread of the pool takes for its job (seconds).

    What asyncio's own loop does for sockets, threads and debugging is left out: a history is a quarter of a million callbacks a minute."""

    _ready: deque[Turn]
    _scheduled: list[tuple[float, Turn]]  # type: ignore[assignment]
    _stopping: bool

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.now = 0.0
        self.turns = 0
        self.delay: Callable[[], float] = lambda: 0.0
        self.connect: Callable[[Any], Any] | None = None
        """Opens a connection for a protocol: the network, where there is one."""
        self._clock_resolution = 1e-9
        self._draw = random.Random(f"order {seed}")
        self._created = 0
        self._ended: set[object] = set()
        self._tasks: defaultdict[object, list[NumberedTask]] = defaultdict(list)
        """By the life in which they began."""
        self._generators: dict[int, object] = {}
        """In whose life each asynchronous generator was begun, by its `id`; who comes to life again under it is entered anew."""
        self.set_exception_handler(lambda _loop, _context: None)  # as for callbacks

    get_debug = staticmethod(bool)  # asked of each future

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Turn:  # type: ignore[override]
        turn = Turn()
        turn._when, turn._callback, turn._args, turn._cancelled = self.now, callback, args, False
        turn._context = copy_context() if context is None else context
        self._ready.append(turn)
        return turn

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Turn:  # type: ignore[override]
        turn = Turn()
        turn._when, turn._callback, turn._args, turn._cancelled = when, callback, args, False
        turn._context = copy_context() if context is None else context
        heappush(self._scheduled, (when, turn))
        return turn

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, **named: Any) -> Turn:  # type: ignore[override]
        return self.call_at(self.now + delay, callback, *args, **named)

    def create_task(
        self, work: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> Any:
        task = NumberedTask(work, loop=self, name=name, context=context)
        self._created += 1
        task.number = self._created
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            self._tasks[process].append(task)
        return task

    def run_in_executor(self, _: Any, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """A thread: the job is done at a moment of its own."""

        async def thread() -> Any:
            await asyncio.sleep(self.delay())
            return work(*arguments)

        return self.create_task(thread())

    async def create_connection(self, factory: Any, *_where: Any, **_how: Any) -> Any:  # type: ignore[override]
        if self.connect is None:
            raise OSError("there is no network")
        return self.connect(factory)

    async def end(self, process: object) -> None:
        """Everything of a process that is gone: timers and callbacks never run, tasks are cancelled (nothing they do on their way out reaches
        anybody)."""
        self._ended.add(process)
        for turn in (*self._ready, *(turn for _, turn in self._scheduled)):
            if turn._context.get(PROCESS) is process and _task_of(turn) is None:
                turn.cancel()
        while left := [task for task in self._tasks[process] if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=0.0)
        del self._tasks[process]

    def close_coroutines(self) -> None:
        """What a loop that gave up has left in the middle ends now, not when the garbage collector comes upon it in a later test. One that awaits
        again on its way out is closed again."""
        for task in sorted(asyncio.all_tasks(self), key=lambda task: task.number):
            work = task.get_coro()
            while work.cr_frame is not None:
                with suppress(Exception):
                    work.close()

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
        if self.turns > (MAX_TURNS if self.connect is None else MAX_TURNS_OF_LANE):
            raise NothingLeft("it goes round and round without coming to an end")
        ready, scheduled = self._ready, self._scheduled
        while scheduled and (not ready or scheduled[0][0] <= self.now or scheduled[0][1]._cancelled):
            when, timer = heappop(scheduled)
            if timer._cancelled:
                continue
            self.now = max(self.now, when)
            ready.append(timer)
        if not ready and not self._stopping:
            raise NothingLeft("nothing is ready, no timer runs, and somebody still waits")
        if len(ready) > 1:
            self._shuffle()
        for _ in range(len(ready)):
            turn = ready.popleft()
            if turn._cancelled:
                continue
            try:
                turn._context.run(turn._callback, *turn._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException:  # noqa: BLE001, S110  it has no receiver: what should have been done is missed by the oracle
                pass

    def _shuffle(self) -> None:
        """Only tasks change places, and among themselves. By number first: what a set of tasks was walked in depends on addresses."""
        ready = self._ready
        found = []
        for at, turn in enumerate(ready):
            task = getattr(turn._callback, "__self__", None)
            if type(task) is NumberedTask:
                found.append((task.number, at))
        if len(found) > 1:
            turns = [ready[at] for _, at in sorted(found)]
            self._draw.shuffle(turns)
            for (_, at), turn in zip(found, turns, strict=True):
                ready[at] = turn

    def _write_to_self(self) -> None:
        pass


class NumberedTask(asyncio.Task):
    __slots__ = ("number",)
    number: int


def _task_of(turn: Turn) -> NumberedTask | None:
    owner = getattr(turn._callback, "__self__", None)
    return owner if type(owner) is NumberedTask else None
