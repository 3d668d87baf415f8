"""What an Idempotency-Key was used for (decision 6)."""

from __future__ import annotations

import msgspec

from daemon.core.certification import Record
from daemon.core.closure import Closure


class KeyUse(msgspec.Struct, frozen=True):
    """What an Idempotency-Key stands for: an attempt, a closure, or (cancel-pending) a stored answer."""

    fingerprint: bytes
    record: Record | None = None
    closure: Closure | None = None
    answer: bytes = b""
