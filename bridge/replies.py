"""What a machine answers, one frozen value per command of protocol section 3; `read` raises Nonsense.

Money is in whole XOF and rates in hundredths of a percent; times are the machine's 14 digits, counters as in the
protocol. `specific` stands for the specific tax (excise).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from bridge.errors import Nonsense
from bridge.fields import (
    nonsense,
    read_code,
    read_counter,
    read_hundredths,
    read_money,
    read_time,
    unescape,
)

GROUPS = "ABCDEFGHIJKLMNOP"
_STATE_FIELDS = 6
_LAST_FIELDS = 5
_NIM = re.compile(r"[A-Za-z]{2}[0-9]{8}(?:-[0-9]{1,9})?")
_BALANCE = re.compile(r"([DR])(.*)", re.DOTALL)
_SERVER_STATES = ("CON", "TRA", "DIS")


@dataclass(frozen=True, slots=True)
class LastInvoice:
    """`code` without dashes; `number` as the machine kept it (see `fields.as_machine_tells`)."""

    time: str
    type: str
    code: str
    number: str
    total: int

    @classmethod
    def read(cls, fields: list[str]) -> Self | None:
        """None before the first invoice: the fields are left out, or empty, where a time and a total may be zeros."""
        if not any(field.strip("0.") for field in fields):
            return None
        time, kind, code, number, total = fields
        return cls(
            time=read_time(time, "the time of the last invoice"),
            type=kind,
            code=read_code(code),
            number=unescape(number),
            total=read_money(total, "the total of the last invoice"),
        )


@dataclass(frozen=True, slots=True)
class State:
    """`nim` with its suffix where the firmware sends one; `rates` of the groups A to P."""

    nim: str
    ifu: str
    time: str
    tc: int
    fvc: int
    frc: int
    last: LastInvoice | None
    rates: tuple[int, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        fields = text.split(",")
        extra = len(fields) - _STATE_FIELDS - len(GROUPS)
        if extra not in (0, _LAST_FIELDS):
            raise Nonsense(f"the machine's state has {len(fields)} fields")
        nim, ifu, time, tc, fvc, frc = fields[:_STATE_FIELDS]
        return cls(
            nim=_read_nim(nim),
            ifu=unescape(ifu),
            time=read_time(time, "the machine's clock"),
            tc=read_counter(tc, "TC"),
            fvc=read_counter(fvc, "FVC"),
            frc=read_counter(frc, "FRC"),
            last=LastInvoice.read(fields[_STATE_FIELDS : -len(GROUPS)]),
            rates=tuple(read_hundredths(rate, "a VAT rate") for rate in fields[-len(GROUPS) :]),
        )


@dataclass(frozen=True, slots=True)
class ServerLink:
    """Transactions acknowledged by the tax server and held by the machine; `last_contact` empty if never."""

    acknowledged: int
    held: int
    last_contact: str
    state: str
    error: str

    @classmethod
    def read(cls, text: str) -> Self:
        acknowledged, held, time, state, *error = _split(text, 4, 5, "the link to the tax server")
        if state not in _SERVER_STATES:
            raise nonsense("STA", state)
        return cls(
            acknowledged=read_counter(acknowledged, "EC"),
            held=read_counter(held, "DC"),
            last_contact=time and read_time(time, "the last contact to the tax server"),
            state=state,
            error=unescape("".join(error)),
        )


@dataclass(frozen=True, slots=True)
class Done:
    """The machine took it; what else it says is free."""

    text: str


@dataclass(frozen=True, slots=True)
class Opened:
    fc: int
    tc: int

    @classmethod
    def read(cls, text: str) -> Self:
        fc, tc = _split(text, 2, 2, "the opening of an invoice")
        return cls(read_counter(fc, "FC"), read_counter(tc, "TC"))


@dataclass(frozen=True, slots=True)
class LineTotals:
    """Of one line, in hundredths of a franc: only the subtotal's amounts are known to be whole."""

    ttc: int
    ht: int
    tva: int
    specific: int

    @classmethod
    def read(cls, text: str) -> Self:
        fields = _split(text, 4, 4, "the totals of a line")
        return cls(*(read_hundredths(field, "an amount of a line") for field in fields))


@dataclass(frozen=True, slots=True)
class Subtotal:
    """`groups` are the totals with VAT and `vat` the VAT in them, of the groups A to P."""

    total: int
    groups: tuple[int, ...]
    vat: tuple[int, ...]
    specific: int

    @classmethod
    def read(cls, text: str) -> Self:
        each = len(GROUPS)
        fields = _split(text, 2 + 2 * each, 2 + 2 * each, "the subtotal")
        total, *groups, specific = (read_money(field, "an amount of the subtotal") for field in fields)
        return cls(total, tuple(groups[:each]), tuple(groups[each:]), specific)


@dataclass(frozen=True, slots=True)
class Balance:
    """After a payment: what is still due, or the change to give back; the other one is 0."""

    due: int
    change: int

    @classmethod
    def read(cls, text: str) -> Self:
        match = _BALANCE.fullmatch(text)
        if not match:
            raise nonsense("the answer to a payment", text)
        amount = read_money(match[2], "the answer to a payment")
        return cls(amount, 0) if match[1] == "D" else cls(0, amount)


@dataclass(frozen=True, slots=True)
class Closed:
    """`fc` is the counter of the type just certified; `code` without dashes; `number` empty if not told."""

    fc: int
    tc: int
    type: str
    time: str
    nim: str
    ifu: str
    code: str
    number: str

    @classmethod
    def read(cls, text: str) -> Self:
        fc, tc, kind, time, nim, ifu, code, *number = _split(text, 7, 8, "the certification")
        return cls(
            fc=read_counter(fc, "FC"),
            tc=read_counter(tc, "TC"),
            type=kind,
            time=read_time(time, "the time of the certification"),
            nim=_read_nim(nim),
            ifu=unescape(ifu),
            code=read_code(code),
            number=unescape("".join(number)),
        )


@dataclass(frozen=True, slots=True)
class Pending:
    """Not yet: the tax server is being asked."""

    text: str


def _split(text: str, least: int, most: int, what: str) -> list[str]:
    """The last of `most` fields keeps any further commas."""
    fields = text.split(",", most - 1)
    if len(fields) < least:
        raise nonsense(what, text)
    return fields


def _read_nim(text: str) -> str:
    if not _NIM.fullmatch(text):
        raise nonsense("NIM", text)
    return text
