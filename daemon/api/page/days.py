"""Days and months as the calendar has them."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date

_MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")
DEPTHS = 4


@dataclass(frozen=True)
class Day:
    """`total` in whole XOF, net; `zs` are the numbers of its closures."""

    date: date
    total: int
    zs: tuple[int, ...]
    is_future: bool = False

    def depth(self, most: int) -> int:
        """0 without sales, else 1 to 4 by its share of the month's best day."""
        return 0 if self.total <= 0 or most <= 0 else max(1, -(-self.total * DEPTHS // most))


def month_of(asked: str, today: date) -> str:
    """YYYY-MM; this month for anything else."""
    return asked if _MONTH.fullmatch(asked) else f"{today:%Y-%m}"


def days_of(month: str) -> list[date]:
    year, number = int(month[:4]), int(month[5:])
    return [date(year, number, day) for day in range(1, calendar.monthrange(year, number)[1] + 1)]


def beside(month: str, step: int) -> str:
    at = int(month[:4]) * 12 + int(month[5:]) - 1 + step
    return f"{at // 12:04d}-{at % 12 + 1:02d}"


def day_of(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
