"""What a request is known by to the use cases and the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from daemon.core.audit import DAEMON, Actor


def key_hash_of(key: str) -> bytes:
    """Of an Idempotency-Key, as the ledger has it."""
    return hashlib.sha256(key.encode()).digest()[:16]


class Call(msgspec.Struct, frozen=True):
    """`key` is the Idempotency-Key as sent, empty without one; `fingerprint` tells one request of a book from another
    (SHA-256 over method, path without the NIM, and body, cut to 16 bytes); `by` is who asks, for the audit log."""

    request_id: str = ""
    key: str = ""
    fingerprint: bytes = b""
    by: Actor = DAEMON
    strict: bool = False
    """Whether unknown fields are refused (`Mcfd-Strict`, or a strict key)."""
    earlier: Callable[[Iterable[str]], Iterable[bytes]] | None = None
    """The fingerprints that version 0.1.0 stored: its path had the NIM as it was sent, or as one of those given."""
    expires: float = 0.0
    """When nothing is sent to the machine for it any more (loop time, decision 46); 0 for never."""

    @property
    def key_hash(self) -> bytes:
        return key_hash_of(self.key) if self.key else b""

    def is_request(self, fingerprint: bytes, nims: Iterable[str] = ()) -> bool:
        """Whether a stored fingerprint is of this request; `nims` are the names of the book's machine."""
        return fingerprint == self.fingerprint or (self.earlier is not None and fingerprint in self.earlier(nims))


INTERNAL: Final = Call()
"""No request: the daemon itself, a tool, a test."""
