"""Days and months as a calendar has them; a month is text, YYYY-MM."""

from __future__ import annotations

import calendar
import re
from datetime import date

DEPTHS = 10
"""Steps of a cell's colour (kit.css)."""
_MONTH = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])")


def is_month(text: str) -> bool:
    """Of this century: no year before has a box."""
    return _MONTH.fullmatch(text) is not None


def depth(total: int, most: int) -> int:
    """The step of a day's colour: its share of the greatest day's money, on a linear scale from zero; 0 without sales."""
    return 0 if total <= 0 or most <= 0 else max(1, (2 * total * DEPTHS + most) // (2 * most))


def days_of(month: str) -> list[date]:
    year, number = int(month[:4]), int(month[5:])
    return [date(year, number, day) for day in range(1, calendar.monthrange(year, number)[1] + 1)]


def beside(month: str, step: int) -> str:
    """So many months later, or earlier."""
    at = int(month[:4]) * 12 + int(month[5:]) - 1 + step
    return f"{at // 12:04d}-{at % 12 + 1:02d}"
