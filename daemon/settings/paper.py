"""`[company]` and `[printer]`: what stands on paper beside what the machine knows, and where it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from daemon.core.invoice.invoice import PAYMENT_LABELS
from daemon.settings.section import Section, key

Line = Annotated[str, msgspec.Meta(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
Cadastral = Annotated[str, msgspec.Meta(pattern=r"^([0-9A-Za-z]{4} ?[0-9A-Za-z]{3} ?[0-9A-Za-z]{4})?\Z")]
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

    name: Annotated[Line, key("Trade name, for as long as the machine has not told its own.")] = ""
    address: Annotated[Line, key("Address of the sale, for as long as the machine has not told its own.")] = ""
    cadastral: Annotated[
        Cadastral, key("Cadastral reference of that address: section, block and plot, as `1234 056 0078`.")
    ] = ""
    phone: Annotated[Line, key("Telephone; left out, the machine's.")] = ""
    email: Annotated[Line, key("E-mail; left out, the machine's.")] = ""
    accounts: Annotated[tuple[Line, ...], key("Bank accounts, one line each.")] = ()
    regime: Annotated[Line, key("Tax regime, as `RNI`.")] = ""
    tax_office: Annotated[Line, key("Tax office, as `DME Centre I`.")] = ""
    logo: Annotated[
        Path | None,
        key("Logo above every document: a PNG, 384 dots wide on 80 mm paper, 256 on 58 mm; larger is made smaller."),
    ] = None


class Printer(Section, frozen=True):
    """A receipt printer that takes ESC/POS."""

    address: Annotated[
        Annotated[str, msgspec.Meta(min_length=1)],
        key("Where it is: `tcp://host:9100`, or a device as `/dev/usb/lp0`."),
    ]
    width: Annotated[Literal[32, 42, 48], key("Columns: 32 on 58 mm paper, 42 or 48 on 80 mm.")] = 48
    code_page: Annotated[
        Literal["cp858", "cp1252", "cp850"], key("Character table of the printer that has é, è and ç.")
    ] = "cp858"
    z: Annotated[bool, key("Print each Z closure of a real machine by itself.")] = False
    timeout: Annotated[PrinterTimeout, key("Seconds that one document may take until it is in the printer.")] = 10.0
