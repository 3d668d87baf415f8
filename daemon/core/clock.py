"""Time for the ledger (decision 21): milliseconds since 1970 in UTC, never going backwards, and the choice of a clock.
The box's clock counts if it is synchronised or credible, else the machine's if credible, else none.

A time is credible if it is neither before this program existed nor before the book's last entry, and at most `BOUND`
after that. So a machine or an unsynchronised box moves a book by `BOUND` at most; more needs an operator. A wrong step
within the bound shows against the loop's monotonic clock, which cannot be set."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from typing import TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from common.language import NO_TEXT, Text
from common.language.reasons import BOTH, BOX_SAYS, CLOCK_AHEAD, CLOCK_AHEAD_OF_BOX, MACHINE_TIME

Clock: TypeAlias = Callable[[], int]
"""Gives the box's time: milliseconds since 1970, UTC."""

HOUR = 3_600_000
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MACHINE_DIGITS = 14
_ALWAYS_UTC = frozenset({"UTC", "Africa/Ouagadougou"})
BOUND = 31 * DAY
"""How long a shop may be closed without a synchronised clock or an operator; the greatest effect of a wrong clock."""
SLACK = HOUR
"""A clock may be this much behind the book, or differ from another one, before it counts as wrong."""
FIRST_BOUND = 5 * 366 * DAY
"""The bound, from `EARLIEST`, for a book that is empty or was written only without a credible clock."""


def machine_millis(text: str, place: tzinfo = UTC) -> int | None:
    """The machine's time `YYYYMMDDhhmmss` in the zone `place` as ms since 1970; None if it is no time."""
    if len(text) != _MACHINE_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    year = int(text[:4])
    month, day, hour, minute, second = (int(text[at : at + 2]) for at in range(4, _MACHINE_DIGITS, 2))
    try:
        return millis(datetime(year, month, day, hour, minute, second, tzinfo=place).astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def drift_seconds(now: int, machine_time: str) -> int | None:
    """By how many seconds the box (`now`, ms) is ahead of the machine; None if the machine's time cannot be read."""
    machine_now = machine_millis(machine_time)
    return None if machine_now is None else (now - machine_now) // 1000


def millis(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def millis_text(at: int) -> str:
    """RFC 3339 in UTC with `Z` and milliseconds (decision 8)."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds")[:23] + "Z"


def zone(name: str) -> tzinfo:
    """The time zone of that name; Burkina Faso's needs no zone database on the box."""
    return UTC if name in _ALWAYS_UTC else ZoneInfo(name)


EARLIEST = millis(datetime(2025, 1, 1, tzinfo=UTC))
"""An earlier time is wrong: the program did not exist."""


class Source(Enum):
    BOX = "box"
    MACHINE = "machine"
    BOOK = "book"
    """No clock is credible: the time of the book's last entry, or `EARLIEST` for an empty book."""


class Clocks(msgspec.Struct, frozen=True):
    """The clocks to choose from, in ms since 1970. `book`: the book's last entry, 0 if empty. `machine`: None without a
    reading. `stepped`: the box's unsynchronised clock was moved while the daemon ran. `accepted`: an operator has
    confirmed the clock up to this time."""

    book: int
    box: int
    synchronised: bool
    machine: int | None
    stepped: bool
    accepted: int


class ClockReading(msgspec.Struct, frozen=True):
    """`at` is never before the book. `ahead`: no clock is credible, and the nearest one is this many ms after the book,
    so an operator has to decide; else 0. `behind`: by how many ms the chosen clock is behind the book, 0 within
    `SLACK`."""

    at: int
    source: Source
    ahead: int = 0
    behind: int = 0


def decide_time(clocks: Clocks) -> ClockReading:
    """The time for the next entry, and its problem if any."""
    if clocks.synchronised and clocks.box >= EARLIEST:
        return _of(clocks, clocks.box, Source.BOX)
    machine = clocks.machine if clocks.machine is not None and _credible(clocks, clocks.machine) else None
    if _credible(clocks, clocks.box) and not (clocks.stepped and machine is not None):
        return _of(clocks, clocks.box, Source.BOX)
    if machine is not None:
        return _of(clocks, machine, Source.MACHINE)
    return ClockReading(clocks.book or EARLIEST, Source.BOOK, ahead=_ahead(clocks))


def latest(clocks: Clocks) -> int:
    """The latest credible time without an operator, in ms since 1970."""
    return max(clocks.accepted, EARLIEST + FIRST_BOUND if clocks.book in (0, EARLIEST) else clocks.book + BOUND)


def question(clocks: Clocks, reading: ClockReading) -> Text:
    """The question for an operator if no clock is credible; empty otherwise."""
    if not reading.ahead:
        return NO_TEXT
    says: list[Text] = [BOX_SAYS(time=millis_text(clocks.box))] if clocks.box > clocks.book else []
    if clocks.machine is not None and clocks.machine > clocks.book:
        says.append(MACHINE_TIME(time=millis_text(clocks.machine)))
    found = BOTH(first=says[0], second=says[1]) if len(says) > 1 else says[0]
    if clocks.book > clocks.box >= EARLIEST:  # the box was fast for a while, and is now right and behind its own book
        return CLOCK_AHEAD_OF_BOX(book=millis_text(clocks.book), clocks=found, box=millis_text(clocks.box))
    return CLOCK_AHEAD(book=millis_text(clocks.book), clocks=found)


def _of(clocks: Clocks, at: int, source: Source) -> ClockReading:
    behind = clocks.book - at
    return ClockReading(max(at, clocks.book), source, behind=behind if behind > SLACK else 0)


def _credible(clocks: Clocks, at: int) -> bool:
    return max(EARLIEST, clocks.book - SLACK) <= at <= latest(clocks)


def _ahead(clocks: Clocks) -> int:
    """By how many ms the nearest clock is after the book; a clock behind the book does not count."""
    later = [at - clocks.book for at in (clocks.box, clocks.machine) if at is not None and at > latest(clocks)]
    return min(later, default=0)
