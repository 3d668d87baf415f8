"""The simulated machine's kind: identity, clock, treatment of credit notes, and differences between firmwares where the
protocol allows them (docs/protocol.md, B and C; first-contact.fr.md): one field for each habit."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec

from simulator.machine.command_data import GROUPS

# fiscal-rules.md, in hundredths of a percent
DEFAULT_RATES: Mapping[str, int] = dict.fromkeys(GROUPS, 0) | {
    "B": 1800,
    "C": 1000,
    "F": 1800,
    "G": 1000,
    "L": 1000,
    "M": 1000,
}


Numbers = Literal["plain", "decimals", "comma", "spaces", "zeros", "empty"]
Vat = Literal["half-up", "up", "down", "cents"]
CodePage = Literal["utf-8", "cp1252"]
Fields = Literal["known", "fewer", "more"]
Texts = Literal["plain", "padded", "capitals"]
Times = Literal["digits", "dated"]
NIM_FORMAT = re.compile(r"[A-Z]{2}[0-9]{8}(?:-[0-9]{1,4})?")
Clock = Callable[[], datetime]
CreditStyle = Literal["pending", "silent", "syn"]


def _means(text: str, unit: Literal["", "ms", "s"] = "") -> msgspec.Meta:
    """`unit` is that of the command's option; the field itself is in seconds."""
    return msgspec.Meta(description=text, extra={"unit": unit})


class FirmwareHabits(msgspec.Struct, frozen=True, kw_only=True):
    short_nim: Annotated[bool, _means("NIM without its suffix")] = False
    dashed_codes: Annotated[bool, _means("codes in groups with dashes")] = False
    close_prefix: Annotated[bool, _means("R: before the answer to 38h")] = False
    close_number: Annotated[bool, _means("the invoice number at the end of that answer")] = False
    plain_taxpayer: Annotated[bool, _means("2Bh answers without I0,")] = False

    fc_per_type: Annotated[bool, _means("FC of C0h and 38h counts each invoice type by itself")] = False
    fvc_local: Annotated[bool, _means("FVC counts FV and FT only; EV and ET move TC alone")] = False
    odd_types: Annotated[bool, _means("invoice types in words of its own, in C1h and 38h")] = False
    no_codes: Annotated[bool, _means("C1h leaves the code of the last invoice empty")] = False

    vat: Annotated[Vat, _means("VAT rounded half up, up or down to whole francs, or sent with cents")] = "half-up"
    vat_per_line: Annotated[bool, _means("VAT is computed on each line instead of the group")] = False
    groups_without_vat: Annotated[bool, _means("33h tells the groups' totals without their VAT")] = False
    untaxed_specific: Annotated[bool, _means("in HT mode there is no VAT on the specific tax")] = False
    untold_specific: Annotated[bool, _means("33h tells 0 for the specific tax")] = False

    numbers: Annotated[
        Numbers,
        _means("amounts and rates with decimals, a comma, blanks between thousands, leading zeros, or empty for 0"),
    ] = "plain"
    texts: Annotated[Texts, _means("texts with blanks behind them, or in capitals")] = "plain"
    times: Annotated[Times, _means("times as 2026-07-31 09:30:00")] = "digits"
    fields: Annotated[Fields, _means("fewer or more fields than known at the end of a reply")] = "known"
    code_page: Annotated[CodePage, _means("how texts are written and read")] = "utf-8"

    full_customer: Annotated[bool, _means("refuses C3h without data")] = False
    line_decimals: Annotated[bool, _means("in HT mode a line's amount may have two decimals")] = False
    whole_close: Annotated[bool, _means("refuses 38h with decimals")] = False
    name_most: Annotated[int, _means("refuses an item name of more bytes; 0 takes any")] = 0

    echo: Annotated[bool, _means("the line sends back what it is sent")] = False
    halves: Annotated[float, _means("a reply comes in two halves, that far apart", "ms")] = 0.0
    wake: Annotated[float, _means("the first answer after two idle seconds takes that long", "ms")] = 0.0
    clock_offset: Annotated[float, _means("how far its clock is ahead: 3600 for UTC+1, or years", "s")] = 0.0


class SimulatorOptions(FirmwareHabits, frozen=True, kw_only=True):
    """`credit_style`: while the tax server checks a credit note (`credit_check` seconds), 38h is answered `P:…` at once
    (pending), or late in silence (silent), or late with SYN in between (syn). `log_limit`: invoices stored for
    tests."""

    nim: str = "EL02000015-1"
    ifu: str = "00084440Y"
    test_mode: bool = False
    rates: Mapping[str, int] = msgspec.field(default_factory=lambda: dict(DEFAULT_RATES))
    taxpayer: tuple[str, str, str, str, str, str] = (
        "MAISON FASO",
        "01 BP 1234",
        "Avenue Kwamé Nkrumah, secteur 4",
        "Ouagadougou",
        "+226 25 30 00 00",
        "contact@maison-faso.bf",
    )
    credit_check: float = 0.0
    credit_style: CreditStyle = "pending"
    server_interval: float = 60.0
    log_limit: int = 100_000

    def __post_init__(self) -> None:
        if not NIM_FORMAT.fullmatch(self.nim):
            raise ValueError(f"{self.nim!r} is not a NIM: two letters, eight digits, '-' and a number")


class MachineClock:
    """The machine's battery-backed clock: UTC, with an offset that tests may change."""

    def __init__(self, offset: timedelta = timedelta()) -> None:
        self.offset = offset

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def set(self, now: datetime) -> None:
        self.offset = now - datetime.now(UTC)


def digits14(moment: datetime) -> str:
    text = moment.isoformat(timespec="seconds")  # three times as fast as strftime
    return text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19]
