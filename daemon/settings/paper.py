"""`[company]` and `[printer]`: data on paper beyond the machine's, and the printer. `[invoices]`, `[stamp_duty]`,
`[numbering]`: what the law leaves to tables (SFE 2.35)."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from common.one_line import NOT_BLANK, ONE_LINE
from common.settings import Section
from daemon.core.invoice.invoice import CLIENTS, NATURES, PAYMENT_LABELS
from daemon.core.invoice.number import DIGITS, PATTERN
from daemon.core.invoice.rules import IFU_PATTERN, PSVB_RATES, Rules, StampDuty

Line = Annotated[str, msgspec.Meta(max_length=100, pattern=ONE_LINE)]
PrinterTimeout = Annotated[float, msgspec.Meta(gt=0, le=60)]

Language = Literal["fr", "en"]

LABELS: Mapping[Language, Mapping[str, str]] = {
    "fr": PAYMENT_LABELS,
    "en": {
        "E": "Cash",
        "V": "Bank transfer",
        "C": "Bank card",
        "M": "Mobile money",
        "B": "Cheque",
        "A": "Other",
    },
}

Percent = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,2}(\.[0-9]{1,2})?\Z")]
Francs = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Whole = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
Digits = Annotated[int, msgspec.Meta(ge=4, le=9)]
PrintedName = Annotated[str, msgspec.Meta(min_length=1, max_length=60, pattern=NOT_BLANK)]
Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

LETTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "psvb_rates": tuple(PSVB_RATES),
    "comment_names": tuple("ABCDEFGH"),
    "nature_names": tuple(NATURES),
    "client_names": tuple(CLIENTS),
}
"""Allowed letters before the = in a table of [invoices]."""


class Company(Section, frozen=True):
    """Everything may be left out; what is not given is not printed."""

    name: Line = ""
    """Trade name, for as long as the machine has not sent its own."""
    address: Line = ""
    """Address of the sale, for as long as the machine has not sent its own."""
    cadastral: Line = ""
    """Cadastral reference of that address: section, block and plot, as `1234 056 0078`; anything else is printed as it
    stands here."""
    phone: Line = ""
    """Telephone; left out, the machine's."""
    email: Line = ""
    """E-mail; left out, the machine's."""
    accounts: tuple[Line, ...] = ()
    """Bank accounts, one line each."""
    regime: Line = ""
    """Tax regime, as `RNI`."""
    tax_office: Line = ""
    """Tax office, as `DME Centre I`."""
    support: Line = ""
    """Whom the page says to call when nothing can be sold: a name and a telephone number. It is not printed."""
    logo: Path | None = None
    """Logo above every document: a PNG, 384 dots wide on 80 mm paper, 256 on 58 mm; larger is made smaller."""


class Printer(Section, frozen=True):
    """A receipt printer that takes ESC/POS."""

    address: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NOT_BLANK)]
    """Where it is: `tcp://host:9100`, or a device as `/dev/usb/lp0`."""
    width: Literal[32, 42, 48] = 48
    """Columns: 32 on 58 mm paper, 42 or 48 on 80 mm."""
    code_page: Literal["cp858", "cp1252", "cp850"] = "cp858"
    """Character table of the printer that has é, è and ç."""
    z: bool = False
    """Print each Z closure of a real machine by itself."""
    timeout: PrinterTimeout = 10.0
    """Seconds that one document may take until it is in the printer."""


class Invoices(Section, frozen=True):
    ifu_pattern: Pattern = IFU_PATTERN
    """Form of the IFU of a company (PM) or trader (PC) in a local sale, as a regular expression; exports take any."""
    psvb_rates: dict[str, Percent] = msgspec.field(default_factory=dict)
    """Rates of the withholding (PSVB) in percent by group, as `{ C = "0.2" }`; groups left out keep the law's."""
    comment_names: dict[str, PrintedName] = msgspec.field(default_factory=dict)
    """Names of the comment lines A to H on paper, as `{ C = "Bon de commande" }`; left out, A and B have the law's."""
    nature_names: dict[str, PrintedName] = msgspec.field(default_factory=dict)
    """Names of the natures of credit notes (COR RAN RAM RRR) on paper; left out, the law's."""
    client_names: dict[str, PrintedName] = msgspec.field(default_factory=dict)
    """Names of the types of customers (CC PP PM PC) on paper; left out, the law's."""


class StampDutySection(Section, frozen=True):
    enabled: bool = False
    """Compute the stamp duty of each sale in cash whose till names none; it is on top of the invoice's total."""
    least: Francs = StampDuty().least
    """Payments in cash below this amount carry none."""
    steps: dict[str, Francs] = msgspec.field(default_factory=dict)
    """Duty up to an amount, as `{ 5000 = 30, 10000 = 50, 50000 = 100 }` (Tax Code, art. 519); left out, these."""
    every: Whole = StampDuty().every
    """Beyond the last step the duty grows with each so many francs, or part of them."""
    more: Francs = StampDuty().more
    """By how much it grows then."""


class Numbering(Section, frozen=True):
    enabled: bool = False
    """Give a number to an invoice whose till sends none: the next of an unbroken series for each type and year."""
    pattern: Pattern = PATTERN
    """What stands before its digits: capitals, digits and / _ . - with `{type}`, `{year}` and, if wanted, `{nim}`."""
    digits: Digits = DIGITS
    """How many digits it has."""
    unique: Literal["ever", "year"] = "ever"
    """Whether a number stands for one invoice for ever, or for one in each year of the shop's clock: for tills whose
    series begin at 1 each January. With "year" an Idempotency-Key has to name the year as well, and a credit note names
    a sale of two years by creditNoteRef."""


def rules_of(invoices: Invoices, duty: StampDutySection) -> Rules:
    steps = tuple(sorted((int(upto), francs) for upto, francs in duty.steps.items()))
    return Rules(
        ifu_pattern=invoices.ifu_pattern,
        psvb_rates={**PSVB_RATES, **{group: int(Decimal(rate) * 100) for group, rate in invoices.psvb_rates.items()}},
        stamp_duty=StampDuty(duty.enabled, duty.least, steps or StampDuty().steps, duty.every, duty.more),
    )
