"""Events on their way to webhooks, as configured: each webhook for itself, in the order of each book, again until it is taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import structlog

from daemon.app.outward.replication import webhook_receiver
from daemon.app.reload import BringIntoForce
from daemon.app.runtime import Runtime
from daemon.app.upkeep.housekeeping import now_millis
from daemon.core.audit import Actor
from daemon.core.delivery import Posting
from daemon.core.errors import StorageError
from daemon.settings import Settings
from daemon.settings.model import Webhook
from daemon.store.outbox import resettle
from daemon.upstream.options import UpstreamReceiver
from daemon.usecases.delivery.replicate import Backoff, Replicator
from daemon.usecases.delivery.webhook_events import WebhookEvents, compose
from daemon.usecases.worker.machine_worker import BookEvent

log = structlog.get_logger(__name__)


class Sender(msgspec.Struct, frozen=True):
    replicator: Replicator[Posting]
    receiver: UpstreamReceiver
    task: asyncio.Task[None]


@asynccontextmanager
async def posting(runtime: Runtime) -> AsyncIterator[Webhooks]:
    webhooks = Webhooks(runtime)
    runtime.event_bus.listeners.append(webhooks.on_event)
    with contextlib.suppress(StorageError):  # it is logged, and done at the next reload or start
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
        """StorageError when the disk takes nothing at the moment: it is logged, and the rest is done later."""
        try:
            done = await self._store.retention.write(
                resettle, {webhook.lane: webhook.url for webhook in settings.webhook}
            )
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
            WebhookEvents(self._store.outbox_for(webhook.lane), self._store.events, self._store.ledger),
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
