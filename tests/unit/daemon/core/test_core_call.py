"""What a request is known by in the ledger."""

from __future__ import annotations

import hashlib

from daemon.core.audit import Call


def test_an_idempotency_key_is_kept_as_half_a_hash() -> None:
    """The first sixteen bytes of its SHA-256, which a ledger keeps for a week and finds again after an upgrade; nothing without a key."""
    assert Call(key="Éts 7").key_hash == hashlib.sha256("Éts 7".encode()).digest()[:16]
    assert Call().key_hash == b""
