"""What the machine knows, what it answers, and what the ledger keeps of one attempt to certify."""

from __future__ import annotations

from typing import Literal

import msgspec

from daemon.core.invoice import Invoice, TaxLine

Mode = Literal["live", "test"]

# begun      the intent is durable; nothing is known of the outcome yet
# certified  the machine certified it; code, time and counters are here
# refused    the machine said no, and nothing was certified
# abandoned  it is known that the machine did not certify it (line lost before 38h, crash, or never sent)
# disputed   it cannot be known; an operator settles it
State = Literal["begun", "certified", "refused", "abandoned", "disputed"]

NOT_SENT = "not sent"


class Counters(msgspec.Struct, frozen=True, array_like=True):
    """The machine's counters (protocol 3): all transactions, sales invoices, credit notes."""

    tc: int
    fvc: int
    frc: int


class LastInvoice(msgspec.Struct, frozen=True, array_like=True):
    """The last certified invoice as C1h tells it; `total` in whole XOF, `time` the machine's 14 digits, `code` without dashes."""

    number: str
    code: str
    time: str
    type: str
    total: int


class MachineState(msgspec.Struct, frozen=True):
    """C1h. `nim` with its suffix where the firmware sends one; `rates` in hundredths of a percent by group letter."""

    nim: str
    ifu: str
    time: str
    counters: Counters
    rates: dict[str, int]
    last: LastInvoice | None


class ServerLink(msgspec.Struct, frozen=True):
    """C2h: what the tax server has acknowledged, what the machine holds, when they last met (14 digits or empty)."""

    acknowledged: int
    held: int
    last_contact: str
    state: str
    error: str


class Subtotal(msgspec.Struct, frozen=True):
    """33h in whole XOF; `taxes` without the groups that do not occur."""

    total_ttc: int
    taxes: tuple[TaxLine, ...]
    specific_tax: int


class Certified(msgspec.Struct, frozen=True):
    """The machine's word that it certified: from the answer to 38h, or from C1h when that answer was lost.

    `counters` are complete: the one that 38h does not name is the last known. `code` has no dashes."""

    code: str
    time: str
    ifu: str
    counters: Counters


class Attempt(msgspec.Struct, frozen=True):
    """What is written down, durably, before the first byte. `base` are the counters known at that moment."""

    invoice: Invoice
    base: Counters
    begun_at: int
    request_id: str = ""
    key_hash: bytes = b""
    """SHA-256 of the Idempotency-Key, cut to 16 bytes; empty without the header."""
    fingerprint: bytes = b""
    """SHA-256 of method, path and body, cut to 16 bytes."""


class Record(msgspec.Struct, frozen=True):
    """One row of the ledger. Times are milliseconds since 1970 in UTC; `seq` is the order in the book of
    everything that ended, and 0 until then; `total_ttc` is the certified total."""

    id: int
    number: str
    type: str
    state: State
    begun_at: int
    base: Counters
    total_ttc: int
    invoice: Invoice
    seq: int = 0
    ended_at: int = 0
    code: str = ""
    machine_time: str = ""
    ifu: str = ""
    counters: Counters | None = None
    reason: str = ""
    line_ms: int = 0
    duration_ms: int = 0
    request_id: str = ""
    hash: bytes = b""
