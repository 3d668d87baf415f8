"""Amounts, quantities and rates for people, exact, computed with integers. The no-break space is in every font and in
the code pages of receipt printers; the narrow one is not. Also cells of spreadsheets: text from others that looks like
a formula gets an apostrophe in front (OWASP: CSV injection)."""

import re
from typing import Final

from common.language import Language

THOUSAND: Final = 1000
SPACE: Final = "\N{NO-BREAK SPACE}"
_UNITS: Final[dict[Language, tuple[str, ...]]] = {"fr": ("k", "M", "Md", "T"), "en": ("k", "M", "bn", "T")}
"""A thousand, and each a thousand times the previous one."""
_POINTS: Final[dict[Language, str]] = {"fr": ",", "en": "."}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_BEFORE_A_FORMULA: Final = " ;,\t\"'\N{NO-BREAK SPACE}"
"""Characters that a spreadsheet may skip, or take for the end of a cell, before a formula."""
_INSIDE: Final = re.compile(r"""([;|\t\r\n][\s"']*)(?=[=+@\-＝＋－＠])""")
"""Places where a spreadsheet that splits at semicolons, as in French, begins another cell."""


def amount(value: int) -> str:
    """In groups of three with spaces, in every language: French readers take a comma for the decimal one."""
    return f"{value:,}".replace(",", SPACE)


def money(value: int) -> str:
    """Whole XOF, as `1 234 567 F CFA`."""
    return f"{amount(value)}{SPACE}F{SPACE}CFA"


def compact(value: int, language: Language) -> str:
    """Three digits, for a narrow cell or an axis: `450`, `924 k`, `1,25 M`, `2,6 Md` (`2.6 bn` in English)."""
    for power, unit in enumerate(_UNITS[language] if abs(value) >= THOUSAND else (), 1):
        for decimals in (2, 1, 0):
            step = THOUSAND**power // 10**decimals
            if abs(rounded := (value + step // 2) // step) < THOUSAND:
                return scaled(rounded, decimals, language) + SPACE + unit
    return amount(value)


def scaled(value: int, decimals: int, language: Language) -> str:
    """`value` in units of 10^-decimals, without trailing zeros."""
    sign = "-" if value < 0 else ""
    whole, rest = divmod(abs(value), 10**decimals)
    digits = str(rest).rjust(decimals, "0").rstrip("0")
    return sign + amount(whole) + (_POINTS[language] + digits if digits else "")


def percentage(rate: int, language: Language) -> str:
    """`rate` in hundredths of a percent: 1800 is `18 %`, `18%` in English."""
    return scaled(rate, 2, language) + (f"{SPACE}%" if language == "fr" else "%")


def plain_cell(text: str) -> str:
    """The text with an apostrophe before each place that a spreadsheet would take for a formula."""
    risky = text.startswith(_FORMULA) or text.lstrip(_BEFORE_A_FORMULA).startswith(_FORMULA)
    inside = _INSIDE.sub(r"\1'", text)
    return f"'{inside}" if risky else inside


def parse_integer(text: str, digits: int = 9) -> int | None:
    """The number of at most `digits` ASCII digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
