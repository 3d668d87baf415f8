"""Days and months as the calendar has them."""

from __future__ import annotations

from datetime import date

import msgspec

from common.web.formats import depth, is_month


class Day(msgspec.Struct, frozen=True):
    """`total` in whole XOF, net; `zs` are the numbers of its closures."""

    date: date
    total: int
    zs: tuple[int, ...]
    is_over: bool = True

    def depth(self, most: int) -> int:
        return depth(self.total, most)


def month_of(asked: str, today: date) -> str:
    """YYYY-MM; this month for anything else."""
    return asked if is_month(asked) else f"{today:%Y-%m}"


def day_of(text: str) -> date | None:
    """YYYY-MM-DD of this century, as a month is; none for anything else."""
    try:
        return date.fromisoformat(text) if is_month(text[:7]) else None
    except ValueError:
        return None


def change_in_percent(now: int, before: int) -> int | None:
    """Rounded; None where there was nothing to compare with."""
    return None if before <= 0 else ((now - before) * 200 + before) // (2 * before)
