"""Numbers, times and codes of a reply, in every spelling that a machine in good order may use (first-contact.md).

How a machine writes a number is a habit: decimals or none, a comma for the point, thousands set apart, leading zeros, empty
for zero. What the protocol page is sure of bounds the reading: an amount has at most two decimals, so three digits after
a lone separator are thousands. Money is read in hundredths of a franc, and rates in hundredths of a percent.
"""

from __future__ import annotations

import re

from bridge.errors import Nonsense
from common.language.reasons import UNREADABLE

_LONGEST = 15
"""digits before the decimals"""
_GAPS = re.compile(r"[\s'\u2019]+")
_UNIT = re.compile(r"(?:F|FCFA|XOF|CFA|%)\.?\Z", re.IGNORECASE)
_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]{0,9}))?")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:([.,])[0-9]{3})(?:\1[0-9]{3})*")
_COUNTER_MOST = 18

_SHOWN = 40


def read_counter(text: str, what: str) -> int:
    """A whole number of at most 18 digits; empty is zero."""
    if text.isascii() and text.isdigit() and len(text) <= _COUNTER_MOST:
        return int(text)
    hundredths = read_hundredths(text, what)
    if hundredths % 100:
        raise nonsense(what, text)
    return hundredths // 100


def read_hundredths(text: str, what: str) -> int:
    """`18`, `18.0`, `18,00`, ` 018.00 ` and `18 %` are all 1800; `15 000`, `15.000` and `15,000.00` are 1500000; empty is 0."""
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
        return int(text) * 100
    match = _NUMBER.fullmatch(_with_point(_bare(text)))
    if match is None or len(match[1]) > _LONGEST:
        raise nonsense(what, text)
    cents = (match[2] or "").ljust(3, "0")
    return int(match[1] or "0") * 100 + int(cents[:2]) + (cents[2] >= "5")


def read_money(text: str, what: str) -> int:
    """Whole XOF, rounded half up where the machine tells cents."""
    return francs(read_hundredths(text, what))


def francs(hundredths: int) -> int:
    """Rounded half up."""
    return (hundredths + 50) // 100


def _bare(text: str) -> str:
    """Without blanks, without a unit behind it, and without what only sets thousands apart."""
    bare = _GAPS.sub("", text.replace("^x2c;", ","))
    return _UNIT.sub("", bare)


def _with_point(text: str) -> str:
    """Digits with at most one point, the decimal one."""
    if _THOUSANDS.fullmatch(text) and not text.startswith("0"):
        return text.replace(",", "").replace(".", "")
    point = max(text.rfind("."), text.rfind(","))
    if point < 0:
        return text
    whole, decimals = text[:point], text[point + 1 :]
    if "." in whole or "," in whole:
        if not _THOUSANDS.fullmatch(whole) or text[point] in whole:
            return text
        whole = whole.replace(",", "").replace(".", "")
    return f"{whole}.{decimals}"


_TIME = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})T?(\d{2}):?(\d{2})(?::?(\d{2})(?:\.\d+)?Z?)?")
_DAY_FIRST = re.compile(r"(\d{2})[-/.](\d{2})[-/.](\d{4})T?(\d{2}):?(\d{2})(?::?(\d{2}))?")
_IN_TIMES = re.compile(r"[\s/.]")


def read_time(text: str, what: str) -> str:
    """14 digits; also of `2026-07-31 09:30:00`, `31/07/2026 09:30` and the like."""
    compact = text.strip()
    match = _DAY_FIRST.fullmatch(re.sub(r"\s", "T", compact))
    if match:
        day, month, year, *clock = match.groups(default="00")
        return "".join((year, month, day, *clock))
    match = _TIME.fullmatch(_IN_TIMES.sub(lambda found: "" if found[0] in "./" else "T", compact))
    if match is None or not text.isascii():
        raise nonsense(what, text)
    return "".join(match.groups(default="00"))


def read_time_if_any(text: str) -> str:
    """Empty where it is none: a clock that cannot be read is no reason to leave a machine out of service."""
    try:
        return read_time(text, "")
    except Nonsense:
        return ""


_NIM = re.compile(r"[A-Z]{2}[0-9]{8}(?:-[0-9]{1,9})?")
_IN_CODES = re.compile(r"[\s-]+")
_CODE = re.compile(r"[!-~]{1,64}")


def read_code(text: str) -> str:
    """A certification code without the dashes and blanks that some firmware prints.

    Its 24 characters are not insisted on: an odd code of an invoice that is certified must not get lost."""
    code = _IN_CODES.sub("", text)
    if not _CODE.fullmatch(code):
        raise nonsense("certification code", text)
    return code


def read_nim(text: str) -> str:
    nim = text.strip().upper()
    if not _NIM.fullmatch(nim):
        raise nonsense("NIM", text)
    return nim


def nonsense(what: str, text: str) -> Nonsense:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return Nonsense(UNREADABLE(what=what, shown=shown))
