"""What the composition root knows of the box itself and of its lines, for `GET /metrics`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from daemon.core.delivery import Backlog
from daemon.usecases.worker.machine_worker import MachineWorker


class LineFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of one serial line since the start; as `bridge.link.LineStatistics`."""

    exchanges: int
    bytes_sent: int
    bytes_received: int
    retries: int
    garbage: int
    stale: int


class LineSlot(msgspec.Struct, frozen=True, kw_only=True):
    """Ten minutes of a line from `at` (ms) on; `line_ms` is the mean time at the machine of what was certified in them."""

    at: int
    exchanges: int
    retries: int
    garbage: int
    certified: int
    line_ms: int


class BoxFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`outbox` by destination: `upstream`, or the name of a webhook (a URL may be a secret).
    `verified_at` is when `mcfd verify` last found the ledger sound (ms), 0 for never; `damaged` how much is known to be damaged in it."""

    outbox: dict[str, tuple[Backlog, ...]]
    disk_free_bytes: int
    ledger_bytes: int
    verified_at: int
    damaged: int = 0
    commits: int


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """`line` gives None for a worker without a line, as that of a machine switched off; `history` its last day, oldest first."""

    figures: Callable[[], Awaitable[BoxFigures]]
    line: Callable[[MachineWorker], LineFigures | None]
    history: Callable[[MachineWorker], Sequence[LineSlot]] = lambda _: ()
