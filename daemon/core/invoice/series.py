"""The series of numbers that the box gives itself (SFE 2.18): unbroken for each type and year."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

import msgspec

PATTERN = "{type}-{year}-"
DIGITS = 6
PLACES = re.compile(r"\{(?:type|year|nim)\}")
PLAIN = re.compile(r"[A-Z0-9/_.-]*")
"""What may stand in a pattern beside its places: equal numbers have one spelling, in capitals."""


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
