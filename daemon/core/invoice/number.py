"""Invoice numbers: their equality (decision 37; the same in the index, the duplicate check, the verdict and `adopt`),
the series of the box (SFE 2.18; without gaps for each type and year), and references of credit notes."""

import re
import sys
import unicodedata
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import msgspec

from daemon.core.clock import DAY

NEVER = sys.maxsize

PATTERN = "{type}-{year}-"
DIGITS = 6
PLACES = re.compile(r"\{(?:type|year|nim)\}")
PLAIN = re.compile(r"[A-Z0-9/_.-]*")
"""Characters of a pattern beside its placeholders: capitals only, so that equal numbers have one spelling."""

NO_SINGLE_ORIGINAL = "RRR"
"""Nature of a credit note on many invoices."""

_DASHES = re.compile("[\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d]")
_REFERENCE = re.compile("([A-Z]{2}[0-9]{8})(?:-([0-9]{1,9}))?-([0-9]{1,18})")
"""The digits are bounded by those of a counter (protocol 3)."""


def normalised(number: str) -> str:
    """The stored form of an invoice number (decision 37): NFC, since characters may come composed or decomposed."""
    return unicodedata.normalize("NFC", number)


def number_key(number: str) -> str:
    """One key for all spellings of a number: NFC in capitals, as a machine may store it."""
    return normalised(normalised(number).casefold().upper())


def same_number(one: str, other: str) -> bool:
    return one == other or number_key(one) == number_key(other)


class TakenFrom(NamedTuple):
    """Which attempts reserve their number at a given time. `year`: those numbered in that year or later, 0 for all;
    `start`: those without a year that began since then (ms); `recent`: any that began since then (ms)."""

    year: int = 0
    start: int = NEVER
    recent: int = NEVER


class NumberScope(msgspec.Struct, frozen=True):
    """How long a number is unique (SFE 2.18): for ever, or for a calendar year in `zone`."""

    zone: tzinfo | None = None

    def year_of(self, at: int) -> int:
        """The year of `at` (ms since 1970); 0 if numbers are unique for ever."""
        return 0 if self.zone is None else datetime.fromtimestamp(at // 1000, self.zone).year

    def taken_from(self, at: int) -> TakenFrom:
        """On 1 January the numbers of the day before count too: a request repeated over midnight is one sale."""
        if self.zone is None:
            return TakenFrom()
        year = self.year_of(at)
        start = int(datetime(year, 1, 1, tzinfo=self.zone).timestamp()) * 1000
        return TakenFrom(year, start, at - DAY)


class Series(msgspec.Struct, frozen=True):
    pattern: str = PATTERN
    digits: int = DIGITS
    zone: tzinfo = UTC

    def prefix(self, type_: str, nim: str, at: int) -> str:
        """`at` in ms; the year is that of the shop's clock."""
        year = datetime.fromtimestamp(at // 1000, self.zone).year
        return self.pattern.format(type=type_, year=year, nim=nim)

    def number(self, prefix: str, place: int) -> str:
        return f"{prefix}{place:0{self.digits}}"


def is_pattern(text: str) -> bool:
    """Whether the pattern is valid. It needs type and year: each has its own series, and numbers must differ."""
    return "{type}" in text and "{year}" in text and PLAIN.fullmatch(PLACES.sub("", text)) is not None


class Reference(NamedTuple):
    """The reference of a credit note: machine, activation (None if not sent) and counter of the sale."""

    machine: str
    """NIM without the activation counter"""
    activation: int | None
    counter: int

    def __str__(self) -> str:
        return "-".join(str(part) for part in self if part is not None)


def read_reference(text: str) -> Reference | None:
    """Reads small letters, leading zeros and other dashes too; None if the text is no reference."""
    found = _REFERENCE.fullmatch(_DASHES.sub("-", text).strip().upper())
    return found and Reference(found[1], int(found[2]) if found[2] else None, int(found[3]))
