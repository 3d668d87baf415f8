"""The end of an attempt, told once, however it was found out."""

from __future__ import annotations

import structlog

from daemon.core.certification import Record
from daemon.usecases.aggregate import tick
from daemon.usecases.desk import Desk

log = structlog.get_logger(__name__)


def announce(desk: Desk, record: Record) -> None:
    """The log line of an attempt's end, the event for screens, and the tick that brings it into the totals."""
    log.info(
        "certification",
        outcome=record.state,
        nim=desk.book.nim,
        mode=desk.book.mode,
        invoice_number=record.number,
        invoice_type=record.type,
        total_ttc=record.total_ttc,
        line_ms=record.line_ms,
        duration_ms=record.duration_ms,
        reason=record.reason or None,
        request_id=record.request_id,
    )
    desk.meters.note(record)
    if record.state == "certified":
        desk.tell("cert.issued", ref=record.id)
    desk.schedule_tick(lambda: tick(desk))
