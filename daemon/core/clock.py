"""Time as the ledger counts it: milliseconds since 1970 in UTC, never going backwards (decision 21)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias
from zoneinfo import ZoneInfo

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since 1970, UTC, as the box has it."""

HOUR = 3_600_000
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MACHINE_DIGITS = 14
_ALWAYS_UTC = frozenset({"UTC", "Africa/Ouagadougou"})


def machine_millis(text: str, place: tzinfo = UTC) -> int | None:
    """The machine's 14 digits `YYYYMMDDhhmmss` (UTC all year in Burkina Faso, else in its zone); None when they are no time."""
    if len(text) != _MACHINE_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    year = int(text[:4])
    month, day, hour, minute, second = (int(text[at : at + 2]) for at in range(4, _MACHINE_DIGITS, 2))
    try:
        return millis(datetime(year, month, day, hour, minute, second, tzinfo=place).astimezone(UTC))
    except (ValueError, OverflowError):
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
