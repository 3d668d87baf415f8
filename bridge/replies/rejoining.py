"""Numbers of a reply that were cut in two by their own comma."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from bridge.errors import Nonsense
from bridge.replies.numbers import read_hundredths
from common.language.reasons import NUMBER

_WHOLE_PART = re.compile(r"0|[1-9][0-9]{0,14}")
_CENTS = re.compile(r"[0-9]{2}")
_NO_CENTS = re.compile(r"00")
_LEAD = re.compile(r"[1-9][0-9]{0,2}")
_NOTHING = re.compile(r"(?!)")
_THREE = re.compile(r"[0-9]{3}(?:\.[0-9]{1,2})?")
_GROUPS_MOST = 5
_STEPS_MOST = 5000
_UNKNOWN_MOST = 4


class Rejoining:
    """Numbers of a list that were cut in two by their own comma, as `15000,00` or `15,000` between other commas.

    `may_be` looks at one number with its place, as soon as it is put together; `fits` at all `count` of them. `whole`: no
    other cents than `00` are put together, and no thousands."""

    def __init__(
        self,
        count: int,
        may_be: Callable[[int, int], bool],
        fits: Callable[[list[int]], bool],
        *,
        whole: bool = False,
    ) -> None:
        self._count = count
        self._cents = _NO_CENTS if whole else _CENTS
        self._lead = _NOTHING if whole else _LEAD
        self._may_be = may_be
        self._fits = fits
        self._steps = _STEPS_MOST

    def read(self, pieces: Sequence[str]) -> list[int] | None:
        """The numbers, in hundredths; a few pieces at the end may be something else. None when no way to put the others together gives
        such numbers, or none is found soon."""
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
        """How many pieces, and the number that they are, in the order in which to try them: a zero stands alone if it can, any
        other piece takes what may be its decimals or its thousands."""
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
    end = at + 2  # the first two belong together, as is known
    while end < len(pieces) and _THREE.fullmatch(pieces[end]) and "." not in pieces[end - 1]:
        end += 1
    for stop in range(min(end, at + _GROUPS_MOST), at + 1, -1):
        yield stop - at, read_hundredths("".join(pieces[at:stop]), NUMBER)


def _alone(piece: str) -> int | None:
    """A zero with two digits is taken for somebody's decimals."""
    if _CENTS.fullmatch(piece) and piece.startswith("0"):
        return None
    try:
        return read_hundredths(piece, NUMBER)
    except Nonsense:
        return None
