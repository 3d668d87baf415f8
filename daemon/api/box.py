"""What the composition root knows of the box itself and of its lines, for `GET /metrics`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from daemon.core.delivery import Backlog
from daemon.usecases.worker.machine_worker import MachineWorker


@dataclass(frozen=True, kw_only=True)
class LineFigures:
    """Of one serial line since the start; as `bridge.link.LineStatistics`."""

    exchanges: int
    bytes_sent: int
    bytes_received: int
    retries: int
    garbage: int
    stale: int


@dataclass(frozen=True, kw_only=True)
class LineSlot:
    """Ten minutes of a line from `at` (ms) on; `line_ms` is the mean time at the machine of what was certified in them."""

    at: int
    exchanges: int
    retries: int
    garbage: int
    certified: int
    line_ms: int


@dataclass(frozen=True, kw_only=True)
class BoxFigures:
    """`outbox` by destination: `upstream`, or the name of a webhook (a URL may be a secret).
    `verified_at` is when `mcfd verify` last found the ledger sound (ms), 0 for never."""

    outbox: dict[str, tuple[Backlog, ...]]
    disk_free_bytes: int
    ledger_bytes: int
    verified_at: int
    commits: int


@dataclass(frozen=True, kw_only=True)
class Box:
    """`line` gives None for a worker without a line, as that of a machine switched off; `history` its last day, oldest first."""

    figures: Callable[[], Awaitable[BoxFigures]]
    line: Callable[[MachineWorker], LineFigures | None]
    history: Callable[[MachineWorker], Sequence[LineSlot]] = lambda _: ()
