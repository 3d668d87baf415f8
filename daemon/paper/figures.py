"""Amounts, quantities and moments as people write them; exact, from integers alone."""

from __future__ import annotations

from datetime import datetime, tzinfo

from common.language import Language
from daemon.core.clock import machine_millis, millis_text

_GROUPS = {"fr": "\N{NO-BREAK SPACE}", "en": ","}
_POINTS = {"fr": ",", "en": "."}
_MOMENTS = {"fr": "%d/%m/%Y %H:%M:%S", "en": "%Y-%m-%d %H:%M:%S"}


def amount(value: int, language: Language) -> str:
    """Whole francs, in threes."""
    return f"{value:,}".replace(",", _GROUPS[language])


def scaled(value: int, decimals: int, language: Language) -> str:
    """`value` in units of 10^-decimals; decimals that are nought are left out."""
    sign = "-" if value < 0 else ""
    whole, rest = divmod(abs(value), 10**decimals)
    digits = str(rest).rjust(decimals, "0").rstrip("0")
    return sign + amount(whole, language) + (_POINTS[language] + digits if digits else "")


def percentage(rate: int, language: Language) -> str:
    """`rate` in hundredths of a percent: 1800 is `18 %`, `18%` in English."""
    return scaled(rate, 2, language) + ("\N{NO-BREAK SPACE}%" if language == "fr" else "%")


def machine_moment(digits: str, language: Language) -> str:
    """The machine's 14 digits; what is no time is shown as it came."""
    at = machine_millis(digits)
    return digits if at is None else _shown(datetime.fromisoformat(millis_text(at)), language)


def moment(text: str, zone: tzinfo, language: Language) -> str:
    """An RFC 3339 timestamp, on the clock of the shop."""
    return _shown(datetime.fromisoformat(text).astimezone(zone), language)


def _shown(at: datetime, language: Language) -> str:
    return at.strftime(_MOMENTS[language])
