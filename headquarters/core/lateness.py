"""When a shop usually closes, and whether it should have by now. A shop's day begins at 04:00 (`reception.DAY_BEGINS`); minutes are counted from
there, so that one that closes at 00:30 is not early. Two boxes with one identity, as of a card that was copied: each start of a daemon has a
name of its own (`boot` of its presence), and a start that is heard again after another one has begun is a second box."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import permutations

import msgspec

from headquarters.core.reception import DAY_BEGINS, day_of

LEARNT_FROM = 5
"""Closures; fewer show no habit."""
LOOK_BACK = timedelta(days=28)
WEEK = 7
EVERY_DAY = 0b1111111
GRACE_MINUTES = 60
MINUTES_A_DAY = 1440
MOST = 4
"""Starts that are remembered of a machine."""
MARGIN_MILLIS = 60_000
"""The last word of a daemon that ends may come after the first one of its next start; never that long after."""
FORGETS_MILLIS = 3_600_000
"""Who was not heard for so long is there no more."""
_START = datetime(1970, 1, 1, tzinfo=UTC)
_BEGINS = int(DAY_BEGINS.total_seconds()) // 60


class Habit(msgspec.Struct, frozen=True):
    """`minute` after 04:00 by which it has closed nine days of ten; `days` has bit 0 for Monday."""

    minute: int
    days: int


class HeardBoot(msgspec.Struct, frozen=True, array_like=True):
    """Times by our clock, in ms."""

    boot: str
    first: int
    last: int


def learn(instants: Sequence[int], zone: tzinfo, now: int) -> Habit | None:
    """From when it closed in the last four weeks, in milliseconds; None where there is no habit yet."""
    since = now - int(LOOK_BACK.total_seconds() * 1000)
    last: dict[str, int] = {}
    for at in instants:
        if since <= at <= now:  # one of a clock that is ahead shows no habit
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


def heard(boots: Sequence[HeardBoot], boot: str, at: int) -> list[HeardBoot]:
    """With that word, the start that was heard last behind the others."""
    before = next((one for one in boots if one.boot == boot), HeardBoot(boot, at, at))
    others = [one for one in boots if one.boot != boot]
    return [*others[-(MOST - 1) :], HeardBoot(boot, before.first, max(before.last, at))]


def two_at_once(boots: Sequence[HeardBoot], now: int) -> tuple[str, str] | None:
    """The names of two starts that speak in turn; None where there is one box."""
    recent = [one for one in boots if abs(now - one.last) <= FORGETS_MILLIS]
    for older, newer in permutations(recent, 2):
        if older.first < newer.first <= older.last - MARGIN_MILLIS:
            return older.boot, newer.boot
    return None
