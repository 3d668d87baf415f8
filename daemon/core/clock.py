"""Time as the ledger counts it: milliseconds since 1970 in UTC, never going backwards (decision 21)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

HOUR = 3_600_000
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MACHINE_DIGITS = 14
_ALWAYS_UTC = frozenset({"UTC", "Africa/Ouagadougou"})


def bounded(now: int, last_at: int, machine_now: int | None) -> int:
    """The time to write down.

    It is the box's `now`, or the machine's when the two are more than an hour apart (a box without a clock battery
    wakes up in 1970), and never before `last_at`, the youngest time in the book.
    """
    if machine_now is not None and abs(now - machine_now) > HOUR:
        now = machine_now
    return max(now, last_at)


def machine_millis(text: str) -> int | None:
    """The machine's 14 digits `YYYYMMDDhhmmss` (UTC all year in Burkina Faso); None when they are no time."""
    if len(text) != _MACHINE_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    year = int(text[:4])
    month, day, hour, minute, second = (int(text[at : at + 2]) for at in range(4, _MACHINE_DIGITS, 2))
    try:
        return millis(datetime(year, month, day, hour, minute, second, tzinfo=UTC))
    except ValueError:
        return None


def drift_seconds(now: int, machine_time: str) -> int | None:
    """By how much the box is ahead of the machine; None when the machine's time cannot be read."""
    machine_now = machine_millis(machine_time)
    return None if machine_now is None else (now - machine_now) // 1000


def millis(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def millis_text(at: int) -> str:
    """RFC 3339 in UTC with `Z` and milliseconds (decision 8)."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds")[:23] + "Z"


def zone(name: str) -> tzinfo:
    """The time zone of that name; the one of this country is known without a zone database on the box."""
    return UTC if name in _ALWAYS_UTC else ZoneInfo(name)
