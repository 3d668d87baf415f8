"""The box's own figures for `GET /metrics`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from daemon.api.box import Box, BoxFigures, LineFigures
from daemon.app.outward.replication import Replication
from daemon.app.outward.webhooks import Webhooks
from daemon.app.runtime import Runtime
from daemon.app.upkeep.line_history import LineHistory
from daemon.core.delivery import Backlog
from daemon.store.store import Store
from daemon.store.tables.events import UPSTREAM
from daemon.usecases.worker.machine_worker import MachineWorker


def box(runtime: Runtime, replication: Replication, webhooks: Webhooks, history: LineHistory) -> Box:
    def destinations() -> list[str]:
        """By their names: a URL may be a secret."""
        return [*([UPSTREAM] if replication.configured else []), *webhooks.lanes]

    async def figures() -> BoxFigures:
        path = runtime.settings.storage.path
        disk = os.statvfs(path)
        return BoxFigures(
            outbox=await _outbox(runtime.store, destinations()),
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            ledger_bytes=sum(_size(path.with_name(path.name + suffix)) for suffix in ("", "-wal")),
            verified_at=await runtime.store.retention.verified_at(),
            damaged=len(runtime.store.retention.damage().all),
            commits=runtime.store.retention.commits,
        )

    def line(worker: MachineWorker) -> LineFigures | None:
        counters = runtime.counters.get(worker.book.id)
        return None if counters is None else LineFigures(**msgspec.structs.asdict(counters))

    return Box(figures=figures, line=line, history=history.of)


async def _outbox(store: Store, destinations: Sequence[str]) -> dict[str, tuple[Backlog, ...]]:
    return {name: tuple(await store.outbox_for(name).backlog()) for name in destinations}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
