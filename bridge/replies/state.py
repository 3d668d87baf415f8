"""C1h: the counters, the last invoice, the rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Self

import msgspec

from bridge.errors import Nonsense
from bridge.fields import GROUPS, unescape
from bridge.replies.numbers import (
    francs,
    read_code,
    read_counter,
    read_hundredths,
    read_money,
    read_nim,
    read_time_if_any,
)
from bridge.replies.rejoining import Rejoining
from common.language.reasons import LAST_INVOICE_TOTAL, NUMBER, STATE_INCOMPLETE, VAT_RATE

_EACH = len(GROUPS)
_STATE_FIELDS = 6
_LAST_FIELDS = 5
_TOTAL_AND_RATES = 1 + _EACH
_COMMAS_MOST = 4
"""pieces of a number with commas of its own"""
_WHOLE_RATE = 10_000


class LastInvoiceReply(msgspec.Struct, frozen=True):
    """`code` without dashes; `number` as the machine kept it (see `fields.as_machine_tells`).

    It may be somebody else's: a type of their own, no code or no time (empty), a total that cannot be read (0)."""

    time: str
    type: str
    code: str
    number: str
    total: int


class StateReply(msgspec.Struct, frozen=True):
    """`nim` with its suffix where the firmware sends one; `rates` of the groups from A on, P at the most; `time` empty when
    the clock cannot be read."""

    nim: str
    ifu: str
    time: str
    tc: int
    fvc: int
    frc: int
    last: LastInvoiceReply | None
    rates: tuple[int, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        fields = text.split(",")
        if len(fields) < _STATE_FIELDS:
            raise Nonsense(STATE_INCOMPLETE(count=len(fields)))
        nim, ifu, time, tc, fvc, frc = fields[:_STATE_FIELDS]
        last, rates = _last_and_rates(fields[_STATE_FIELDS:])
        return cls(
            nim=read_nim(nim),
            ifu=unescape(ifu).strip(),
            time=read_time_if_any(time),
            tc=read_counter(tc, "TC"),
            fvc=read_counter(fvc, "FVC"),
            frc=read_counter(frc, "FRC"),
            last=last,
            rates=rates,
        )


def _last_and_rates(fields: list[str]) -> tuple[LastInvoiceReply | None, tuple[int, ...]]:
    """None before the first invoice: its fields are left out, or empty, where a time and a total may be zeros."""
    if not _has_block(fields):
        return None, _rates(fields[:_EACH])
    if _is_blank(fields[:_LAST_FIELDS]):
        return None, _rates(fields[_LAST_FIELDS : _LAST_FIELDS + _EACH])
    time, kind, code, *rest = fields
    size, total, rates = _total_and_rates(rest)
    last = LastInvoiceReply(
        time=read_time_if_any(time),
        type=kind.strip().upper(),
        code=_code_if_any(code),
        number=unescape(",".join(rest[:size])).strip(),
        total=total,
    )
    return last, rates


def _has_block(fields: Sequence[str]) -> bool:
    """Whether C1h tells of a last invoice before its rates, be it empty: it has letters or a time, or as many fields as both take,
    or nothing where the rates would begin."""
    block = fields[:_LAST_FIELDS]
    if len(block) < _LAST_FIELDS:
        return False
    if any(char.isalpha() for field in block for char in field) or read_time_if_any(block[0]):
        return True
    return len(fields) >= _LAST_FIELDS + _EACH or (len(fields) > _EACH and _is_blank(block))


def _is_blank(block: Sequence[str]) -> bool:
    return not any(field.strip("0. ") for field in block)


def _total_and_rates(fields: list[str]) -> tuple[int, int, tuple[int, ...]]:
    """How many fields the invoice's number takes, its total, and the rates.

    Where there are more than eighteen, a comma that nobody escaped may stand in the number, in the total (`15000,00`) or in the
    rates, or fields that we do not know may follow. The first of these that gives a total above 0 and rates is taken."""
    exact = len(fields) - _TOTAL_AND_RATES
    if exact > 1:
        for size, found in _readings(fields, min(exact, _COMMAS_MOST)):
            if found is not None:
                return size, francs(found[0]), tuple(found[1:])
    return 1, _total_if_any(fields[1:2]), _rates(fields[2 : 1 + _TOTAL_AND_RATES])


def _readings(fields: list[str], most: int) -> Iterator[tuple[int, list[int] | None]]:
    """The number takes `size` fields. Cents other than `00` come last: there are none in this country."""
    for size in range(1, most + 1):
        yield size, _rejoined(fields[size:], whole=True)
    for size in range(most, 0, -1):
        yield size, _plain(fields[size : size + _TOTAL_AND_RATES])
    yield 1, _rejoined(fields[1:], whole=False)
    yield 1, _rejoined(fields[1:], whole=True, count=_TOTAL_AND_RATES - 1)


def _rejoined(fields: Sequence[str], *, whole: bool, count: int = _TOTAL_AND_RATES) -> list[int] | None:
    return Rejoining(count, _total_or_rate, _anything, whole=whole).read(fields)


def _anything(_: object) -> bool:
    return True


def _plain(fields: Sequence[str]) -> list[int] | None:
    """As they stand. A zero of two digits is the half of a number."""
    if "00" in fields:
        return None
    try:
        numbers = [read_hundredths(field, NUMBER) for field in fields]
    except Nonsense:
        return None
    return numbers if all(_total_or_rate(place, value) for place, value in enumerate(numbers)) else None


def _total_or_rate(place: int, value: int) -> bool:
    """What may stand there: group A is exempt by law, which tells a total's decimals from the first rate."""
    if place <= 1:
        return (value > 0) is (place == 0)
    return value <= _WHOLE_RATE


def _rates(fields: Sequence[str]) -> tuple[int, ...]:
    return _read_rates(tuple(fields))


@lru_cache(maxsize=16)
def _read_rates(fields: tuple[str, ...]) -> tuple[int, ...]:
    """They are the same in nearly every C1h of a machine, and took as long to read as the rest of it."""
    return tuple(read_hundredths(rate, VAT_RATE) for rate in fields)


def _total_if_any(fields: Sequence[str]) -> int:
    try:
        return read_money(",".join(fields), LAST_INVOICE_TOTAL)
    except Nonsense:
        return 0


def _code_if_any(text: str) -> str:
    try:
        return read_code(text)
    except Nonsense:
        return ""
