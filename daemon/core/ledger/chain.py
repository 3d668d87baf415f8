"""Tamper evidence: every record and closure of a book carries SHA-256 over the hash before it and its own content.

The content is MessagePack of one flat list that begins with the kind, so that no closure can pass for a certification.
The invoice goes in as the bytes it is stored as, never as encoded afresh: a later version with more fields in an invoice
must still find today's hashes right.
"""

from __future__ import annotations

import hashlib

import msgspec

from daemon.core.ledger.attempt import Record
from daemon.core.ledger.closure import Closure
from daemon.core.ledger.entries import Placed

GENESIS = bytes(32)
"""What the first record of a book is chained to."""


def record_hash(previous: bytes, record: Record, invoice: bytes) -> bytes:
    """Of an attempt that ended, over all its fields but `hash`; `invoice` is `record.invoice` as stored."""
    counters = record.counters
    return _link(
        previous,
        "certification",
        record.id,
        record.seq,
        record.number,
        record.type,
        record.state,
        record.begun_at,
        record.chained_at or record.ended_at,
        (record.base.tc, record.base.fvc, record.base.frc),
        None if counters is None else (counters.tc, counters.fvc, counters.frc),
        record.total_ttc,
        record.code,
        record.machine_time,
        record.ifu,
        record.reason,
        record.line_ms,
        record.duration_ms,
        record.request_id,
        invoice,
    )


def closure_hash(previous: bytes, closure: Closure) -> bytes:
    """Over all fields of a closure but `hash`; its body is the report as the till got it."""
    counters = closure.counters
    return _link(
        previous,
        "closure",
        closure.z_number,
        closure.report_id,
        closure.chained_start or closure.period_start,
        closure.chained_at or closure.period_end,
        closure.chained_at or closure.created_at,
        closure.certs_count,
        closure.total_ttc,
        (counters.tc, counters.fvc, counters.frc),
        closure.unexplained,
        closure.first_seq,
        closure.last_seq,
        closure.body,
    )


def entry_hash(previous: bytes, placed: Placed) -> bytes:
    """Over what a book says of itself between its records (`core.ledger.entries`)."""
    return _link(previous, "entry", placed.after_seq, placed.after_z, placed.at, placed.body)


def _link(previous: bytes, *content: object) -> bytes:
    return hashlib.sha256(previous + msgspec.msgpack.encode(content)).digest()
