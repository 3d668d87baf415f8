"""Replies of one look: C2h, C0h, 31h, 35h, 38h, and those that only say yes."""

from __future__ import annotations

import re
from typing import Self

import msgspec

from bridge.errors import Nonsense
from bridge.fields import unescape
from bridge.replies.numbers import (
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
    LINE_AMOUNT,
    LINE_TOTALS,
    PAYMENT_ANSWER,
    TAX_SERVER_LINK,
)

_BALANCE = re.compile(r"\s*([DR])[\s:,]*(.*)", re.DOTALL | re.IGNORECASE)


class ServerLinkReply(msgspec.Struct, frozen=True):
    """Transactions acknowledged by the tax server and held by the machine; `last_contact` empty if never; `state` is CON,
    TRA or DIS, or another word of the machine's own."""

    acknowledged: int
    held: int
    last_contact: str
    state: str
    error: str

    @classmethod
    def read(cls, text: str) -> Self:
        acknowledged, held, time, state, *error = [*_split(text, 2, 5, TAX_SERVER_LINK), "", ""]
        return cls(
            acknowledged=read_counter(acknowledged, "EC"),
            held=read_counter(held, "DC"),
            last_contact=read_time_if_any(time),
            state=state.strip().upper(),
            error=unescape("".join(error)).strip(),
        )


class Done(msgspec.Struct, frozen=True):
    """The machine took it; what else it says is free."""

    text: str


class Opened(msgspec.Struct, frozen=True):
    fc: int
    tc: int

    @classmethod
    def read(cls, text: str) -> Self:
        fc, tc, *_ = _split(text, 2, 3, INVOICE_OPENING)
        return cls(read_counter(fc, "FC"), read_counter(tc, "TC"))


class LineTotals(msgspec.Struct, frozen=True):
    """Of one line, in hundredths of a franc."""

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
    """After a payment, in whole XOF: what is still due, or the change to give back; the other one is 0."""

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
    """`fc` is the counter of the type just certified, None if not told; `code` without dashes; `nim` empty if it is none;
    `number` empty if not told, and with whatever follows it."""

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
        """Nonsense where a receipt would lack something: C1h tells it too."""
        fc, tc, kind, time, nim, ifu, code, *number = _split(text, 7, 8, CERTIFICATION)
        return cls(
            fc=read_counter(fc, "FC") if fc.strip() else None,
            tc=read_counter(tc, "TC"),
            type=kind.strip().upper(),
            time=read_time(time, CERTIFICATION_TIME),
            nim=_nim_if_any(nim),
            ifu=unescape(ifu).strip(),
            code=read_code(code),
            number=unescape("".join(number)).strip(),
        )


def _nim_if_any(text: str) -> str:
    try:
        return read_nim(text)
    except Nonsense:
        return ""


class Pending(msgspec.Struct, frozen=True):
    """Not yet: the tax server is being asked."""

    text: str


def _split(text: str, least: int, most: int, what: str) -> list[str]:
    """The last of `most` fields keeps any further commas."""
    fields = text.split(",", most - 1)
    if len(fields) < least:
        raise nonsense(what, text)
    return fields
