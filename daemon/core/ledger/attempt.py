"""One attempt to certify, and what the ledger keeps of it."""

from typing import Final, Literal

import msgspec

from common.language.reasons import (
    NOT_CERTIFIED,
    NOT_SENT,
    NOT_SENT_BECAUSE,
    NUMBER_CERTIFIED,
    TEST_MODE,
    codes_of,
    from_stored,
    to_stored,
)
from daemon.core.errors import McfdError
from daemon.core.invoice.invoice import Invoice, Warn
from daemon.core.machine.state import Certified, FiscalCounters

Mode = Literal["live", "test"]

# begun      the intent is durable; nothing is known of the outcome yet
# certified  the machine certified it; code, time and counters are here
# refused    the machine refused, and nothing was certified
# abandoned  it is known that the machine did not certify it (line lost before 38h, crash, or never sent)
# disputed   it cannot be known; an operator settles it
AttemptState = Literal["begun", "certified", "refused", "abandoned", "disputed"]
RecordState = Literal[AttemptState, "damaged"]
"""`damaged` is no state of an attempt: its row cannot be read, and only what the journal needs to name it is there."""
OpenState = Literal["begun", "disputed"]
OPEN: tuple[OpenState, ...] = ("begun", "disputed")
"""States of an attempt that has not ended: there are few, and they have no place in the order yet."""

REASONS_NOT_SENT: Final = (to_stored(NOT_SENT), "not sent")
REASONS_NOT_CERTIFIED: Final = (to_stored(NOT_CERTIFIED), "the machine did not certify it")
"""`Record.reason` of attempts whose 38h may have been sent before the machine denied it; the second is that of 0.2 and
earlier."""

NOT_STATED = -1
"""A counter that neither the machine sent nor the ledger proves."""

TEST_CODE = "TESTFACT"
WARNING = "TEST_MODE"


def was_not_sent(reason: str) -> bool:
    """Whether a stored reason says that the machine has seen nothing of the attempt."""
    return reason in REASONS_NOT_SENT or NOT_SENT_BECAUSE.code in codes_of(from_stored(reason))[:1]


class Attempt(msgspec.Struct, frozen=True):
    """What is written down, durably, before the first byte. `base` are the counters known at that moment."""

    invoice: Invoice
    base: FiscalCounters
    begun_at: int
    request_id: str = ""
    key_hash: bytes = b""
    """SHA-256 of the Idempotency-Key, cut to 16 bytes; empty without the header."""
    fingerprint: bytes = b""
    """SHA-256 of method, path and body, cut to 16 bytes."""
    deferred_id: int = 0
    """The sale that waited for it (`core.ledger.deferred`), 0 for none."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a certified attempt; times in ms. `unexplained` is added to the book's."""

    certified: Certified
    invoice: Invoice
    total_ttc: int
    at: int
    line_ms: int = 0
    duration_ms: int = 0
    unexplained: int = 0
    reason: str = ""


class Record(msgspec.Struct, frozen=True):
    """One row of the ledger. Times are milliseconds since 1970 in UTC; `seq` is the order in the book of
    everything that ended, and 0 until then; `total_ttc` is the certified total."""

    id: int
    number: str
    type: str
    state: RecordState
    begun_at: int
    base: FiscalCounters
    total_ttc: int
    invoice: Invoice
    seq: int = 0
    ended_at: int = 0
    code: str = ""
    machine_time: str = ""
    ifu: str = ""
    counters: FiscalCounters | None = None
    reason: str = ""
    line_ms: int = 0
    duration_ms: int = 0
    request_id: str = ""
    hash: bytes = b""
    chained_at: int = 0
    """What the hash holds instead of `ended_at`, where the time was repaired since; else 0."""
    nim: str = ""
    """The machine's NIM in the record's epoch (decision 33); the present one until the attempt has ended."""
    fc: int | None = None
    """The counter of its type after it, or NOT_STATED; None in a record of 0.1.0, and if not certified."""


class DuplicateInvoice(McfdError):
    def __init__(self, record: Record) -> None:
        self.record = record
        super().__init__(NUMBER_CERTIFIED(number=record.number))


def is_test_code(code: str) -> bool:
    return code.startswith(TEST_CODE)


def marked(invoice: Invoice, code: str, mode: Mode) -> Invoice:
    """With a warning where a live book has got a test code; a sandbox has no others."""
    if mode != "live" or not is_test_code(code) or is_marked(invoice):
        return invoice
    warn = Warn(WARNING, to_stored(TEST_MODE))
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, warn))


def is_marked(invoice: Invoice) -> bool:
    return any(warn.code == WARNING for warn in invoice.warnings)
