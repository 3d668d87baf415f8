"""Invoice numbers: when two are the same (decision 37: in the index, the duplicate check, the verdict and `adopt` alike), the series that the box
gives itself (SFE 2.18: unbroken for each type and year), and what a credit note refers to."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import msgspec

from daemon.core.clock import DAY

NEVER = 2**62

PATTERN = "{type}-{year}-"
DIGITS = 6
PLACES = re.compile(r"\{(?:type|year|nim)\}")
PLAIN = re.compile(r"[A-Z0-9/_.-]*")
"""What may stand in a pattern beside its places: equal numbers have one spelling, in capitals."""

NO_SINGLE_ORIGINAL = "RRR"
"""A credit note on many invoices."""

_DASHES = re.compile("[\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d]")
_REFERENCE = re.compile("([A-Z]{2}[0-9]{8})(?:-([0-9]{1,9}))?-([0-9]{1,18})")
"""No counter has more digits (protocol 3)."""


def normalised(number: str) -> str:
    """An invoice number as it is stored (decision 37): the same characters may come composed or decomposed."""
    return number if number.isascii() else unicodedata.normalize("NFC", number)


def number_key(number: str) -> str:
    """The one spelling of equal numbers: NFC without regard to case, in the capitals that a machine may keep a number in.

    Nearly every number is its own key: digits, signs and capitals."""
    if number.isascii():
        return number.upper()
    return normalised(normalised(number).casefold().upper())


def same_number(one: str, other: str) -> bool:
    return one == other or number_key(one) == number_key(other)


class TakenFrom(NamedTuple):
    """Which holders of a number still hold it at some moment. `year`: those of that year or a later one, 0 for all; `start`: those that were numbered for
    ever, begun since then (ms); `recent`: any begun since then."""

    year: int = 0
    start: int = NEVER
    recent: int = NEVER


class NumberScope(msgspec.Struct, frozen=True):
    """For how long a number stands for one invoice (SFE 2.18): for ever, or for a year of the shop's clock where `zone` says whose."""

    zone: tzinfo | None = None

    def year_of(self, at: int) -> int:
        """0 for ever; `at` in ms."""
        return 0 if self.zone is None else datetime.fromtimestamp(at // 1000, self.zone).year

    def taken_from(self, at: int) -> TakenFrom:
        """In a year's first day the numbers of the day before are taken as well: a request that is repeated over midnight is the same sale."""
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
    """Types and years have series of their own, or their numbers would be the same."""
    return "{type}" in text and "{year}" in text and PLAIN.fullmatch(PLACES.sub("", text)) is not None


class Reference(NamedTuple):
    """What a credit note names: the counter of a sale, in an activation of a machine (None: not said). Its text has one form."""

    machine: str
    """without the activation counter"""
    activation: int | None
    counter: int

    def __str__(self) -> str:
        return "-".join(str(part) for part in self if part is not None)


def read_reference(text: str) -> Reference | None:
    """However it is written: small letters, leading zeros, other dashes. None when it names no invoice."""
    found = _REFERENCE.fullmatch(_DASHES.sub("-", text).strip().upper())
    return found and Reference(found[1], int(found[2]) if found[2] else None, int(found[3]))
