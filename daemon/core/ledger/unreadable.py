"""What stands in the journal for an entry whose row is damaged: its place and number, as far as they can be read."""

from __future__ import annotations

import msgspec

from common.language import Text
from daemon.core.invoice.invoice import invoice_without_lines
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import Act, Placed
from daemon.core.machine.state import FiscalCounters


def unreadable(record_id: int, seq: int, number: str, nim: str, reason: str = "") -> Record:
    return Record(
        id=record_id,
        number=number,
        type="",
        state="damaged",
        begun_at=0,
        base=FiscalCounters(0, 0, 0),
        total_ttc=0,
        invoice=invoice_without_lines(number, "", 0),
        seq=seq,
        reason=reason or str(Text("this entry cannot be read: its row is damaged")),
        nim=nim,
    )


def readable_move(placed: Placed, nim: str) -> Placed | Record:
    """An act of the journal, or what stands for one that cannot be read."""
    try:
        if isinstance(placed.entry, Act):
            return placed
    except (msgspec.MsgspecError, UnicodeError):
        pass
    reason = Text("entry {number} cannot be read: its row is damaged", number=placed.id)
    return unreadable(placed.id, 0, "", nim, str(reason))
