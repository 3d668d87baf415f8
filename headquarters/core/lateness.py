"""When a shop usually closes, and whether it should have by now.

A shop's day begins at 04:00 (`reception.DAY_BEGINS`); minutes are counted from there, so that one that closes at 00:30 is not
early."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import msgspec

from headquarters.core.reception import DAY_BEGINS, day_of

LEARNT_FROM = 5
"""Closures; fewer show no habit."""
LOOK_BACK = timedelta(days=28)
WEEK = 7
EVERY_DAY = 0b1111111
GRACE_MINUTES = 60
MINUTES_A_DAY = 1440
_START = datetime(1970, 1, 1, tzinfo=UTC)
_BEGINS = int(DAY_BEGINS.total_seconds()) // 60


class Habit(msgspec.Struct, frozen=True):
    """`minute` after 04:00 by which it has closed nine days of ten; `days` has bit 0 for Monday."""

    minute: int
    days: int


def learn(instants: Sequence[int], zone: tzinfo, now: int) -> Habit | None:
    """From when it closed in the last four weeks, in milliseconds; None where there is no habit yet."""
    since = now - int(LOOK_BACK.total_seconds() * 1000)
    last: dict[str, int] = {}
    for at in instants:
        if at >= since:
            last[day_of(at, zone)] = max(_minute(at, zone), last.get(day_of(at, zone), 0))
    if len(last) < LEARNT_FROM:
        return None
    minutes = sorted(last.values())
    days = {date.fromisoformat(day) for day in last}
    two_weeks = (max(days) - min(days)).days >= 2 * WEEK - 1
    mask = sum(1 << weekday for weekday in {day.weekday() for day in days}) if two_weeks else EVERY_DAY
    return Habit(minutes[len(minutes) * 9 // 10 - (len(minutes) % 10 == 0)], mask)


def from_clock(minute: int) -> int:
    """Minutes of the clock as minutes after 04:00."""
    return (minute - _BEGINS) % MINUTES_A_DAY


def overdue_day(habit: Habit, closed_at: int, zone: tzinfo, now: int) -> str | None:
    """The newest day by whose usual hour, and one more, no closure has come; None when none is due. `closed_at` is 0 for a shop
    that has never closed."""
    closed = day_of(closed_at, zone) if closed_at else ""
    today = date.fromisoformat(day_of(now, zone))
    for back in range(WEEK + 1):
        day = today - timedelta(days=back)
        if habit.days >> day.weekday() & 1 and _deadline(day, habit, zone) <= now:
            return day.isoformat() if closed < day.isoformat() else None
    return None


def _deadline(day: date, habit: Habit, zone: tzinfo) -> int:
    begin = datetime.combine(day, time(), zone) + DAY_BEGINS
    return (begin + timedelta(minutes=habit.minute + GRACE_MINUTES) - _START) // timedelta(milliseconds=1)


def _minute(at: int, zone: tzinfo) -> int:
    local = (_START + timedelta(milliseconds=at)).astimezone(zone)
    return from_clock(local.hour * 60 + local.minute)
