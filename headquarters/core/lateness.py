"""Usual closing times, and shops that are late. A shop's day begins at 04:00 (`reception.DAY_BEGINS`); minutes are
counted from there, so that closing at 00:30 is not early.

Also detects two boxes with one identity, such as a copied card: each start of a daemon has its own name (`boot` of its
presence); a start that is heard again after another one has begun is a second box."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import permutations

import msgspec

from headquarters.core.reception import DAY_BEGINS, day_of

LEARNT_FROM = 5
"""Minimum number of closures for a habit."""
LOOK_BACK = timedelta(days=28)
WEEK = 7
EVERY_DAY = 0b1111111
GRACE_MINUTES = 60
MINUTES_A_DAY = 1440
MAX_BOOTS = 4
"""Remembered starts per machine."""
MARGIN_MILLIS = 60_000
"""The last presence of a daemon may arrive after the first of its next start, but never later than this."""
FORGETS_MILLIS = 3_600_000
"""After this time without a presence a daemon is considered stopped."""
_START = datetime(1970, 1, 1, tzinfo=UTC)
_BEGINS = int(DAY_BEGINS.total_seconds()) // 60


class Habit(msgspec.Struct, frozen=True):
    """`minute` after 04:00 by which nine of ten closures were made; bit 0 of `days` is Monday."""

    minute: int
    days: int


class BootSpan(msgspec.Struct, frozen=True, array_like=True):
    """Times by our clock, in ms."""

    boot: str
    first: int
    last: int


def learn(instants: Sequence[int], zone: tzinfo, now: int) -> Habit | None:
    """Habit of the last four weeks; `instants` are closing times in ms. None without a habit yet."""
    since = now - int(LOOK_BACK.total_seconds() * 1000)
    last: dict[str, int] = {}
    for at in instants:
        if since <= at <= now:  # the future means a wrong clock
            last[day_of(at, zone)] = max(_minute(at, zone), last.get(day_of(at, zone), 0))
    if len(last) < LEARNT_FROM:
        return None
    minutes = sorted(last.values())
    days = {date.fromisoformat(day) for day in last}
    two_weeks = (max(days) - min(days)).days >= 2 * WEEK - 1
    mask = sum(1 << weekday for weekday in {day.weekday() for day in days}) if two_weeks else EVERY_DAY
    return Habit(minutes[len(minutes) * 9 // 10 - (len(minutes) % 10 == 0)], mask)


def from_clock(minute: int) -> int:
    """Converts minutes of the clock to minutes after 04:00."""
    return (minute - _BEGINS) % MINUTES_A_DAY


def overdue_day(habit: Habit, closed_at: int, zone: tzinfo, now: int) -> str | None:
    """The newest day without a closure one hour after its usual time; None if there is none. `closed_at` is 0 for a
    shop without closures."""
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


def with_presence(boots: Sequence[BootSpan], boot: str, at: int) -> list[BootSpan]:
    """Adds a presence; the start with the latest one is last."""
    before = next((one for one in boots if one.boot == boot), BootSpan(boot, at, at))
    others = [one for one in boots if one.boot != boot]
    return [*others[-(MAX_BOOTS - 1) :], BootSpan(boot, before.first, max(before.last, at))]


def two_at_once(boots: Sequence[BootSpan], now: int) -> tuple[str, str] | None:
    """Two starts whose presences alternate, by name; None if there is only one box."""
    recent = [one for one in boots if abs(now - one.last) <= FORGETS_MILLIS]
    for older, newer in permutations(recent, 2):
        if older.first < newer.first <= older.last - MARGIN_MILLIS:
            return older.boot, newer.boot
    return None
