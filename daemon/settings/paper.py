"""`[company]` and `[printer]`: what stands on paper beside what the machine knows, and where it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from common.settings import Section
from daemon.core.invoice.invoice import PAYMENT_LABELS

Line = Annotated[str, msgspec.Meta(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
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


class Company(Section, frozen=True):
    """Everything may be left out; what is not given is not printed."""

    name: Line = ""
    """Trade name, for as long as the machine has not told its own."""
    address: Line = ""
    """Address of the sale, for as long as the machine has not told its own."""
    cadastral: Line = ""
    """Cadastral reference of that address: section, block and plot, as `1234 056 0078`; anything else is printed as it stands here."""
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

    address: Annotated[str, msgspec.Meta(min_length=1)]
    """Where it is: `tcp://host:9100`, or a device as `/dev/usb/lp0`."""
    width: Literal[32, 42, 48] = 48
    """Columns: 32 on 58 mm paper, 42 or 48 on 80 mm."""
    code_page: Literal["cp858", "cp1252", "cp850"] = "cp858"
    """Character table of the printer that has é, è and ç."""
    z: bool = False
    """Print each Z closure of a real machine by itself."""
    timeout: PrinterTimeout = 10.0
    """Seconds that one document may take until it is in the printer."""
