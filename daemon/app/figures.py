"""The box's own figures for `GET /metrics`."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

from daemon.api.box import Box, BoxFigures, LineFigures
from daemon.app.house import House
from daemon.app.replication import Replication
from daemon.app.webhooks import Webhooks
from daemon.core.delivery import Backlog
from daemon.store.events import UPSTREAM
from daemon.store.store import Store
from daemon.usecases.desk import Desk


def box(house: House, replication: Replication, webhooks: Webhooks) -> Box:
    def destinations() -> dict[str, str]:
        """What each is called in public, and in the ledger: a URL may be a secret."""
        upstream = {UPSTREAM: UPSTREAM} if replication.configured else {}
        return {**upstream, **{f"webhook-{number}": url for number, url in enumerate(webhooks.urls)}}

    async def figures() -> BoxFigures:
        path = house.settings.storage.path
        disk = os.statvfs(path)
        return BoxFigures(
            outbox=await _outbox(house.store, destinations()),
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            ledger_bytes=sum(_size(path.with_name(path.name + suffix)) for suffix in ("", "-wal")),
            verified_at=await house.store.verified_at(),
            commits=house.store.commits,
        )

    def line(desk: Desk) -> LineFigures | None:
        counters = house.counters.get(desk.book.id)
        return None if counters is None else LineFigures(**asdict(counters))

    return Box(figures=figures, line=line)


async def _outbox(store: Store, destinations: dict[str, str]) -> dict[str, tuple[Backlog, ...]]:
    return {name: tuple(await store.outbox_for(key).backlog()) for name, key in destinations.items()}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
