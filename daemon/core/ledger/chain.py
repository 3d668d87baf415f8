"""Tamper evidence: every record and closure of a book carries SHA-256 over the hash before it and its own content.

The content is MessagePack of one flat list that begins with the kind, so that no closure can pass for a certification.
The invoice goes in as the bytes it is stored as, never as encoded afresh: a later version with more fields in an invoice
must still find today's hashes right.
"""

from __future__ import annotations

from common.wire.closure import GENESIS, ChainLink, chained, closure_head
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Closure
from daemon.core.ledger.entries import Placed

__all__ = ["GENESIS", "closure_hash", "entry_hash", "record_hash"]


def record_hash(previous: bytes, record: Record, invoice: bytes) -> bytes:
    """Of an attempt that ended, over all its fields but `hash` (and `fc` where it was not kept); `invoice` is `record.invoice` as stored."""
    counters = record.counters
    return chained(
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
        *(() if record.fc is None else (record.fc,)),
    )


def closure_hash(previous: bytes, closure: Closure) -> bytes:
    """Over all fields of a closure but `hash`, as its receiver computes it again; its body is the report as the till got it."""
    counters = closure.counters
    return closure_head(
        previous,
        ChainLink(
            z_number=closure.z_number,
            report_id=closure.report_id,
            period_start=closure.chained_start or closure.period_start,
            period_end=closure.chained_at or closure.period_end,
            created_at=closure.chained_at or closure.created_at,
            certs_count=closure.certs_count,
            total_ttc=closure.total_ttc,
            counters=(counters.tc, counters.fvc, counters.frc),
            unexplained=closure.unexplained,
            first_seq=closure.first_seq,
            last_seq=closure.last_seq,
            body=closure.body,
        ),
    )


def entry_hash(previous: bytes, placed: Placed) -> bytes:
    """Over what a book says of itself between its records (`core.ledger.entries`)."""
    return chained(previous, "entry", placed.after_seq, placed.after_z, placed.chained_at or placed.at, placed.body)
