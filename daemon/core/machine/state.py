"""What the machine says of itself and answers, as the driver hands it over."""

from __future__ import annotations

import msgspec

from daemon.core.invoice.invoice import TaxLine


class FiscalCounters(msgspec.Struct, frozen=True, array_like=True):
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


def taxpayer_of(text: str) -> str:
    """What a machine tells as its taxpayer; empty for what no IFU can be: one that is not activated may tell noughts, blanks or rubbish."""
    is_readable = text.isascii() and text.isprintable() and len({each for each in text if each.isalnum()}) > 1
    return text if is_readable else ""


class MachineState(msgspec.Struct, frozen=True):
    """C1h. `nim` with its suffix where the firmware sends one; `rates` in hundredths of a percent by group letter."""

    nim: str
    ifu: str
    time: str
    counters: FiscalCounters
    rates: dict[str, int]
    last: LastInvoice | None


class ServerLink(msgspec.Struct, frozen=True):
    """C2h: what the tax server has acknowledged, what the machine holds, when they last met (14 digits or empty)."""

    acknowledged: int
    documents: int
    last_contact: str
    state: str
    error: str


class Subtotal(msgspec.Struct, frozen=True):
    """33h in whole XOF; `taxes` without the groups that do not occur."""

    total_ttc: int
    taxes: tuple[TaxLine, ...]
    specific_tax: int | None
    """None when the machine does not tell it."""


class Certified(msgspec.Struct, frozen=True):
    """The machine's word that it certified: from the answer to 38h, or from C1h when that answer was lost.

    `counters` are complete: the one that 38h does not name is the last known. `code` has no dashes."""

    code: str
    time: str
    ifu: str
    counters: FiscalCounters
    nim: str = ""
    """What the machine was called when it certified this, with its activation counter; empty where that is not known."""
    fc: int | None = None
    """The counter of the invoice's type, as 38h tells it; C1h does not."""
