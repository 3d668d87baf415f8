"""33h: totals and VAT of the sixteen groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec

from bridge.errors import Nonsense
from bridge.fields import GROUPS
from bridge.replies.numbers import nonsense, read_hundredths
from bridge.replies.rejoining import Rejoining
from common.language.reasons import SUBTOTAL_AMOUNT

_EACH = len(GROUPS)
_SUBTOTAL_LEAST = 1 + 2 * _EACH
_SUBTOTAL_FIELDS = _SUBTOTAL_LEAST + 1
_FRANC = 100


class SubtotalReply(msgspec.Struct, frozen=True):
    """In hundredths of a franc. `groups` are the totals and `vat` the VAT in them, of the groups A to P. Whether the totals
    are with VAT, the total of all tells, which is. `specific` is None when it was left out."""

    total: int
    groups: tuple[int, ...]
    vat: tuple[int, ...]
    specific: int | None

    @classmethod
    def read(cls, text: str) -> Self:
        fields = text.split(",")
        if len(fields) < _SUBTOTAL_LEAST:
            raise nonsense("the subtotal", text)
        total, *groups = _subtotal(fields)
        specific = groups[2 * _EACH] if len(fields) >= _SUBTOTAL_FIELDS else None
        return cls(total, tuple(groups[:_EACH]), tuple(groups[_EACH : 2 * _EACH]), specific)


def _subtotal(fields: list[str]) -> list[int]:
    """34 numbers: total, groups, VAT, specific tax, which may be left out; what follows is of no concern, unless a comma for the
    decimal point cut the numbers themselves."""
    if len(fields) <= _SUBTOTAL_FIELDS:
        return _amounts([*fields, ""][:_SUBTOTAL_FIELDS])
    found = _adding_up(fields)
    for count in (_SUBTOTAL_FIELDS, _SUBTOTAL_LEAST):
        if found is None:
            found = Rejoining(count, _no_bound, _adds_up).read(fields)
    return [*found, 0][:_SUBTOTAL_FIELDS] if found else _amounts(fields[:_SUBTOTAL_FIELDS])


def _adding_up(fields: list[str]) -> list[int] | None:
    """As they stand, if that is a subtotal."""
    if "00" in fields:
        return None
    try:
        found = _amounts(fields[:_SUBTOTAL_FIELDS])
    except Nonsense:
        return None
    return found if _adds_up(found) else None


def _amounts(fields: Sequence[str]) -> list[int]:
    return [read_hundredths(field, SUBTOTAL_AMOUNT) for field in fields]


def _no_bound(_place: int, _value: int) -> bool:
    return True


def _adds_up(numbers: list[int]) -> bool:
    """Within a franc for each group, and VAT only where something was sold."""
    total, groups, vat = numbers[0], numbers[1 : 1 + _EACH], numbers[1 + _EACH : 1 + 2 * _EACH]
    sold = sum(1 for amount in groups if amount)
    off = min(abs(total - sum(groups)), abs(total - sum(groups) - sum(vat)))
    return off <= sold * _FRANC and all(not tax or tax < amount for amount, tax in zip(groups, vat, strict=True))
