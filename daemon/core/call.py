"""What a request is known by to the use cases and the ledger."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from daemon.core.audit import DAEMON, Actor


class Call(msgspec.Struct, frozen=True):
    """`key` is the Idempotency-Key as sent, empty without one; `fingerprint` tells one request from another
    (SHA-256 over method, path and body, cut to 16 bytes); `by` is who asks, for the audit log."""

    request_id: str = ""
    key: str = ""
    fingerprint: bytes = b""
    by: Actor = DAEMON
    strict: bool = False
    """Whether fields that nobody knows are refused (`Mcfd-Strict`, or a strict key)."""

    @property
    def key_hash(self) -> bytes:
        return hashlib.sha256(self.key.encode()).digest()[:16] if self.key else b""


NOBODY: Final = Call()
"""No request: the daemon itself, a tool, a test."""
