"""Times for people; foreign text for a terminal."""

import calendar
import contextlib
import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from common.language import Language

_START = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: dict[Language, tuple[str, ...]] = {
    "fr": (
        *("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre"),
        *("novembre", "décembre"),
    ),
    "en": (
        *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
        *("November", "December"),
    ),
}
DEPTHS = 10
"""Steps of a cell's colour (kit.css)."""
_MONTH = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def day(text: str, language: Language) -> str:
    """YYYY-MM-DD as 06/12/2025, or 6 Dec 2025."""
    found = date.fromisoformat(text)
    if language == "fr":
        return f"{found:%d/%m/%Y}"
    return f"{found.day} {_MONTHS['en'][found.month - 1][:3]} {found.year}"


def month(text: str, language: Language) -> str:
    """YYYY-MM as décembre 2025."""
    year, number_of = text.split("-")
    return f"{_MONTHS[language][int(number_of) - 1]} {year}"


def moment(at: int, zone: tzinfo, language: Language) -> str:
    """Milliseconds since 1970 as day and time in `zone`."""
    local = _START + timedelta(milliseconds=at)
    with contextlib.suppress(OverflowError):  # within hours of the year 1 or 9999
        local = local.astimezone(zone)
    return f"{day(local.date().isoformat(), language)} {local:%H:%M}"


def is_month(text: str) -> bool:
    """Whether it is YYYY-MM of this century: no box is older."""
    return _MONTH.fullmatch(text) is not None


def depth(total: int, most: int) -> int:
    """Step of a day's colour: its share of the largest day's total, linear from zero; 0 without sales."""
    return 0 if total <= 0 or most <= 0 else max(1, (2 * total * DEPTHS + most) // (2 * most))


def days_of(month: str) -> list[date]:
    year, number = int(month[:4]), int(month[5:])
    return [date(year, number, day) for day in range(1, calendar.monthrange(year, number)[1] + 1)]


def month_after(month: str, step: int) -> str:
    """The month `step` months later, or earlier."""
    at = int(month[:4]) * 12 + int(month[5:]) - 1 + step
    return f"{at // 12:04d}-{at % 12 + 1:02d}"


def visible(text: str) -> str:
    """Makes text safe for a terminal: no escape sequences, no line breaks, no change of direction."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
