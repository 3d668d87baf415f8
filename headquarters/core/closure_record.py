"""What headquarters keeps in mind of a closure: enough to check those beside it."""

from __future__ import annotations

import hashlib
from operator import attrgetter

import msgspec

from common.wire.closure import ClosureData, proves_itself

Triple = tuple[int, int, int]
"""Counters of the machine: tc, fvc, frc."""

_figures = attrgetter(
    *("nim", "mode", "report_id", "z_number", "period_start", "period_end", "created_at", "certs_count", "total_ttc"),
    *("total_ht", "total_tva", "by_group", "by_type", "fvc_start", "fvc_end", "mcf_counters", "unexplained"),
    *("chain_previous", "chain_head"),
)
"""What makes two messages one closure. Not what a later version of the box adds, nor its label or its key: a replay after an
update is no fork."""


class ClosureRecord(msgspec.Struct, frozen=True, array_like=True):
    """Heads are hex, empty where the box is too old to send them; `digest` is over the figures."""

    z: int
    id: str
    digest: bytes
    head: str
    previous_id: str | None
    previous_head: str
    counters: Triple
    opening: Triple | None
    fvc_start: int
    fvc_end: int
    certs: int
    unexplained: int
    proven: bool | None
    """None when the closure carries no body to prove it with."""
    ledger_id: str
    nim: str
    gone: tuple[tuple[int, int], ...] = ()
    """Ranges of numbers before it that its ledger never had; a row of an older version has none."""


def machine_of(nim: str) -> str:
    """The NIM up to its dash: the suffix counts the machine's activations (decision 33)."""
    return nim.partition("-")[0]


def digest_of(data: ClosureData) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(_figures(data))).digest()


def record_of(data: ClosureData) -> ClosureRecord:
    end, opening = data.mcf_counters, data.opening_counters
    return ClosureRecord(
        z=data.z_number,
        id=data.report_id,
        digest=digest_of(data),
        head=data.chain_head,
        previous_id=data.previous_report_id,
        previous_head=data.previous_chain_head,
        counters=(end.tc, end.fvc, end.frc),
        opening=(opening.tc, opening.fvc, opening.frc) if opening else None,
        fvc_start=data.fvc_start,
        fvc_end=data.fvc_end,
        certs=data.certs_count,
        unexplained=data.unexplained,
        proven=proves_itself(data) if data.body else None,
        ledger_id=data.ledger_id,
        nim=data.nim,
        gone=tuple((gap.first, gap.last) for gap in data.gaps),
    )
