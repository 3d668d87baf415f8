"""Who is next at a machine: first come, first served, a bounded number waiting, each with a bounded patience."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

from daemon.core.errors import MachineBusy


class Ticket:
    """A place in the line. `leave` is due exactly once, whatever happened; as a context manager it is seen to."""

    __slots__ = ("_turns", "near", "turn")

    def __init__(self, turns: Turns) -> None:
        loop = asyncio.get_running_loop()
        self._turns = turns
        self.near: asyncio.Future[None] = loop.create_future()
        self.turn: asyncio.Future[None] = loop.create_future()

    async def wait_near(self, deadline: float) -> None:
        await self._wait(self.near, deadline)

    async def wait_turn(self, deadline: float) -> None:
        await self._wait(self.turn, deadline)

    async def _wait(self, place: asyncio.Future[None], deadline: float) -> None:
        if place.done():
            return place.result()
        timeout = max(0.0, deadline - asyncio.get_running_loop().time())
        done, _ = await asyncio.wait([place], timeout=timeout)
        if not done:
            raise MachineBusy("the machine is busy with other invoices; nothing was sent", self._turns.patience_hint)
        return place.result()

    def leave(self) -> None:
        self._turns._leave(self)  # noqa: SLF001  the two classes are one thing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class Turns:
    """`limit` bounds who may wait, `ahead` how many of them may already prepare (write their intent) for their turn."""

    def __init__(self, limit: int = 256, ahead: int = 8) -> None:
        self.limit = limit
        self.ahead = ahead
        self.patience_hint = 2
        self._queue: deque[Ticket] = deque()
        self._closed = ""
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._queue)

    def join(self) -> Ticket:
        """The next place in the line; MachineBusy when there is none."""
        if self._closed:
            raise MachineBusy(self._closed)
        if len(self._queue) > self.limit:
            raise MachineBusy("too many invoices are waiting for this machine; nothing was sent", self.patience_hint)
        ticket = Ticket(self)
        self._queue.append(ticket)
        self._empty.clear()
        self._call_next()
        return ticket

    def close(self, why: str) -> None:
        """No new places, and whoever has not had a turn is told so; the one at the machine finishes."""
        self._closed = why
        for ticket in list(self._queue)[1:]:
            for place in (ticket.near, ticket.turn):
                if not place.done():
                    place.set_exception(MachineBusy(why))
                    place.exception()  # marks it as seen: nobody may be looking any more

    async def drained(self) -> None:
        """Returns once nobody holds or awaits a turn."""
        await self._empty.wait()

    def _leave(self, ticket: Ticket) -> None:
        self._queue.remove(ticket)
        if not self._queue:
            self._empty.set()
        self._call_next()

    def _call_next(self) -> None:
        for place, ticket in enumerate(self._queue):
            if place == 0 and not ticket.turn.done():
                ticket.turn.set_result(None)
            if place >= self.ahead:
                break
            if not ticket.near.done():
                ticket.near.set_result(None)
