"""Amounts, quantities and rates as people write them; exact, from integers alone. The no-break space is in every font and in the code pages
of receipt printers, which the narrow one is not. Text that others wrote, in the cell of a spreadsheet: such a cell gets an apostrophe in
front where it looks like a formula (OWASP: CSV injection)."""

from __future__ import annotations

import re
from typing import Final

from common.language import Language

THOUSAND: Final = 1000
SPACE: Final = "\N{NO-BREAK SPACE}"
_UNITS: Final[dict[Language, tuple[str, ...]]] = {"fr": ("k", "M", "Md", "T"), "en": ("k", "M", "bn", "T")}
"""Of a thousand, and each a thousand times the one before."""
_POINTS: Final[dict[Language, str]] = {"fr": ",", "en": "."}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_BEFORE_A_FORMULA: Final = " ;,\t\"'\N{NO-BREAK SPACE}"
"""A spreadsheet may skip these, or take them for the end of a cell, before it looks for a formula."""
_INSIDE: Final = re.compile(r"""([;|\t\r\n][\s"']*)(?=[=+@\-＝＋－＠])""")
"""Where a spreadsheet that cuts at semicolons, as French ones do, would begin another cell."""


def amount(value: int) -> str:
    """In threes, in every language: a comma is a decimal one to who reads French."""
    return f"{value:,}".replace(",", SPACE)


def money(value: int) -> str:
    """Whole XOF, as `1 234 567 F CFA`."""
    return f"{amount(value)}{SPACE}F{SPACE}CFA"


def compact(value: int, language: Language) -> str:
    """For a narrow cell or beside an axis, three digits: `450`, `924 k`, `1,25 M`, `2,6 Md` (milliards; `2.6 bn` in English)."""
    for power, unit in enumerate(_UNITS[language] if abs(value) >= THOUSAND else (), 1):
        for decimals in (2, 1, 0):
            step = THOUSAND**power // 10**decimals
            if abs(rounded := (value + step // 2) // step) < THOUSAND:
                return scaled(rounded, decimals, language) + SPACE + unit
    return amount(value)


def scaled(value: int, decimals: int, language: Language) -> str:
    """`value` in units of 10^-decimals; decimals that are nought are left out."""
    sign = "-" if value < 0 else ""
    whole, rest = divmod(abs(value), 10**decimals)
    digits = str(rest).rjust(decimals, "0").rstrip("0")
    return sign + amount(whole) + (_POINTS[language] + digits if digits else "")


def percentage(rate: int, language: Language) -> str:
    """`rate` in hundredths of a percent: 1800 is `18 %`, `18%` in English."""
    return scaled(rate, 2, language) + (f"{SPACE}%" if language == "fr" else "%")


def plain_cell(text: str) -> str:
    """The text with an apostrophe wherever a spreadsheet would see a formula; other text as it is."""
    risky = text.startswith(_FORMULA) or text.lstrip(_BEFORE_A_FORMULA).startswith(_FORMULA)
    inside = _INSIDE.sub(r"\1'", text)
    return f"'{inside}" if risky else inside


def whole_number(text: str, digits: int = 9) -> int | None:
    """What at most so many ASCII digits say; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
