"""Days and months as the calendar has them."""

from __future__ import annotations

from datetime import date

import msgspec

from common.web.days import is_month

DEPTHS = 4


class Day(msgspec.Struct, frozen=True):
    """`total` in whole XOF, net; `zs` are the numbers of its closures."""

    date: date
    total: int
    zs: tuple[int, ...]
    is_over: bool = True

    def depth(self, most: int) -> int:
        """0 without sales, else 1 to 4 by its share of the month's best day."""
        return 0 if self.total <= 0 or most <= 0 else max(1, -(-self.total * DEPTHS // most))


def month_of(asked: str, today: date) -> str:
    """YYYY-MM; this month for anything else."""
    return asked if is_month(asked) else f"{today:%Y-%m}"


def day_of(text: str) -> date | None:
    """YYYY-MM-DD of this century, as a month is; none for anything else."""
    try:
        return date.fromisoformat(text) if is_month(text[:7]) else None
    except ValueError:
        return None
