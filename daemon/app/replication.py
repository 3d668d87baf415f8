"""Closures on their way upstream, as configured; without `[upstream]` they stay in the outbox."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from daemon.app.house import House, now_millis
from daemon.app.reload import BringIntoForce
from daemon.core.delivery import Backlog, Outgoing
from daemon.settings import Settings, Upstream, secret_path
from daemon.store.outbox import Outbox
from daemon.upstream.event import compose
from daemon.upstream.kinds import Receiver, open_receiver
from daemon.upstream.options import Options
from daemon.usecases.desk import DeskEvent
from daemon.usecases.replicate import Backoff, Replicator


@asynccontextmanager
async def replicating(house: House) -> AsyncIterator[Replication]:
    """Runs beside everything else and holds nothing of it."""
    replication = Replication(house.store.outbox)
    house.listeners.append(replication.hear)
    await replication.take(house.settings)()
    try:
        yield replication
    finally:
        await replication.stop()


class Replication:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._receiver: Receiver | None = None
        self._replicator: Replicator[Outgoing] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def configured(self) -> bool:
        """Otherwise what waits upstream waits for nobody."""
        return self._replicator is not None

    async def figures(self) -> Sequence[Backlog]:
        """Those of `mcfd upstream status`."""
        return await self._outbox.backlog()

    def hear(self, event: DeskEvent) -> None:
        if self._replicator is not None and event.type == "closure.created":
            self._replicator.wake(event.book.nim, event.book.mode)

    def take(self, settings: Settings) -> BringIntoForce:
        """BadOptions when nobody can be sent to as configured; what runs goes on until the answer is called."""
        upstream = settings.upstream
        receiver = None if upstream is None else open_receiver(upstream.kind, _options(upstream))

        async def into_force() -> None:
            await self.stop()
            if upstream is not None and receiver is not None:
                self._start(upstream, receiver)

        return into_force

    async def stop(self) -> None:
        """What is on its way may arrive and be sent once more: the receiver knows it by its report_id."""
        task, self._task, self._replicator = self._task, None, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await receiver.aclose()

    def _start(self, upstream: Upstream, receiver: Receiver) -> None:
        self._receiver = receiver
        self._replicator = _replicator(self._outbox, receiver, upstream)
        self._task = asyncio.get_running_loop().create_task(self._replicator.run(), name="replication")


def _replicator(outbox: Outbox, receiver: Receiver, upstream: Upstream) -> Replicator[Outgoing]:
    return Replicator(
        outbox,
        receiver,
        partial(compose, box=upstream.box_name),
        clock=now_millis,
        backoff=Backoff(most=upstream.retry_max),
        sandbox=upstream.include_sandbox,
    )


def _options(upstream: Upstream) -> Options:
    files = [path for path in (upstream.secret_file, upstream.key_file) if path is not None]
    return Options(
        url=upstream.url,
        key_files=tuple(secret_path(path) for path in files),
        credentials_file=None if upstream.credentials_file is None else secret_path(upstream.credentials_file),
        tls_ca=upstream.tls_ca,
        subject_prefix=upstream.subject_prefix,
        allow_plain=upstream.allow_plain_http,
    )
