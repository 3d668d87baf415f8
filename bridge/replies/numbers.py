"""Numbers, times and codes of a reply, in every notation that a sound machine may use (first-contact.fr.md), and
numbers that were split by their own decimal comma.

A machine's notation is a habit: decimals or none, a comma for the point, grouped thousands, leading zeros, empty for
zero. Certain facts of the protocol limit the reading: an amount has at most two decimals, so three digits after a
single separator are thousands. Money is in hundredths of a franc, rates in hundredths of a percent."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from bridge.errors import Nonsense
from common.language.reasons import NUMBER, UNREADABLE

T = TypeVar("T")
D = TypeVar("D")

_LONGEST = 15
"""digits before the decimals"""
_GAPS = re.compile(r"[\s'\u2019]+")
_UNIT = re.compile(r"(?:F|FCFA|XOF|CFA|%)\.?\Z", re.IGNORECASE)
_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]{0,9}))?")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:([.,])[0-9]{3})(?:\1[0-9]{3})*")
_COUNTER_MOST = 18

_MAX_CHARACTERS = 40

_TIME = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})T?(\d{2}):?(\d{2})(?::?(\d{2})(?:\.\d+)?Z?)?")
_DAY_FIRST = re.compile(r"(\d{2})[-/.](\d{2})[-/.](\d{4})T?(\d{2}):?(\d{2})(?::?(\d{2}))?")
_IN_TIMES = re.compile(r"[\s/.]")

_NIM = re.compile(r"[A-Z]{2}[0-9]{8}(?:-[0-9]{1,9})?")
_IN_CODES = re.compile(r"[\s-]+")
_CODE = re.compile(r"[!-~]{1,64}")

_WHOLE_PART = re.compile(r"0|[1-9][0-9]{0,14}")
_CENTS = re.compile(r"[0-9]{2}")
_NO_CENTS = re.compile(r"00")
_LEAD = re.compile(r"[1-9][0-9]{0,2}")
_NOTHING = re.compile(r"(?!)")
_THREE = re.compile(r"[0-9]{3}(?:\.[0-9]{1,2})?")
_GROUPS_MOST = 5
_STEPS_MOST = 5000
_UNKNOWN_MOST = 4


def if_any(read: Callable[[str], T], text: str, default: D) -> T | D:
    """`default` where `text` cannot be read."""
    try:
        return read(text)
    except Nonsense:
        return default


def read_counter(text: str, what: str) -> int:
    """A whole number of at most 18 digits; empty is zero."""
    if text.isascii() and text.isdigit() and len(text) <= _COUNTER_MOST:
        return int(text)
    hundredths = read_hundredths(text, what)
    if hundredths % 100:
        raise nonsense(what, text)
    return hundredths // 100


def read_hundredths(text: str, what: str) -> int:
    """`18`, `18.0`, `18,00`, ` 018.00 `, `18 %`: 1800; `15 000`, `15.000`, `15,000.00`: 1500000; empty: 0."""
    match = _NUMBER.fullmatch(_with_point(_bare(text)))
    if match is None or len(match[1]) > _LONGEST:
        raise nonsense(what, text)
    cents = (match[2] or "").ljust(3, "0")
    return int(match[1] or "0") * 100 + int(cents[:2]) + (cents[2] >= "5")


def read_money(text: str, what: str) -> int:
    """Whole XOF, rounded half up if the machine sends cents."""
    return francs(read_hundredths(text, what))


def francs(hundredths: int) -> int:
    return (hundredths + 50) // 100


def _bare(text: str) -> str:
    """Without blanks, a unit at the end, and grouping characters."""
    bare = _GAPS.sub("", text.replace("^x2c;", ","))
    return _UNIT.sub("", bare)


def _with_point(text: str) -> str:
    """Digits with at most one point, the decimal point."""
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


def read_time(text: str, what: str) -> str:
    """14 digits; also from `2026-07-31 09:30:00`, `31/07/2026 09:30` and similar."""
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
    """Empty for an invalid time: an unreadable clock is no reason to put a machine out of service."""
    return if_any(partial(read_time, what=""), text, "")


def read_code(text: str) -> str:
    """A certification code without dashes and blanks, which some firmware prints. Its 24 characters are not mandatory:
    an unusual code of a certified invoice must not get lost."""
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
    excerpt = text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"
    return Nonsense(UNREADABLE(what=what, shown=excerpt))


class Rejoining:
    """Rejoins numbers that were split by their own comma, as `15000,00` or `15,000` between other commas. `may_be`
    checks one number with its place, `fits` all `count` of them. `whole`: only `00` as cents, and no thousands."""

    def __init__(
        self,
        count: int,
        *,
        may_be: Callable[[int, int], bool] = lambda _place, _value: True,
        fits: Callable[[list[int]], bool] = lambda _numbers: True,
        whole: bool = False,
    ) -> None:
        self._count = count
        self._cents = _NO_CENTS if whole else _CENTS
        self._lead = _NOTHING if whole else _LEAD
        self._may_be = may_be
        self._fits = fits
        self._steps = _STEPS_MOST

    def read(self, pieces: Sequence[str]) -> list[int] | None:
        """The numbers, in hundredths; a few pieces at the end may be something else. None if no way of joining gives
        such numbers, or none is found within the step limit."""
        ends = range(len(pieces), max(self._count, len(pieces) - _UNKNOWN_MOST) - 1, -1)
        return next((found for end in ends if (found := self._arrange(pieces[:end], 0, [])) is not None), None)

    def _arrange(self, pieces: Sequence[str], at: int, numbers: list[int]) -> list[int] | None:
        self._steps -= 1
        left = self._count - len(numbers)
        if not left:
            return numbers if at == len(pieces) and self._fits(numbers) else None
        if len(pieces) - at < left or self._steps < 0:
            return None
        for size, value in self._numbers_at(pieces, at):
            if self._may_be(len(numbers), value):
                found = self._arrange(pieces, at + size, [*numbers, value])
                if found is not None:
                    return found
        return None

    def _numbers_at(self, pieces: Sequence[str], at: int) -> Iterator[tuple[int, int]]:
        """Pairs of piece count and number, in the order of trial: a zero stands alone if possible; any other piece is
        joined with possible decimals or thousands first."""
        first, after = pieces[at], pieces[at + 1] if at + 1 < len(pieces) else ""
        alone = _alone(first)
        if alone == 0:
            yield 1, 0
        if _WHOLE_PART.fullmatch(first) and self._cents.fullmatch(after):
            yield 2, int(first) * 100 + int(after)
        if self._lead.fullmatch(first) and _THREE.fullmatch(after):
            yield from _thousands(pieces, at)
        if alone:
            yield 1, alone


def _thousands(pieces: Sequence[str], at: int) -> Iterator[tuple[int, int]]:
    end = at + 2  # the caller has checked the first two
    while end < len(pieces) and _THREE.fullmatch(pieces[end]) and "." not in pieces[end - 1]:
        end += 1
    for stop in range(min(end, at + _GROUPS_MOST), at + 1, -1):
        yield stop - at, read_hundredths("".join(pieces[at:stop]), NUMBER)


def _alone(piece: str) -> int | None:
    """A zero with two digits counts as decimals: None."""
    if _CENTS.fullmatch(piece) and piece.startswith("0"):
        return None
    try:
        return read_hundredths(piece, NUMBER)
    except Nonsense:
        return None
