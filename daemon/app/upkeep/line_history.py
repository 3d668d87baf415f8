"""Statistics of each line for the last 24 hours in slots of ten minutes, in memory; figures for `GET /metrics`."""

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from bridge.link import LineStatistics
from common.wire.instants import now_millis
from daemon.api.box import Box, BoxFigures, LineSlot
from daemon.app.outward.replication import Replication
from daemon.app.outward.webhooks import Webhooks
from daemon.app.runtime import Runtime
from daemon.core.delivery import Backlog
from daemon.store.retention import VERIFIED_AT
from daemon.store.store import Store
from daemon.store.tables.events import UPSTREAM
from daemon.store.tables.meta import read_damage, read_number
from daemon.usecases.worker.machine_worker import MachineWorker

SLOT_MS: Final = 600_000
SLOTS: Final = 24 * 6


Counts: TypeAlias = tuple[int, int, int, int, int]
"""Of a line since the start: exchanges, retries, garbage, timed certifications and their total machine time in ms."""


class LineHistory:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._slots: dict[int, deque[LineSlot]] = {}
        self._before: dict[int, Counts] = {}
        self._began = _slot_of(now_millis())

    async def run(self) -> None:
        """Closes a slot every ten minutes; a change of the clock only makes one slot longer or shorter."""
        while True:
            await asyncio.sleep((SLOT_MS - now_millis() % SLOT_MS) / 1000)
            for worker in self._runtime.workers:
                slot = self._open_slot(worker)
                self._slots.setdefault(worker.book.id, deque(maxlen=SLOTS - 1)).append(slot)
                self._before[worker.book.id] = self._counts(worker)
            self._began = _slot_of(now_millis())

    def of(self, worker: MachineWorker) -> tuple[LineSlot, ...]:
        """Slots, oldest first; the last one is still open."""
        return (*self._slots.get(worker.book.id, ()), self._open_slot(worker))

    def _open_slot(self, worker: MachineWorker) -> LineSlot:
        pairs = zip(self._counts(worker), self._before.get(worker.book.id, (0,) * 5), strict=True)
        exchanges, retries, garbage, certified, line_ms = (now - before for now, before in pairs)
        return LineSlot(
            at=self._began,
            exchanges=exchanges,
            retries=retries,
            garbage=garbage,
            certified=certified,
            line_ms=line_ms // certified if certified else 0,
        )

    def _counts(self, worker: MachineWorker) -> Counts:
        line = self._runtime.counters.get(worker.book.id) or LineStatistics()
        timed = worker.statistics.line
        return line.exchanges, line.retries, line.garbage, sum(timed.counts), round(timed.total * 1000)


def _slot_of(at: int) -> int:
    return at - at % SLOT_MS


def box(runtime: Runtime, replication: Replication, webhooks: Webhooks, history: LineHistory) -> Box:
    def destinations() -> list[str]:
        """Names, not URLs: a URL may be a secret."""
        return [*([UPSTREAM] if replication.configured else []), *webhooks.destinations]

    async def figures() -> BoxFigures:
        path = runtime.settings.storage.path
        disk = os.statvfs(path.parent)
        return BoxFigures(
            outbox=await _outbox(runtime.store, destinations()),
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            ledger_bytes=sum(_size(path.with_name(path.name + suffix)) for suffix in ("", "-wal")),
            verified_at=runtime.store.retention.peek(read_number, VERIFIED_AT),
            damaged=len(runtime.store.retention.peek(read_damage).all),
            commits=runtime.store.retention.commits,
        )

    def line(worker: MachineWorker) -> dict[str, int] | None:
        counters = runtime.counters.get(worker.book.id)
        return None if counters is None else msgspec.structs.asdict(counters)

    return Box(figures=figures, line=line, history=history.of)


async def _outbox(store: Store, destinations: Sequence[str]) -> dict[str, tuple[Backlog, ...]]:
    return {name: tuple(await store.outbox_for(name).backlog()) for name in destinations}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
