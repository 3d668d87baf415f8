"""Events on their way to webhooks, as configured: each webhook for itself, in the order of each book, again until it is taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from daemon.app.house import House, now_millis
from daemon.app.reload import BringIntoForce
from daemon.core.delivery import Posting
from daemon.settings import Settings, secret_path
from daemon.settings.model import Webhook
from daemon.upstream.kinds import Receiver
from daemon.upstream.options import BadOptions, Options
from daemon.usecases.desk import DeskEvent
from daemon.usecases.notices import Notices, compose
from daemon.usecases.replicate import Backoff, Replicator

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Sender:
    replicator: Replicator[Posting]
    receiver: Receiver
    task: asyncio.Task[None]


@asynccontextmanager
async def posting(house: House) -> AsyncIterator[Webhooks]:
    webhooks = Webhooks(house)
    house.bus.listeners.append(webhooks.hear)
    await webhooks.take(house.settings)()
    try:
        yield webhooks
    finally:
        await webhooks.stop()


class Webhooks:
    def __init__(self, house: House) -> None:
        self._store = house.store
        self._senders: list[Sender] = []
        self.urls: tuple[str, ...] = ()

    def hear(self, event: DeskEvent) -> None:
        for sender in self._senders:
            sender.replicator.wake(event.book.nim, event.book.mode)

    def take(self, settings: Settings) -> BringIntoForce:
        """BadOptions when one of them cannot be sent to as configured; what runs goes on until the answer is called."""
        receivers = [_open(number, webhook) for number, webhook in enumerate(settings.webhook)]

        async def into_force() -> None:
            await self.stop()
            self.urls = tuple(webhook.url for webhook in settings.webhook)
            self._store.send_to(settings.lanes(), settings.live_only())
            if gone := await self._store.forget_destinations(but=settings.lanes()):
                log.warning("webhook.forgotten", events=gone)
            for webhook, receiver in zip(settings.webhook, receivers, strict=True):
                self._start(webhook, receiver)

        return into_force

    async def stop(self) -> None:
        """What is on its way may arrive and be sent once more: the receiver knows it by its id."""
        senders, self._senders = self._senders, []
        for sender in senders:
            sender.task.cancel()
        for sender in senders:
            with contextlib.suppress(asyncio.CancelledError):
                await sender.task
            await sender.receiver.aclose()

    def _start(self, webhook: Webhook, receiver: Receiver) -> None:
        replicator = Replicator[Posting](
            Notices(self._store.outbox_for(webhook.url), self._store, self._store.books),
            receiver,
            compose,
            clock=now_millis,
            backoff=Backoff(most=webhook.retry_max),
            subject="event",
            sandbox=webhook.include_sandbox,
        )
        task = asyncio.get_running_loop().create_task(replicator.run(), name="webhook")
        self._senders.append(Sender(replicator, receiver, task))


def _open(number: int, webhook: Webhook) -> Receiver:
    from daemon.upstream.webhook import open_webhook  # noqa: PLC0415  # with its HTTP client: most boxes have no webhook

    options = Options(
        url=webhook.url,
        key_files=(secret_path(webhook.secret_file),),
        tls_ca=webhook.tls_ca,
        allow_plain=webhook.allow_plain_http,
    )
    try:
        return open_webhook(options)
    except BadOptions as error:
        raise BadOptions(f"webhook[{number}]: {error}") from None
