"""Events on their way to webhooks, as configured: each webhook for itself, in the order of each book, again until it is taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
import structlog

from daemon.app.outward.replication import webhook_receiver
from daemon.app.reload import BringIntoForce
from daemon.app.runtime import Runtime
from daemon.app.upkeep.housekeeping import now_millis
from daemon.core.audit import Actor
from daemon.core.clock import Clock
from daemon.core.delivery import Posting
from daemon.core.errors import StorageError
from daemon.core.events import CONNECTED, DISCONNECTED, IN_DOUBT, PRINTER, SLOW
from daemon.core.ledger.book import Book
from daemon.settings import Settings
from daemon.settings.model import Webhook
from daemon.upstream.options import UpstreamReceiver
from daemon.usecases.delivery.events import EventNotifier
from daemon.usecases.delivery.replicate import Backoff, Replicator
from daemon.usecases.delivery.webhook_events import WebhookEvents, compose
from daemon.usecases.worker.machine_worker import BookEvent

log = structlog.get_logger(__name__)

WRITTEN_HERE = frozenset({CONNECTED, DISCONNECTED, IN_DOUBT, PRINTER, SLOW})
LAST_WORDS = 2.0
"""Seconds left at the stop to what was heard and is not written down yet."""


class Sender(msgspec.Struct, frozen=True):
    replicator: Replicator[Posting]
    receiver: UpstreamReceiver
    task: asyncio.Task[None]


@asynccontextmanager
async def posting(runtime: Runtime) -> AsyncIterator[Webhooks]:
    webhooks = Webhooks(runtime)
    runtime.event_bus.listeners.append(webhooks.on_event)
    with contextlib.suppress(StorageError):  # it is told, and done at the next reload or start
        await webhooks.take(runtime.settings)()
    try:
        yield webhooks
    finally:
        await webhooks.stop()


class Webhooks:
    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._senders: list[Sender] = []
        self.lanes: tuple[str, ...] = ()

    async def send_again(self, *, at: int, by: Actor) -> int:
        """What any of them refused; how many."""
        count = 0
        for lane in self.lanes:
            count += await self._store.outbox_for(lane).replay(nim=None, from_z=None, at=at, by=by)
        self.wake_all()
        return count

    def wake_all(self) -> None:
        """More waits in the outbox of any of them."""
        for sender in self._senders:
            sender.replicator.wake_all()

    def offer_parked(self) -> None:
        for sender in self._senders:
            sender.replicator.offer_parked()

    def on_event(self, event: BookEvent) -> None:
        for sender in self._senders:
            sender.replicator.wake(event.book.nim, event.book.mode)

    def take(self, settings: Settings) -> BringIntoForce:
        """BadOptions when one of them cannot be sent to as configured; what runs goes on until the answer is called."""
        receivers = [webhook_receiver(number, webhook) for number, webhook in enumerate(settings.webhook)]

        async def into_force() -> None:
            await self.stop()
            self.lanes = tuple(webhook.lane for webhook in settings.webhook)
            self._store.send_to(settings.lanes(), settings.live_only())
            try:
                await self._resettle(settings)
            finally:  # a disk that takes nothing at the moment keeps no sender from starting
                for webhook, receiver in zip(settings.webhook, receivers, strict=True):
                    self._start(webhook, receiver)

        return into_force

    async def _resettle(self, settings: Settings) -> None:
        """StorageError when the disk takes nothing at the moment: it is told, and what was left is done later."""
        try:
            done = await self._store.retention.resettle({webhook.lane: webhook.url for webhook in settings.webhook})
        except StorageError as error:
            log.error("webhook.not_resettled", reason=str(error))  # noqa: TRY400  one line, not a traceback
            raise
        if done.moved:
            log.info("webhook.renamed", events=done.moved)
        if done.gone:
            log.warning("webhook.forgotten", events=done.gone)

    async def stop(self) -> None:
        """What is on its way may arrive and be sent once more: the receiver knows it by its id."""
        senders, self._senders = self._senders, []
        for sender in senders:
            sender.task.cancel()
        for sender in senders:
            with contextlib.suppress(asyncio.CancelledError):
                await sender.task
            await sender.receiver.aclose()

    def _start(self, webhook: Webhook, receiver: UpstreamReceiver) -> None:
        replicator = Replicator[Posting](
            WebhookEvents(
                self._store.outbox_for(webhook.lane), self._store.events, self._store.ledger, self._store.journal.books
            ),
            receiver,
            compose,
            clock=now_millis,
            backoff=Backoff(most=webhook.retry_max),
            subject="event",
            destination=webhook.lane,
            sandbox=webhook.include_sandbox,
        )
        task = asyncio.get_running_loop().create_task(replicator.run(), name="webhook")
        self._senders.append(Sender(replicator, receiver, task))


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
