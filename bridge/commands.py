"""One frozen request for each command of protocol section 3: `encode` to data, `read` for its reply.

An unreadable reply that decides nothing (to C0h, 31h and 35h) is returned as `Done`: it is no reason to refuse a sale,
and the subtotal and 38h show the machine's result. Money is in whole XOF, prices in hundredths, quantities in
thousandths, rates in hundredths of a percent. Free texts are cut if the frame would be too long; numbers, IFU and
references never are (Unsendable if they do not fit)."""

from __future__ import annotations

import re
from typing import ClassVar, Literal, Protocol, TypeVar

import msgspec

from bridge.command_table import (
    CLOSE,
    COMMENT,
    CUSTOMER,
    ITEM,
    OPEN,
    PAYMENT,
    SERVER,
    STATE,
    SUBTOTAL,
    TAXPAYER,
)
from bridge.errors import Nonsense, Refused
from bridge.fields import (
    UTF_8,
    Free,
    compose,
    cut,
    decode,
    escape,
    price,
    quantity,
    short_price,
    stored_texts,
    unescape,
)
from bridge.frame import MAX_REQUEST_DATA
from bridge.replies.answers import (
    Balance,
    Closed,
    Done,
    LineTotals,
    Opened,
    Pending,
    ServerLinkReply,
    StateReply,
    SubtotalReply,
)

R_co = TypeVar("R_co", covariant=True)
Readable = TypeVar("Readable", Opened, LineTotals, Balance)

_CREDIT_TYPES = ("FA", "EA")
_REFUSAL = re.compile(r"\s*E\s?:", re.IGNORECASE)
_PENDING = re.compile(r"\s*P\s?:", re.IGNORECASE)
_RESULT = re.compile(r"\s*R\s?:", re.IGNORECASE)


class MachineHabits(msgspec.Struct, frozen=True):
    """Differences between machines, where the protocol is unsure (C) or firmwares differ; the defaults suit known ones.
    `name_bytes`: the longest item name, 0 for as much as a frame has. `walk_in`: an unknown customer is sent as no
    data, or as `CC` and empty fields. `close_total`: 38h with `15000.00`, or with `15000`."""

    code_page: str = UTF_8
    name_bytes: int = 0
    walk_in: Literal["nothing", "fields"] = "nothing"
    close_total: Literal["decimals", "whole"] = "decimals"


USUAL = MachineHabits()


class Command(Protocol[R_co]):
    @property
    def cmd(self) -> int: ...
    def encode(self, habits: MachineHabits = USUAL, /) -> bytes: ...
    def read(self, text: str, /) -> R_co: ...


def _refused(text: str) -> None:
    if refusal := _REFUSAL.match(text):
        raise Refused(unescape(text[refusal.end() :]).strip())


def understand(command: Command[R_co], data: bytes, habits: MachineHabits = USUAL) -> R_co:
    """Reads the reply's data. Raises Refused for an `E:` answer, Nonsense for an unreadable one."""
    text = decode(data, habits.code_page)
    _refused(text)
    return command.read(text)


def _unless_unreadable(kind: type[Readable], text: str) -> Readable | Done:
    try:
        return kind.read(text)
    except Nonsense:
        return Done(text)


class ReadState(msgspec.Struct, frozen=True):
    cmd: ClassVar[int] = STATE

    def encode(self, _: MachineHabits = USUAL) -> bytes:
        return b""

    def read(self, text: str) -> StateReply:
        return StateReply.read(text)


class ReadServerLink(msgspec.Struct, frozen=True):
    cmd: ClassVar[int] = SERVER

    def encode(self, _: MachineHabits = USUAL) -> bytes:
        return b""

    def read(self, text: str) -> ServerLinkReply:
        return ServerLinkReply.read(text)


class ReadTaxpayer(msgspec.Struct, frozen=True):
    """`line` 0 is the trade name, 1 and 2 the address, 3 the city, 4 the phone, 5 the e-mail."""

    line: int
    cmd: ClassVar[int] = TAXPAYER

    def encode(self, _: MachineHabits = USUAL) -> bytes:
        return f"I{self.line}".encode()

    def read(self, text: str) -> str:
        return unescape(re.sub(rf"\s*I{self.line}\s*[,:;=]", "", text, count=1, flags=re.IGNORECASE)).strip()


class SetCustomer(msgspec.Struct, frozen=True):
    """Customer of the next invoice; an unknown walk-in customer needs no data."""

    type: str = "CC"
    ifu: str = ""
    name: str = ""
    address: str = ""
    phone: str = ""
    email: str = ""
    rccm: str = ""
    cmd: ClassVar[int] = CUSTOMER

    def encode(self, habits: MachineHabits = USUAL) -> bytes:
        if self == SetCustomer() and habits.walk_in == "nothing":
            return b""
        return compose(self.parts(), MAX_REQUEST_DATA, habits.code_page)

    def parts(self, _: MachineHabits = USUAL) -> list[str]:
        parts = [self.type, ",", escape(self.ifu)]
        for text in (self.name, self.address, self.phone, self.email, self.rccm):
            parts += (",", Free(text))
        return parts

    def read(self, text: str) -> Done:
        return Done(text)


class WithTexts(Protocol):
    """A command whose `Free` parts are cut if the frame would be too long."""

    def parts(self, habits: MachineHabits = ..., /) -> list[str]: ...


def stored(command: WithTexts, habits: MachineHabits = USUAL) -> list[str]:
    """The command's free texts as the machine receives them, in their order."""
    return stored_texts(command.parts(habits), MAX_REQUEST_DATA, habits.code_page)


class OpenInvoice(msgspec.Struct, frozen=True):
    """`nature` and `reference` belong to credit notes (FA, EA); all others omit them."""

    type: str
    number: str
    ifu: str
    price_mode: str
    isf: str
    operator_id: str
    operator_name: str
    nature: str = ""
    reference: str = ""
    cmd: ClassVar[int] = OPEN

    def encode(self, habits: MachineHabits = USUAL) -> bytes:
        return compose(self.parts(), MAX_REQUEST_DATA, habits.code_page)

    def parts(self, _: MachineHabits = USUAL) -> list[str]:
        credit = [self.nature, escape(self.reference)] if self.type in _CREDIT_TYPES else []
        rest = [escape(self.ifu), self.type, *credit, self.price_mode, escape(self.isf), escape(self.number)]
        return [escape(self.operator_id), ",", Free(self.operator_name), ",", ",".join(rest)]

    def read(self, text: str) -> Opened | Done:
        return _unless_unreadable(Opened, text)


class AddItem(msgspec.Struct, frozen=True):
    """`amount`: price × quantity, plus the specific tax with its VAT; in HT mode all of that without VAT. `cents` are
    added for a machine that accepts two decimals."""

    name: str
    group: str
    rate: int
    amount: int
    price: int
    quantity: int
    item_type: str
    code: str
    specific_rate: int
    specific_tax: int
    specific_name: str
    cents: int
    cmd: ClassVar[int] = ITEM

    def encode(self, habits: MachineHabits = USUAL) -> bytes:
        return compose(self.parts(habits), MAX_REQUEST_DATA, habits.code_page)

    def parts(self, habits: MachineHabits = USUAL) -> list[str]:
        parts: list[str] = [Free(self._name(habits))]
        if self.code:
            parts += ("\n", Free(self.code))
        amount = price(self.amount * 100 + self.cents) if self.cents else self.amount
        parts.append(f"\t{self.item_type},{self.group}{price(self.rate)}%{amount}")
        parts.append(f"\t{price(self.price)}*{quantity(self.quantity)}")
        if self.specific_tax:
            parts.append(f";T{short_price(self.specific_rate)},{self.specific_tax}")
            if self.specific_name:
                parts += (",", Free(self.specific_name))
        return parts

    def _name(self, habits: MachineHabits) -> str:
        if not habits.name_bytes:
            return self.name
        return unescape(decode(cut(self.name, habits.name_bytes, habits.code_page), habits.code_page))

    def read(self, text: str) -> LineTotals | Done:
        return _unless_unreadable(LineTotals, text)


class ReadSubtotal(msgspec.Struct, frozen=True):
    cmd: ClassVar[int] = SUBTOTAL

    def encode(self, _: MachineHabits = USUAL) -> bytes:
        return b""

    def read(self, text: str) -> SubtotalReply:
        return SubtotalReply.read(text)


class Pay(msgspec.Struct, frozen=True):
    method: str
    amount: int
    cmd: ClassVar[int] = PAYMENT

    def encode(self, _: MachineHabits = USUAL) -> bytes:
        return f"{self.method}{self.amount}".encode()

    def read(self, text: str) -> Balance | Done:
        return _unless_unreadable(Balance, text)


class AddComment(msgspec.Struct, frozen=True):
    label: str
    text: str
    cmd: ClassVar[int] = COMMENT

    def encode(self, habits: MachineHabits = USUAL) -> bytes:
        return compose(self.parts(), MAX_REQUEST_DATA, habits.code_page)

    def parts(self, _: MachineHabits = USUAL) -> list[str]:
        return [f"{self.label},", Free(self.text)]

    def read(self, text: str) -> Done:
        return Done(text)


class CloseInvoice(msgspec.Struct, frozen=True):
    total: int
    cmd: ClassVar[int] = CLOSE

    def encode(self, habits: MachineHabits = USUAL) -> bytes:
        return (str(self.total) if habits.close_total == "whole" else price(self.total * 100)).encode()

    def read(self, text: str) -> Closed | Pending:
        if pending := _PENDING.match(text):
            return Pending(unescape(text[pending.end() :]).strip())
        result = _RESULT.match(text)
        return Closed.read(text[result.end() :] if result else text)


class CancelInvoice(msgspec.Struct, frozen=True):
    cmd: ClassVar[int] = CLOSE

    def encode(self, _: MachineHabits = USUAL) -> bytes:
        return b"C"

    def read(self, text: str) -> Done:
        return Done(text)
