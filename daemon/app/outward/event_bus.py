"""Events of the workers, for their listeners: first it is in the ledger's list of events, then its readers are notified.

The ledger writes certifications, closures, attention and the tax server's alert down by itself; a machine that comes and
goes is written down here, in its turn, so that a screen that comes back hears of that too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import structlog

from daemon.core.clock import Clock
from daemon.core.errors import StorageError
from daemon.core.events import CONNECTED, DISCONNECTED, IN_DOUBT, PRINTER, SLOW
from daemon.core.ledger.book import Book
from daemon.usecases.delivery.events import EventNotifier
from daemon.usecases.worker.machine_worker import BookEvent

log = structlog.get_logger(__name__)

WRITTEN_HERE = frozenset({CONNECTED, DISCONNECTED, IN_DOUBT, PRINTER, SLOW})
LAST_WORDS = 2.0
"""Seconds left at the stop to what was heard and is not written down yet."""


class EventRecorder(Protocol):
    async def add(self, book: Book, kind: str, *, at: int, ref: int = 0, detail: str = "") -> None: ...


class EventBus:
    """`listeners` are called once an event can be read from the ledger."""

    def __init__(self, events: EventRecorder, clock: Clock) -> None:
        self.notifier = EventNotifier()
        self.listeners: list[Callable[[BookEvent], None]] = []
        self._events = events
        self._clock = clock
        self._unwritten: asyncio.Queue[tuple[BookEvent, int]] = asyncio.Queue()

    def on_event(self, event: BookEvent) -> None:
        if event.type in WRITTEN_HERE:
            self._unwritten.put_nowait((event, self._clock()))
        else:
            self._pass_on(event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Until what was heard is written down."""
        task = asyncio.get_running_loop().create_task(self._write(), name="events")
        try:
            yield
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await self._unwritten.join()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _write(self) -> None:
        while True:
            event, at = await self._unwritten.get()
            try:
                await self._events.add(event.book, event.type, at=at, ref=event.ref, detail=event.detail)
                self._pass_on(event)
            except StorageError as error:
                log.warning("event.not_stored", nim=event.book.nim, type=event.type, cause=str(error))
            finally:
                self._unwritten.task_done()

    def _pass_on(self, event: BookEvent) -> None:
        self.notifier.notify(event.book)
        for listener in self.listeners:
            listener(event)
