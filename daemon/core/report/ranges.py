"""The range of the A report, the history and the journal (decision 18), as `start <= t < end` in milliseconds."""

import re
import sys
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from common.language import Text
from daemon.core.clock import DAY, millis, zone
from daemon.core.errors import FieldError, InvalidRequest

DEFAULT_RANGE = 31 * DAY
EVER: Final = (0, sys.maxsize)
"""Every time that a book can hold."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"(?P<wall>[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?"
    r"(?:[Zz]|(?P<sign>[+ -])(?P<hours>[01][0-9]|2[0-3]):(?P<minutes>[0-5][0-9]))"
)
_LAST_DAY = date(9999, 12, 30)
_LATEST = millis(datetime(9999, 12, 31, tzinfo=UTC))
_FIRST_DAY = "0001-01-01"


def read_range(from_: str | None, to: str | None, *, now: int, timezone: str) -> tuple[int, int]:
    """InvalidRequest names `from` or `to`; the millisecond `now` itself is inside the default range."""
    errors: list[FieldError] = []
    place = zone(timezone)
    end = now + 1 if to is None else _read("to", to, place, errors)
    start = max(end - DEFAULT_RANGE, _earliest(place)) if from_ is None else _read("from", from_, place, errors)
    exact = to is not None and not _DATE.fullmatch(to)
    if not errors and (start > end or (start == end and not exact)):
        errors.append(FieldError("from", Text("must not be after `to`")))
    if errors:
        raise InvalidRequest(errors)
    return start, end


def _read(name: str, text: str, place: tzinfo, errors: list[FieldError]) -> int:
    try:
        instant = _date(text, place, whole=name == "to") if _DATE.fullmatch(text) else read_instant(text)
    except ValueError:
        errors.append(FieldError(name, Text("must be a date YYYY-MM-DD or an RFC 3339 timestamp with an offset")))
        return 0
    return min(max(instant, _earliest(place) + (name == "to")), _LATEST)


def _earliest(place: tzinfo) -> int:
    """It can be written in UTC and in that zone; the last moment before `to` too."""
    return max(_date(_FIRST_DAY, UTC, whole=False), _date(_FIRST_DAY, place, whole=False))


def _date(text: str, place: tzinfo, *, whole: bool) -> int:
    """The local midnight a day begins with, or, when the `whole` day is meant, the one it ends with."""
    day = date.fromisoformat(text)
    if whole:
        day = min(day, _LAST_DAY) + timedelta(days=1)
    wall = datetime.combine(day, time(), tzinfo=place)
    offset = wall.utcoffset() or timedelta()
    return millis(wall.replace(tzinfo=UTC)) - offset // timedelta(milliseconds=1)


def read_instant(text: str) -> int:
    """An RFC 3339 timestamp with an offset as ms since 1970; ValueError. A finer instant is rounded up, which changes
    neither `t >= x` nor `t < x` for whole milliseconds."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(text)
    wall = millis(datetime.fromisoformat(match["wall"].upper()).replace(tzinfo=UTC))
    nanoseconds = int((match["fraction"] or "").ljust(9, "0"))
    return wall - -nanoseconds // 1_000_000 - _offset(match)


def _offset(match: re.Match[str]) -> int:
    """A `+` that a client forgot to encode arrives as a space in a query."""
    if match["sign"] is None:
        return 0
    offset = (int(match["hours"]) * 60 + int(match["minutes"])) * 60_000
    return -offset if match["sign"] == "-" else offset
