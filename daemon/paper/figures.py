"""Moments as documents have them, to the second."""

from __future__ import annotations

from datetime import datetime, tzinfo

from common.language import Language
from daemon.core.clock import machine_millis, millis, millis_text

_MOMENTS = {"fr": "%d/%m/%Y %H:%M:%S", "en": "%Y-%m-%d %H:%M:%S"}


def machine_moment(digits: str, language: Language) -> str:
    """The machine's 14 digits; what is no time is shown as it came."""
    at = machine_millis(digits)
    return digits if at is None else _formatted(datetime.fromisoformat(millis_text(at)), language)


def moment(text: str, zone: tzinfo, language: Language) -> str:
    """An RFC 3339 timestamp, on the clock of the shop."""
    return _formatted(datetime.fromisoformat(text).astimezone(zone), language)


def last_moment(end: str) -> str:
    """The last moment of a range that ends before `end`: a range of days ends with the last of them."""
    return millis_text(millis(datetime.fromisoformat(end)) - 1)


def _formatted(at: datetime, language: Language) -> str:
    return at.strftime(_MOMENTS[language])
