"""What the machine says of itself and answers, as the driver hands it over."""

import re
from dataclasses import dataclass
from typing import Literal

import msgspec

from common.language import Text
from daemon.core.invoice.invoice import TaxLine

Why = Literal["busy", "missing", "permission", "silent", "stranger", "other"]

TAXPAYER_LINES = 6
"""Trade name, two lines of address, city, phone, e-mail (2Bh)."""
_SUFFIX = re.compile(r"(?:-[0-9]{1,9})?")


class FiscalCounters(msgspec.Struct, frozen=True, array_like=True):
    """The machine's counters (protocol 3): all transactions, sales invoices, credit notes."""

    tc: int
    fvc: int
    frc: int


NO_COUNTERS = FiscalCounters(0, 0, 0)


class LastInvoice(msgspec.Struct, frozen=True, array_like=True):
    """The last invoice in the reply to C1h; `total` in whole XOF, `time` in 14 digits, `code` without dashes."""

    number: str
    code: str
    time: str
    type: str
    total: int


def taxpayer_of(text: str) -> str:
    """The IFU that a machine sends; empty if it is none, as zeros or blanks before an activation."""
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
    """The machine's NIM with its activation counter when it certified this; empty if unknown."""
    fc: int | None = None
    """The counter of the invoice's type, as 38h tells it; C1h does not."""


@dataclass(frozen=True)
class PortReading:
    """C1h, C2h and the six lines of 2Bh, at one moment."""

    state: MachineState
    link: ServerLink
    taxpayer: tuple[str, ...]
    read_at: int
    """Time of the reading by the box's clock (ms), to compare with the machine's time later."""


@dataclass(frozen=True)
class Silence:
    """Why nothing was read: another program holds the line (`busy`), no answer (`silent`), or something that is no
    machine does (`stranger`)."""

    reason: Text
    why: Why


def same_machine(one: str, other: str) -> bool:
    """Compared up to the dash: some firmware leaves out the activation counter (protocol 3)."""
    return short_nim(one) == short_nim(other)


def short_nim(nim: str) -> str:
    """Without the activation counter: `EL02000015-1` is `EL02000015` (protocol 3)."""
    return nim.partition("-")[0]


def is_named(nim: str, machine: str) -> bool:
    """Whether a path's `nim` names that machine: up to the dash, with any activation counter or none (decision 26)."""
    return nim == machine or (same_machine(nim, machine) and _SUFFIX.fullmatch(nim[len(short_nim(nim)) :]) is not None)


def present_nim(answer: str, configured: str, ledger_nim: str) -> str:
    """The machine's present NIM: as sent with its activation counter, else as configured, else as in the ledger."""
    if "-" in answer:
        return answer
    return configured if "-" in configured and same_machine(configured, ledger_nim) else ledger_nim


def new_name(answer: str, configured: str, ledger_nim: str) -> str:
    """The machine's name of now where it is known by another one; else empty."""
    nim = present_nim(answer, configured, ledger_nim)
    return nim if nim != ledger_nim else ""


def activation_of(nim: str) -> int | None:
    """The activation counter in a machine's name; None where there is none."""
    counter = nim.partition("-")[2]
    return int(counter) if counter.isascii() and counter.isdigit() else None
