"""Sends events to webhooks as configured: each webhook on its own, in the order of each book, until it has accepted."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from common.wire.instants import now_millis
from daemon.app.outward.replication import Senders, webhook_receiver
from daemon.app.reload import BringIntoForce
from daemon.app.runtime import Runtime
from daemon.core.delivery import Posting, UpstreamReceiver
from daemon.core.errors import StorageError
from daemon.settings import Settings
from daemon.settings.model import Webhook
from daemon.store.outbox import resettle
from daemon.usecases.delivery.replicate import Backoff, Replicator
from daemon.usecases.delivery.webhook_events import WebhookEvents, compose
from daemon.usecases.worker.machine_worker import BookEvent

log = structlog.get_logger(__name__)


@asynccontextmanager
async def posting(runtime: Runtime) -> AsyncIterator[Webhooks]:
    webhooks = Webhooks(runtime.store)
    runtime.event_bus.listeners.append(webhooks.on_event)
    with contextlib.suppress(StorageError):  # it is logged, and repeated at the next reload or start
        await webhooks.prepare(runtime.settings)()
    try:
        yield webhooks
    finally:
        await webhooks.stop()


class Webhooks(Senders):
    def on_event(self, event: BookEvent) -> None:
        self.wake(event.book.nim, event.book.mode)

    def prepare(self, settings: Settings) -> BringIntoForce:
        """Checks the settings and returns the step that applies them; until then nothing changes. Raises BadOptions."""
        receivers = [webhook_receiver(number, webhook) for number, webhook in enumerate(settings.webhook)]

        async def into_force() -> None:
            await self.stop()
            self.destinations = tuple(webhook.destination for webhook in settings.webhook)
            self._store.send_to(settings.destinations(), settings.live_only())
            try:
                await self._resettle(settings)
            finally:  # the senders start even if the disk takes no write now
                for webhook, receiver in zip(settings.webhook, receivers, strict=True):
                    self._start(webhook, receiver)

        return into_force

    async def _resettle(self, settings: Settings) -> None:
        """Raises StorageError if the disk takes no write now: it is logged, and repeated later."""
        try:
            done = await self._store.retention.write(
                resettle, {webhook.destination: webhook.url for webhook in settings.webhook}
            )
        except StorageError as error:
            log.error("webhook.not_resettled", reason=str(error))  # noqa: TRY400  one line, not a traceback
            raise
        if done.moved:
            log.info("webhook.renamed", events=done.moved)
        if done.gone:
            log.warning("webhook.forgotten", events=done.gone)

    def _start(self, webhook: Webhook, receiver: UpstreamReceiver) -> None:
        outbox = self._store.outbox_for(webhook.destination)
        replicator = Replicator[Posting](
            outbox,
            WebhookEvents(outbox, self._store.events, self._store.ledger).waiting,
            receiver,
            compose,
            clock=now_millis,
            backoff=Backoff(most=webhook.retry_max),
            subject="event",
            destination=webhook.destination,
            sandbox=webhook.include_sandbox,
        )
        self.begin(replicator, receiver, webhook=replicator.run())
