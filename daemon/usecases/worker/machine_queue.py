"""The queue of a machine: first in, first out, with a bounded length and a deadline for each entry."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

from common.language import Text
from daemon.core.errors import MachineBusy


class QueueEntry:
    """A place in the queue. `leave` has to be called exactly once; the context manager does so."""

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
        """Returns at its turn; MachineBusy if `deadline` (loop time) comes first."""
        timeout = max(0.0, deadline - asyncio.get_running_loop().time())
        if not self.turn.done() and not (await asyncio.wait([self.turn], timeout=timeout))[0]:
            why = Text("the machine is busy with other invoices; nothing was sent")
            raise MachineBusy(why, self._queue.patience_hint)
        return self.turn.result()

    def step_back(self) -> None:
        """Gives the turn back and keeps the place: the machine was lost before the turn was used."""
        self._queue.step_back(self)

    def leave(self) -> None:
        self._queue.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


class MachineQueue:
    """`limit`: how many entries may wait; `ahead`: how many of them may prepare their turn (write their intent)."""

    def __init__(self, limit: int, ahead: int = 8) -> None:
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
        """How many entries are invoices, which prepare their turn; the others read the machine or close a report."""
        return sum(entry.on_near is not None for entry in self._queue)

    def join(self, on_near: Callable[[], object] | None = None) -> QueueEntry:
        """A place at the end; MachineBusy if the queue is full or closed. `on_near` is called once before the turn,
        when few entries are ahead, in the order of the queue."""
        if self._closed:
            raise MachineBusy(self._closed)
        if len(self._queue) > self.limit:
            why = Text("too many invoices are waiting for this machine; nothing was sent")
            raise MachineBusy(why, self.patience_hint)
        entry = self._enter(QueueEntry(self, on_near=on_near), len(self._queue))
        self._call_next()
        return entry

    def join_first(self) -> QueueEntry:
        """A place before all that wait, behind the entry at the machine, also while the queue is on hold: for reading
        the machine before any other work."""
        if self._closed:
            raise MachineBusy(self._closed)
        at_the_machine = bool(self._queue) and self._queue[0].turn.done()
        entry = self._enter(QueueEntry(self, first=True), int(at_the_machine))
        self._call_next()
        return entry

    def pause(self) -> None:
        """No waiting entry gets a turn; the entry at the machine continues."""
        self._on_hold = True

    def release(self) -> None:
        self._on_hold = False
        self._call_next()

    def close(self, why: str) -> None:
        """Refuses new entries and those that wait, with the reason `why`; the entry at the machine continues."""
        self._closed = why
        for entry in self._queue:
            if not entry.turn.done():
                self._send_away(entry, why)

    def refuse_waiting(self, why: str) -> None:
        """Refuses the entries that wait, except those of `join_first`; the entry at the machine continues."""
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

    def step_back(self, entry: QueueEntry) -> None:
        entry.turn = asyncio.get_running_loop().create_future()
        if self._closed:
            self._send_away(entry, self._closed)

    def leave(self, entry: QueueEntry) -> None:
        self._queue.remove(entry)
        if not self._queue:
            self._empty.set()
        self._call_next()

    def _send_away(self, entry: QueueEntry, why: str) -> None:
        entry.turn.set_exception(MachineBusy(why))
        entry.turn.exception()  # marks it as seen: the caller may be gone

    def _call_next(self) -> None:
        for place, entry in enumerate(self._queue):
            if place >= self.ahead:
                break
            if not (entry.is_near or entry.turn.done()):  # a refused entry prepares nothing
                entry.is_near = True
                if entry.on_near:
                    entry.on_near()
        if self._queue and not (head := self._queue[0]).turn.done() and (head.first or not self._on_hold):
            head.turn.set_result(None)
