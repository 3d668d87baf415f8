"""The content of each reply: C1h (counters, last invoice, rates), C2h, C0h, 31h, 33h (totals and VAT of the sixteen
groups), 35h, 38h, and plain acknowledgements."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Self

import msgspec

from bridge.errors import Nonsense
from bridge.fields import GROUPS, unescape
from bridge.replies.numbers import (
    Rejoining,
    francs,
    if_any,
    nonsense,
    read_code,
    read_counter,
    read_hundredths,
    read_money,
    read_nim,
    read_time,
    read_time_if_any,
)
from common.language.reasons import (
    CERTIFICATION,
    CERTIFICATION_TIME,
    INVOICE_OPENING,
    LAST_INVOICE_TOTAL,
    LINE_AMOUNT,
    LINE_TOTALS,
    PAYMENT_ANSWER,
    STATE_INCOMPLETE,
    SUBTOTAL_AMOUNT,
    TAX_SERVER_LINK,
    VAT_RATE,
)

_BALANCE = re.compile(r"\s*([DR])[\s:,]*(.*)", re.DOTALL | re.IGNORECASE)

_EACH = len(GROUPS)
_SUBTOTAL_LEAST = 1 + 2 * _EACH
_SUBTOTAL_FIELDS = _SUBTOTAL_LEAST + 1
_FRANC = 100

_STATE_FIELDS = 6
_LAST_FIELDS = 5
_TOTAL_AND_RATES = 1 + _EACH
_COMMAS_MOST = 4
"""pieces of a number that contains commas"""
_WHOLE_RATE = 10_000


class ServerLinkReply(msgspec.Struct, frozen=True):
    """Transactions acknowledged by the tax server, and waiting in the machine; `last_contact` empty if never; `state`
    is CON, TRA or DIS, or another word of the machine."""

    acknowledged: int
    documents: int
    last_contact: str
    state: str
    error: str

    @classmethod
    def read(cls, text: str) -> Self:
        acknowledged, documents, time, state, *error = [*_split(text, 2, 5, TAX_SERVER_LINK), "", ""]
        return cls(
            acknowledged=read_counter(acknowledged, "EC"),
            documents=read_counter(documents, "DC"),
            last_contact=read_time_if_any(time),
            state=state.strip().upper(),
            error=unescape("".join(error)).strip(),
        )


class Done(msgspec.Struct, frozen=True):
    """The command was accepted; the rest of the reply is free text."""

    text: str


class Opened(msgspec.Struct, frozen=True):
    fc: int
    tc: int

    @classmethod
    def read(cls, text: str) -> Self:
        fc, tc, *_ = _split(text, 2, 3, INVOICE_OPENING)
        return cls(read_counter(fc, "FC"), read_counter(tc, "TC"))


class LineTotals(msgspec.Struct, frozen=True):
    """Totals of one line, in hundredths of a franc."""

    ttc: int
    ht: int
    tva: int
    specific: int

    @classmethod
    def read(cls, text: str) -> Self:
        fields = _split(text, 3, 5, LINE_TOTALS)
        ttc, ht, tva, specific = (read_hundredths(field, LINE_AMOUNT) for field in [*fields, ""][:4])
        return cls(ttc, ht, tva, specific)


class Balance(msgspec.Struct, frozen=True):
    """After a payment, in whole XOF: the amount still due, or the change; the other is 0."""

    due: int
    change: int

    @classmethod
    def read(cls, text: str) -> Self:
        match = _BALANCE.fullmatch(text)
        if not match:
            raise nonsense("the answer to a payment", text)
        amount = read_money(match[2], PAYMENT_ANSWER)
        return cls(amount, 0) if match[1] in "Dd" else cls(0, amount)


class Closed(msgspec.Struct, frozen=True):
    """`fc` is the counter of the certified type, None if left out; `code` without dashes; `nim` empty if invalid;
    `number` empty if left out, and with anything that follows it."""

    fc: int | None
    tc: int
    type: str
    time: str
    nim: str
    ifu: str
    code: str
    number: str

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises Nonsense if the receipt would be incomplete: C1h has the same data."""
        fc, tc, kind, time, nim, ifu, code, *number = _split(text, 7, 8, CERTIFICATION)
        return cls(
            fc=read_counter(fc, "FC") if fc.strip() else None,
            tc=read_counter(tc, "TC"),
            type=kind.strip().upper(),
            time=read_time(time, CERTIFICATION_TIME),
            nim=if_any(read_nim, nim, ""),
            ifu=unescape(ifu).strip(),
            code=read_code(code),
            number=unescape("".join(number)).strip(),
        )


class Pending(msgspec.Struct, frozen=True):
    """Not yet: the machine waits for the tax server."""

    text: str


def _split(text: str, least: int, most: int, what: str) -> list[str]:
    """Splits into at most `most` fields; the last one keeps further commas."""
    fields = text.split(",", most - 1)
    if len(fields) < least:
        raise nonsense(what, text)
    return fields


class SubtotalReply(msgspec.Struct, frozen=True):
    """In hundredths of a franc. `groups` are the totals of the groups A to P, `vat` the VAT in them. The grand total,
    which includes VAT, shows whether the groups do. `specific` is None if left out."""

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
    """34 numbers: total, groups, VAT, specific tax, which may be missing. More fields are ignored, unless decimal
    commas have split the numbers themselves."""
    if len(fields) <= _SUBTOTAL_FIELDS:
        return _amounts([*fields, ""][:_SUBTOTAL_FIELDS])
    found = _adding_up(fields)
    for count in (_SUBTOTAL_FIELDS, _SUBTOTAL_LEAST):
        if found is None:
            found = Rejoining(count, fits=_adds_up).read(fields)
    return [*found, 0][:_SUBTOTAL_FIELDS] if found else _amounts(fields[:_SUBTOTAL_FIELDS])


def _adding_up(fields: list[str]) -> list[int] | None:
    """The numbers without rejoining, if they are a consistent subtotal."""
    if "00" in fields:
        return None
    try:
        found = _amounts(fields[:_SUBTOTAL_FIELDS])
    except Nonsense:
        return None
    return found if _adds_up(found) else None


def _amounts(fields: Sequence[str]) -> list[int]:
    return [read_hundredths(field, SUBTOTAL_AMOUNT) for field in fields]


def _adds_up(numbers: list[int]) -> bool:
    """Within one franc for each group, and VAT only in groups with sales."""
    total, groups, vat = numbers[0], numbers[1 : 1 + _EACH], numbers[1 + _EACH : 1 + 2 * _EACH]
    sold = sum(1 for amount in groups if amount)
    off = min(abs(total - sum(groups)), abs(total - sum(groups) - sum(vat)))
    return off <= sold * _FRANC and all(not tax or tax < amount for amount, tax in zip(groups, vat, strict=True))


class LastInvoiceReply(msgspec.Struct, frozen=True):
    """`code` without dashes; `number` as the machine returns it (it unescapes: `A^lt;1` comes back as `A<1`). It may be
    from another program: unknown type, no code or time (empty), unreadable total (0)."""

    time: str
    type: str
    code: str
    number: str
    total: int


class StateReply(msgspec.Struct, frozen=True):
    """`nim` with its suffix if the firmware sends one; `rates` of the groups from A on, to P at most; `time` empty if
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
    """None before the first invoice: its fields are then missing or empty; time and total may be zeros."""
    if not _has_block(fields):
        return None, _rates_alone(fields)
    if _is_blank(fields[:_LAST_FIELDS]):
        return None, _rates_alone(fields[_LAST_FIELDS:])
    time, kind, code, *rest = fields
    size, total, rates = _total_and_rates(rest)
    last = LastInvoiceReply(
        time=read_time_if_any(time),
        type=kind.strip().upper(),
        code=if_any(read_code, code, ""),
        number=unescape(",".join(rest[:size])).strip(),
        total=total,
    )
    return last, rates


def _has_block(fields: Sequence[str]) -> bool:
    """Whether C1h has fields of a last invoice before its rates, even empty ones: it has letters or a time, or enough
    fields for both, or only blanks where the rates would begin. Rates with a
    decimal comma are as many, but begin with 0: group A is exempt."""
    block = fields[:_LAST_FIELDS]
    if len(block) < _LAST_FIELDS:
        return False
    if any(char.isalpha() for field in block for char in field) or read_time_if_any(block[0]):
        return True
    return (len(fields) >= _LAST_FIELDS + _EACH and block[0] != "0") or (len(fields) > _EACH and _is_blank(block))


def _is_blank(block: Sequence[str]) -> bool:
    return not any(field.strip("0. ") for field in block)


def _rates_alone(fields: list[str]) -> tuple[int, ...]:
    """Read as behind a last invoice, with an invented number and total before them."""
    return _total_and_rates(["", "1", *fields])[2]


def _total_and_rates(fields: list[str]) -> tuple[int, int, tuple[int, ...]]:
    """Number of fields of the invoice number, total, and rates. With more than eighteen fields, an unescaped comma may
    be in the number, in the total (`15000,00`) or in the rates, or unknown fields may follow. The first of these
    readings with a total above 0 and valid rates is taken."""
    exact = len(fields) - _TOTAL_AND_RATES
    if exact > 1:
        for size, found in _readings(fields, min(exact, _COMMAS_MOST)):
            if found is not None:
                return size, francs(found[0]), tuple(found[1:])
    total = if_any(partial(read_money, what=LAST_INVOICE_TOTAL), ",".join(fields[1:2]), 0)
    return 1, total, _rates(tuple(fields[2 : 1 + _TOTAL_AND_RATES]))


def _readings(fields: list[str], most: int) -> Iterator[tuple[int, list[int] | None]]:
    """The number takes `size` fields. Cents other than `00` are tried last: this currency has none."""
    for size in range(1, most + 1):
        yield size, _rejoined(fields[size:], whole=True)
    yield 1, _rejoined(fields[1:], whole=False)
    yield 1, _rejoined(fields[1:], whole=True, count=_TOTAL_AND_RATES - 1)


def _rejoined(fields: Sequence[str], *, whole: bool, count: int = _TOTAL_AND_RATES) -> list[int] | None:
    return Rejoining(count, may_be=_total_or_rate, whole=whole).read(fields)


def _total_or_rate(place: int, value: int) -> bool:
    """Allowed values: group A is exempt by law, which distinguishes a total's decimals from the first rate."""
    if place <= 1:
        return (value > 0) is (place == 0)
    return value <= _WHOLE_RATE


@lru_cache(maxsize=16)
def _rates(fields: tuple[str, ...]) -> tuple[int, ...]:
    """Cached: they are the same in nearly every C1h of a machine, and took as long to read as the rest."""
    return tuple(read_hundredths(rate, VAT_RATE) for rate in fields)
