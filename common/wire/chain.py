"""The head of a book's chain at a closure, as whoever received the closure can compute it again.

`SHA-256(previous ‖ MessagePack(list))`. The list is flat but for the counters and begins with the kind, so that no closure can
pass for a certification; times are milliseconds since 1970, and the body goes in as the bytes that the box stored, never as
encoded afresh."""

from __future__ import annotations

import hashlib

import msgspec

GENESIS = bytes(32)
"""What the first entry of a book is chained to."""


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """What the hash of a closure is over. `counters` are (tc, fvc, frc)."""

    z_number: int
    report_id: str
    period_start: int
    period_end: int
    created_at: int
    certs_count: int
    total_ttc: int
    counters: tuple[int, int, int]
    unexplained: int
    first_seq: int
    last_seq: int
    body: bytes


def closure_head(previous: bytes, link: ChainLink) -> bytes:
    """`previous` is what the closure is chained to: the report's `chain_previous`."""
    return chained(previous, "closure", *msgspec.structs.astuple(link))


def chained(previous: bytes, *content: object) -> bytes:
    """One link: the hash before it, and a flat list that begins with the kind."""
    return hashlib.sha256(previous + msgspec.msgpack.encode(content)).digest()
