"""What a book knows of itself between two certifications, what a Z freezes, and what an Idempotency-Key stands for."""

import msgspec

from daemon.core.ledger.attempt import Mode, Record
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.machine.state import FiscalCounters, LastInvoice

Tally = dict[str, int]
"""Additive totals as a flat map, e.g. `FV.n`, `FV.ttc`, `FV.B.ht`, `FV.B.tva`, `FV.B.ttc`, `pay.E`, `incomplete`,
`specific`, `psvb.A.base`, `psvb.A.amount`; amounts in whole XOF, credits counted positive under their own type.
Everything that ended since the book began is in one running tally; any report is the difference of two of them."""


class Book(msgspec.Struct, frozen=True):
    """The ledger's record of one NIM in one mode: its own certifications, periods, Z numbers and chain."""

    id: int
    nim: str
    mode: Mode


class LastSeen(msgspec.Struct, frozen=True):
    """The machine's last invoice, ours or foreign, when its counters were read for the ledger; None if it had none."""

    last: LastInvoice | None


class BookState(msgspec.Struct, frozen=True):
    """The head of a book, as stored. Times in milliseconds since 1970 UTC.

    `counters`: the machine's known counters (last outcome, closure or reconciliation), None if it was never read.
    `unexplained`: foreign invoices found on the machine since the last Z. `last_at`: latest time in the book (decision
    21)."""

    book: Book
    counters: FiscalCounters | None
    last_number: str
    last_at: int
    last_seq: int
    rates: dict[str, int]
    ifu: str
    attention: str
    unexplained: int
    z_number: int
    """of the last closure, 0 before the first"""
    epoch: int
    needs_last_z: bool
    """The last Z number is unknown: none is assigned until a person enters it (decision 30)."""
    is_restored: bool
    """Put back from a backup, and not compared with the machine yet."""
    last_code: str
    """Of the newest certification of the machine's present activation."""
    lost: str
    """Which acknowledged writes were found to be missing, until an operator has looked at it; empty when none."""
    accepted_to: int
    """Up to here an operator has confirmed a clock (ms)."""
    time_repairs: int
    """How often the book's time was set back."""
    seen: LastSeen | None
    """The machine's last invoice at the moment of `known`; None in a ledger of 0.1.0 that has not looked since."""
    in_use: bool
    """False while its machine has another taxpayer."""


class Aggregate(msgspec.Struct, frozen=True):
    """The totals up to `seq`, as of the last tick. The open period's report is `running - closed`.

    `period_start` is 0 before the first certification of a book without a Z. `fvc_start` is 0 while the open period has
    no sale; `fvc_end` is the last known FVC."""

    seq: int
    at: int
    running: Tally
    closed: Tally
    period_start: int
    fvc_start: int
    fvc_end: int


class Closure(msgspec.Struct, frozen=True):
    """One stored Z. `body` is the Z report as JSON, exactly as the till got it."""

    z_number: int
    report_id: str
    period_start: int
    period_end: int
    created_at: int
    certs_count: int
    total_ttc: int
    counters: FiscalCounters
    unexplained: int
    first_seq: int
    last_seq: int
    body: bytes
    hash: bytes
    chained_at: int = 0
    chained_start: int = 0
    """The original `created_at` and `period_start` in hash and body if the time was repaired since; else 0."""


class KeyUse(msgspec.Struct, frozen=True):
    """The use of an Idempotency-Key: an attempt, a closure, a deferred sale or a stored answer."""

    fingerprint: bytes
    record: Record | None = None
    closure: Closure | None = None
    answer: bytes = b""
    sale: DeferredSale | None = None
