"""One frozen request for each command of protocol section 3: `encode` to data, `read` for its reply.

An unreadable reply that decides nothing (to C0h, 31h and 35h) is returned as `Done`: it is no reason to refuse a sale,
and the subtotal and 38h show the machine's result. Money is in whole XOF, prices in hundredths, quantities in
thousandths, rates in hundredths of a percent. Free texts are cut if the frame would be too long; numbers, IFU and
references never are (Unsendable if they do not fit)."""

import re
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from bridge.command_table import CLOSE, COMMENT, CUSTOMER, ITEM, OPEN, PAYMENT, SERVER, STATE, SUBTOTAL, TAXPAYER
from bridge.errors import Refused
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
from bridge.replies.numbers import if_any

R = TypeVar("R")

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


class Command(msgspec.Struct, Generic[R], frozen=True):
    cmd: ClassVar[int]

    def parts(self, _: MachineHabits) -> list[str]:
        """Its data; a `Free` part is cut if the frame would be too long."""
        return []

    def encode(self, habits: MachineHabits = USUAL) -> bytes:
        return compose(self.parts(habits), MAX_REQUEST_DATA, habits.code_page)

    def read(self, text: str) -> R:
        """The reply to it."""
        raise NotImplementedError  # each command reads its own; the base class is never sent


class Acknowledged(Command[Done], frozen=True):
    """A command whose reply is free text."""

    def read(self, text: str) -> Done:
        return Done(text)


def understand(command: Command[R], data: bytes, habits: MachineHabits = USUAL) -> R:
    """Reads the reply's data. Raises Refused for an `E:` answer, Nonsense for an unreadable one."""
    text = decode(data, habits.code_page)
    if refusal := _REFUSAL.match(text):
        raise Refused(unescape(text[refusal.end() :]).strip())
    return command.read(text)


class ReadState(Command[StateReply], frozen=True):
    cmd: ClassVar[int] = STATE

    def read(self, text: str) -> StateReply:
        return StateReply.read(text)


class ReadServerLink(Command[ServerLinkReply], frozen=True):
    cmd: ClassVar[int] = SERVER

    def read(self, text: str) -> ServerLinkReply:
        return ServerLinkReply.read(text)


class ReadTaxpayer(Command[str], frozen=True):
    """`line` 0 is the trade name, 1 and 2 the address, 3 the city, 4 the phone, 5 the e-mail."""

    line: int
    cmd: ClassVar[int] = TAXPAYER

    def parts(self, _: MachineHabits) -> list[str]:
        return [f"I{self.line}"]

    def read(self, text: str) -> str:
        return unescape(re.sub(rf"\s*I{self.line}\s*[,:;=]", "", text, count=1, flags=re.IGNORECASE)).strip()


class SetCustomer(Acknowledged, frozen=True):
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
        return b"" if self == SetCustomer() and habits.walk_in == "nothing" else super().encode(habits)

    def parts(self, _: MachineHabits) -> list[str]:
        parts = [self.type, ",", escape(self.ifu)]
        for text in (self.name, self.address, self.phone, self.email, self.rccm):
            parts += (",", Free(text))
        return parts


def stored(command: Command[Any], habits: MachineHabits = USUAL) -> list[str]:
    """The command's free texts as the machine receives them, in their order."""
    return stored_texts(command.parts(habits), MAX_REQUEST_DATA, habits.code_page)


class OpenInvoice(Command[Opened | Done], frozen=True):
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

    def parts(self, _: MachineHabits) -> list[str]:
        credit = [self.nature, escape(self.reference)] if self.type in _CREDIT_TYPES else []
        rest = [escape(self.ifu), self.type, *credit, self.price_mode, escape(self.isf), escape(self.number)]
        return [escape(self.operator_id), ",", Free(self.operator_name), ",", ",".join(rest)]

    def read(self, text: str) -> Opened | Done:
        return if_any(Opened.read, text, Done(text))


class AddItem(Command[LineTotals | Done], frozen=True):
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

    def parts(self, habits: MachineHabits) -> list[str]:
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
        return if_any(LineTotals.read, text, Done(text))


class ReadSubtotal(Command[SubtotalReply], frozen=True):
    cmd: ClassVar[int] = SUBTOTAL

    def read(self, text: str) -> SubtotalReply:
        return SubtotalReply.read(text)


class Pay(Command[Balance | Done], frozen=True):
    method: str
    amount: int
    cmd: ClassVar[int] = PAYMENT

    def parts(self, _: MachineHabits) -> list[str]:
        return [f"{self.method}{self.amount}"]

    def read(self, text: str) -> Balance | Done:
        return if_any(Balance.read, text, Done(text))


class AddComment(Acknowledged, frozen=True):
    label: str
    text: str
    cmd: ClassVar[int] = COMMENT

    def parts(self, _: MachineHabits) -> list[str]:
        return [f"{self.label},", Free(self.text)]


class CloseInvoice(Command[Closed | Pending], frozen=True):
    total: int
    cmd: ClassVar[int] = CLOSE

    def parts(self, habits: MachineHabits) -> list[str]:
        return [str(self.total) if habits.close_total == "whole" else price(self.total * 100)]

    def read(self, text: str) -> Closed | Pending:
        if pending := _PENDING.match(text):
            return Pending(unescape(text[pending.end() :]).strip())
        result = _RESULT.match(text)
        return Closed.read(text[result.end() :] if result else text)


class CancelInvoice(Acknowledged, frozen=True):
    cmd: ClassVar[int] = CLOSE

    def parts(self, _: MachineHabits) -> list[str]:
        return ["C"]
