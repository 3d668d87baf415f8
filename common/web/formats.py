"""Times as people write them."""

from __future__ import annotations

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


def day(text: str, language: Language) -> str:
    """A day of YYYY-MM-DD: 06/12/2025, or 6 Dec 2025."""
    found = date.fromisoformat(text)
    if language == "fr":
        return f"{found:%d/%m/%Y}"
    return f"{found.day} {_MONTHS['en'][found.month - 1][:3]} {found.year}"


def month(text: str, language: Language) -> str:
    """A month of YYYY-MM: décembre 2025."""
    year, number_of = text.split("-")
    return f"{_MONTHS[language][int(number_of) - 1]} {year}"


def moment(at: int, zone: tzinfo, language: Language) -> str:
    """Milliseconds since 1970 as day and time there."""
    local = (_START + timedelta(milliseconds=at)).astimezone(zone)
    return f"{day(local.date().isoformat(), language)} {local:%H:%M}"
