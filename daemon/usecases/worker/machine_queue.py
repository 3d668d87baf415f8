"""Who is next at a machine: first come, first served, a bounded number waiting, each with a bounded patience."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from common.language import Text
from daemon.core.errors import MachineBusy


class QueueEntry:
    """A place in the line. `leave` is due exactly once, whatever happened; as a context manager it is seen to."""

    __slots__ = ("_queue", "first", "is_near", "on_near", "turn")

    def __init__(
        self, queue: MachineQueue, *, first: bool = False, on_near: Callable[[], object] | None = None
    ) -> None:
        self._queue = queue
        self.first = first
        self.is_near = False
        self.on_near = on_near
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait_turn(self, deadline: float) -> None:
        """MachineBusy where the deadline comes first."""
        timeout = max(0.0, deadline - asyncio.get_running_loop().time())
        if not self.turn.done() and not (await asyncio.wait([self.turn], timeout=timeout))[0]:
            raise MachineBusy(
                Text("the machine is busy with other invoices; nothing was sent"), self._queue.patience_hint
            )
        return self.turn.result()

    def step_back(self) -> None:
        """Gives the turn back and keeps the place: the machine went away before it was used."""
        self._queue._step_back(self)  # noqa: SLF001  the two classes are one thing

    def leave(self) -> None:
        self._queue._leave(self)  # noqa: SLF001  the two classes are one thing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class MachineQueue:
    """`limit` bounds who may wait, `ahead` how many of them may already prepare (write their intent) for their turn."""

    def __init__(self, limit: int = 256, ahead: int = 8) -> None:
        self.limit = limit
        self.ahead = ahead
        self.patience_hint = 2
        self._queue: deque[QueueEntry] = deque()
        self._on_hold = False
        self._closed = ""
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def invoices(self) -> int:
        """How many entries are of invoices, which prepare for their turn; the others are looks at the machine, and reports."""
        return sum(entry.on_near is not None for entry in self._queue)

    def join(self, on_near: Callable[[], object] | None = None) -> QueueEntry:
        """The next place in the line; MachineBusy when there is none. `on_near` is called once, before the turn, when few are ahead: in the order of the
        line, whatever joins or leaves meanwhile."""
        if self._closed:
            raise MachineBusy(self._closed)
        if len(self._queue) > self.limit:
            raise MachineBusy(
                Text("too many invoices are waiting for this machine; nothing was sent"), self.patience_hint
            )
        entry = self._enter(QueueEntry(self, on_near=on_near), len(self._queue))
        self._call_next()
        return entry

    def join_first(self) -> QueueEntry:
        """A place right behind the entry at the machine, before all that wait, also while the queue is blocked: for what has to be known of the
        machine before any work with it."""
        if self._closed:
            raise MachineBusy(self._closed)
        at_the_machine = bool(self._queue) and self._queue[0].turn.done()
        entry = self._enter(QueueEntry(self, first=True), int(at_the_machine))
        self._call_next()
        return entry

    def hold(self) -> None:
        """No entry that waits gets a turn; the one at the machine keeps it."""
        self._on_hold = True

    def release(self) -> None:
        self._on_hold = False
        self._call_next()

    def close(self, why: str) -> None:
        """No new places, and entries without a turn are refused; the one at the machine finishes."""
        self._closed = why
        for entry in self._queue:
            if not entry.turn.done():
                self._send_away(entry, why)

    def send_away(self, why: str) -> None:
        """The entries that wait to work with the machine are refused; the one at it finishes, and the machine may still be read."""
        for entry in self._queue:
            if not (entry.turn.done() or entry.first):
                self._send_away(entry, why)

    async def drained(self) -> None:
        """Returns once no entry has or awaits a turn."""
        await self._empty.wait()

    def _enter(self, entry: QueueEntry, at: int) -> QueueEntry:
        self._queue.insert(at, entry)
        self._empty.clear()
        return entry

    def _step_back(self, entry: QueueEntry) -> None:
        entry.turn = asyncio.get_running_loop().create_future()
        if self._closed:
            self._send_away(entry, self._closed)
        self._call_next()

    def _leave(self, entry: QueueEntry) -> None:
        self._queue.remove(entry)
        if not self._queue:
            self._empty.set()
        self._call_next()

    def _send_away(self, entry: QueueEntry, why: str) -> None:
        if not entry.turn.done():
            entry.turn.set_exception(MachineBusy(why))
            entry.turn.exception()  # marks it as seen: the caller may be gone

    def _call_next(self) -> None:
        for place, entry in enumerate(self._queue):
            if place >= self.ahead:
                break
            if not (entry.is_near or entry.turn.done()):  # who was sent away prepares nothing
                entry.is_near = True
                if entry.on_near:
                    entry.on_near()
        if self._queue and not (head := self._queue[0]).turn.done() and (head.first or not self._on_hold):
            head.turn.set_result(None)
