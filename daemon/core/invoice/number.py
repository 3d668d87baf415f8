"""When two invoice numbers are the same (decision 37): in the index, the duplicate check, the verdict and `adopt` alike."""

from __future__ import annotations

import unicodedata
from datetime import datetime, tzinfo
from typing import NamedTuple

import msgspec


def normalised(number: str) -> str:
    """An invoice number as it is kept (decision 37): the same characters may come composed or decomposed."""
    return number if number.isascii() else unicodedata.normalize("NFC", number)


def number_key(number: str) -> str:
    """The one spelling of equal numbers: NFC without regard to case, in the capitals that a machine may keep a number in.

    Nearly every number is its own key: digits, signs and capitals."""
    if number.isascii():
        return number.upper()
    return normalised(normalised(number).casefold().upper())


def same_number(one: str, other: str) -> bool:
    return one == other or number_key(one) == number_key(other)


NEVER = 2**62
DAY = 86_400_000


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
