"""Closures on their way upstream, as configured; without `[upstream]` they stay in the outbox."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from daemon.api.deps import Figures
from daemon.app.house import House, now_millis
from daemon.core.delivery import Backlog
from daemon.settings import Upstream, secret_path
from daemon.store.outbox import Outbox
from daemon.upstream.event import compose
from daemon.upstream.kinds import Receiver, open_receiver
from daemon.upstream.options import Options
from daemon.usecases.desk import DeskEvent
from daemon.usecases.replicate import Backoff, Replicator


@asynccontextmanager
async def replicating(house: House) -> AsyncIterator[Figures]:
    """Runs beside everything else and holds nothing of it; the figures are those of `mcfd upstream status`."""
    outbox = house.store.outbox

    async def figures() -> Sequence[Backlog]:
        backlog: Sequence[Backlog] = await outbox.backlog()
        return backlog

    upstream = house.settings.upstream
    if upstream is None:
        yield figures
        return
    receiver = open_receiver(upstream.kind, _options(upstream))
    replicator = _replicator(outbox, receiver, upstream)

    def wake(event: DeskEvent) -> None:
        if event.type == "closure.created":
            replicator.wake(event.book.nim, event.book.mode)

    house.listeners.append(wake)
    task = asyncio.get_running_loop().create_task(replicator.run(), name="replication")
    try:
        yield figures
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await receiver.aclose()


def _replicator(outbox: Outbox, receiver: Receiver, upstream: Upstream) -> Replicator:
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
