"""What a Z freezes, and what an Idempotency-Key stands for."""

from __future__ import annotations

import msgspec

from daemon.core.ledger.attempt import Record
from daemon.core.machine.state import FiscalCounters


class Closure(msgspec.Struct, frozen=True):
    """One stored Z. `body` is the Z report as JSON, exactly as the till got it."""

    z_number: int
    report_id: str
    period_start: int
    period_end: int
    created_at: int
    certs_count: int
    total_ttc: int
    counters: FiscalCounters
    unexplained: int
    first_seq: int
    last_seq: int
    body: bytes
    hash: bytes
    chained_at: int = 0
    chained_start: int = 0
    """What the hash and the body hold instead of `created_at` and `period_start`, where the time was repaired since; else 0."""


class KeyUse(msgspec.Struct, frozen=True):
    """What an Idempotency-Key stands for: an attempt, a closure, or (cancel-pending) a stored answer."""

    fingerprint: bytes
    record: Record | None = None
    closure: Closure | None = None
    answer: bytes = b""
