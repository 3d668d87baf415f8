"""Time as the ledger counts it: milliseconds since 1970 in UTC, never going backwards, and which clock is to be believed (decision 21): the box's
when it is synchronised or credible by itself, else the machine's, else none.

A time is credible when it is not before this program was made, not before what the book holds, and not more than `BOUND` after that. So
nothing that a machine or an unsynchronised box says moves a book by more than `BOUND`; what is further ahead needs an operator.
A wrong step within the bound is noticed by the clock that cannot be set: the box's time and the loop's go on side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from typing import TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from common.language import NO_TEXT, Text
from common.language.reasons import BOTH, BOX_SAYS, CLOCK_AHEAD, CLOCK_AHEAD_OF_BOX, MACHINE_TIME

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since 1970, UTC, as the box has it."""

HOUR = 3_600_000
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MACHINE_DIGITS = 14
_ALWAYS_UTC = frozenset({"UTC", "Africa/Ouagadougou"})
BOUND = 31 * DAY
"""What a shop may be closed for without a synchronised clock and without an operator; and the most that a wrong clock can do."""
SLACK = HOUR
"""A clock that is this much behind the book, or apart from another, is not wrong yet."""
FIRST_BOUND = 5 * 366 * DAY
"""For a book that holds nothing yet, or nothing but what was written while no clock was credible: counted from `EARLIEST`."""


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


EARLIEST = millis(datetime(2025, 1, 1, tzinfo=UTC))
"""No clock that says less is right: the program did not exist."""


class Source(Enum):
    BOX = "box"
    MACHINE = "machine"
    BOOK = "book"
    """No clock is credible: the book's own time, which stands still; that of an empty one is `EARLIEST`."""


class Clocks(msgspec.Struct, frozen=True):
    """What there is to judge by, in ms since 1970: `book` is the youngest time that the book holds (0 when it is empty), `machine` is
    None when there is no reading, `stepped` tells that the box's clock has been moved while the daemon ran and no service vouches for it, and
    up to `accepted` an operator has confirmed a clock."""

    book: int
    box: int
    synchronised: bool
    machine: int | None
    stepped: bool = False
    accepted: int = 0


class ClockReading(msgspec.Struct, frozen=True):
    """`at` is never before the book. `ahead`: no clock is believed, and what the one that is nearest says lies so far after the book (ms)
    that an operator has to decide; 0 otherwise. `behind`: by how much a believed clock is behind the book (ms), 0 within `SLACK`."""

    at: int
    source: Source
    ahead: int = 0
    behind: int = 0


def decide_time(clocks: Clocks) -> ClockReading:
    """The time to write down, and what is wrong with it."""
    if clocks.synchronised and clocks.box >= EARLIEST:
        return _of(clocks, clocks.box, Source.BOX)
    machine = clocks.machine if clocks.machine is not None and _credible(clocks, clocks.machine) else None
    if _credible(clocks, clocks.box) and not (clocks.stepped and machine is not None):
        return _of(clocks, clocks.box, Source.BOX)
    if machine is not None:
        return _of(clocks, machine, Source.MACHINE)
    return ClockReading(clocks.book or EARLIEST, Source.BOOK, ahead=_ahead(clocks))


def latest(clocks: Clocks) -> int:
    """The last moment that is believed without an operator."""
    return max(clocks.accepted, EARLIEST + FIRST_BOUND if clocks.book in (0, EARLIEST) else clocks.book + BOUND)


def question(clocks: Clocks, reading: ClockReading) -> Text:
    """The sentence for an operator when no clock is credible; empty when one is."""
    if not reading.ahead:
        return NO_TEXT
    says: list[Text] = [BOX_SAYS(time=millis_text(clocks.box))] if clocks.box > clocks.book else []
    if clocks.machine is not None and clocks.machine > clocks.book:
        says.append(MACHINE_TIME(time=millis_text(clocks.machine)))
    found = BOTH(first=says[0], second=says[1]) if len(says) > 1 else says[0]
    if (
        clocks.book > clocks.box >= EARLIEST
    ):  # a box that was ahead for a while, and is right again, is behind its own book
        return CLOCK_AHEAD_OF_BOX(book=millis_text(clocks.book), clocks=found, box=millis_text(clocks.box))
    return CLOCK_AHEAD(book=millis_text(clocks.book), clocks=found)


def _of(clocks: Clocks, at: int, source: Source) -> ClockReading:
    behind = clocks.book - at
    return ClockReading(max(at, clocks.book), source, behind=behind if behind > SLACK else 0)


def _credible(clocks: Clocks, at: int) -> bool:
    return max(EARLIEST, clocks.book - SLACK) <= at <= latest(clocks)


def _ahead(clocks: Clocks) -> int:
    """By the clock that is nearest to the book; one that is behind it is no candidate."""
    later = [at - clocks.book for at in (clocks.box, clocks.machine) if at is not None and at > latest(clocks)]
    return min(later, default=0)
