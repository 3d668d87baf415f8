"""Tamper evidence: every record and closure of a book carries SHA-256 over the hash before it and its own content.

The content is MessagePack of one flat list that begins with the kind, so that no closure can pass for a certification.
The invoice goes in as the bytes it is stored as, never as encoded afresh: a later version with more fields in an invoice
must still find today's hashes right.
"""

from typing import Any, Final

from msgspec.structs import astuple

from common.wire.closure import GENESIS, ChainLink, chained, closure_head
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Closure
from daemon.core.ledger.entries import Placed

__all__ = ["GENESIS", "closure_hash", "closure_link", "entry_hash", "record_hash", "record_link"]
_RECORD: Final = (
    *("id", "seq", "number", "type", "state", "begun_at", "ended_at", "base", "counters", "total_ttc", "code"),
    *("machine_time", "ifu", "reason", "line_ms", "duration_ms", "request_id"),
)


def record_hash(previous: bytes, record: Record, invoice: bytes) -> bytes:
    """Of an attempt that ended, over all its fields but `hash` (and `fc` where it was not kept); `invoice` is `record.invoice` as stored."""
    fc = () if record.fc is None else (record.fc,)
    return chained(previous, "certification", *record_link(record).values(), invoice, *fc)


def record_link(record: Record) -> dict[str, Any]:
    """What the hash is over, by name and in this order, before the invoice."""
    return {name: getattr(record, name) for name in _RECORD} | {"ended_at": record.chained_at or record.ended_at}


def closure_hash(previous: bytes, closure: Closure) -> bytes:
    """Over all fields of a closure but `hash`, as its receiver computes it again; its body is the report as the till got it."""
    return closure_head(previous, closure_link(closure))


def closure_link(closure: Closure) -> ChainLink:
    named = {name: getattr(closure, name) for name in ChainLink.__struct_fields__}
    named["counters"] = astuple(closure.counters)
    if closure.chained_at:
        named |= {"period_end": closure.chained_at, "created_at": closure.chained_at}
    return ChainLink(**named | {"period_start": closure.chained_start or closure.period_start})


def entry_hash(previous: bytes, placed: Placed) -> bytes:
    """Over what a book says of itself between its records (`core.ledger.entries`)."""
    return chained(previous, "entry", placed.after_seq, placed.after_z, placed.chained_at or placed.at, placed.body)
