"""One frozen request per command of protocol section 3, to data text; each knows how its reply reads.

Money is in whole XOF, prices in hundredths, quantities in thousandths, rates in hundredths of a percent. Free texts
are cut where the frame would be too long; numbers, IFU and references never are (Unsendable when they do not fit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from bridge.errors import Refused
from bridge.fields import Free, compose, decode, escape, price, quantity, short_price, unescape
from bridge.frame import MAX_REQUEST_DATA
from bridge.replies import (
    Balance,
    Closed,
    Done,
    LineTotals,
    Opened,
    Pending,
    ServerLink,
    State,
    Subtotal,
)

R_co = TypeVar("R_co", covariant=True)

_CREDIT_TYPES = ("FA", "EA")


class Command(Protocol[R_co]):
    @property
    def cmd(self) -> int: ...
    def encode(self) -> bytes: ...
    def read(self, text: str) -> R_co: ...


def understand(command: Command[R_co], data: bytes) -> R_co:
    """The reply's data as its value. Refused for an `E:` answer, Nonsense for one that cannot be read."""
    text = decode(data)
    if text.startswith("E:"):
        raise Refused(unescape(text[2:]).strip())
    return command.read(text)


@dataclass(frozen=True, slots=True)
class ReadState:
    cmd: ClassVar[int] = 0xC1

    def encode(self) -> bytes:
        return b""

    def read(self, text: str) -> State:
        return State.read(text)


@dataclass(frozen=True, slots=True)
class ReadServerLink:
    cmd: ClassVar[int] = 0xC2

    def encode(self) -> bytes:
        return b""

    def read(self, text: str) -> ServerLink:
        return ServerLink.read(text)


@dataclass(frozen=True, slots=True)
class ReadTaxpayer:
    """`line` 0 is the trade name, 1 and 2 the address, 3 the city, 4 the phone, 5 the e-mail."""

    line: int
    cmd: ClassVar[int] = 0x2B

    def encode(self) -> bytes:
        return f"I{self.line}".encode()

    def read(self, text: str) -> str:
        return unescape(text.removeprefix(f"I{self.line},"))


@dataclass(frozen=True, slots=True)
class SetCustomer:
    """Of the next invoice; a walk-in customer of whom nothing is known needs no data."""

    type: str = "CC"
    ifu: str = ""
    name: str = ""
    address: str = ""
    phone: str = ""
    email: str = ""
    rccm: str = ""
    cmd: ClassVar[int] = 0xC3

    def encode(self) -> bytes:
        if self == SetCustomer():
            return b""
        parts = [self.type, ",", escape(self.ifu)]
        for text in (self.name, self.address, self.phone, self.email, self.rccm):
            parts += (",", Free(text))
        return compose(parts, MAX_REQUEST_DATA)

    def read(self, text: str) -> Done:
        return Done(text)


@dataclass(frozen=True, slots=True)
class OpenInvoice:
    """`nature` and `reference` belong to credit notes (FA, EA) and are left out of all others."""

    type: str
    number: str
    ifu: str
    price_mode: str
    isf: str
    operator_id: str
    operator_name: str
    nature: str = ""
    reference: str = ""
    cmd: ClassVar[int] = 0xC0

    def encode(self) -> bytes:
        credit = [self.nature, escape(self.reference)] if self.type in _CREDIT_TYPES else []
        rest = [escape(self.ifu), self.type, *credit, self.price_mode, escape(self.isf), escape(self.number)]
        parts = [escape(self.operator_id), ",", Free(self.operator_name), ",", ",".join(rest)]
        return compose(parts, MAX_REQUEST_DATA)

    def read(self, text: str) -> Opened:
        return Opened.read(text)


@dataclass(frozen=True, slots=True)
class AddItem:
    """`amount`: price × quantity, plus the specific tax with its VAT; in HT mode all of that without VAT."""

    name: str
    group: str
    rate: int
    amount: int
    price: int
    quantity: int
    item_type: str = "LOCBIE"
    code: str = ""
    specific_rate: int = 0
    specific_tax: int = 0
    specific_name: str = ""
    cmd: ClassVar[int] = 0x31

    def encode(self) -> bytes:
        parts: list[str] = [Free(self.name)]
        if self.code:
            parts += ("\n", Free(self.code))
        parts.append(f"\t{self.item_type},{self.group}{price(self.rate)}%{self.amount}")
        parts.append(f"\t{price(self.price)}*{quantity(self.quantity)}")
        if self.specific_tax:
            parts.append(f";T{short_price(self.specific_rate)},{self.specific_tax}")
            if self.specific_name:
                parts += (",", Free(self.specific_name))
        return compose(parts, MAX_REQUEST_DATA)

    def read(self, text: str) -> LineTotals:
        return LineTotals.read(text)


@dataclass(frozen=True, slots=True)
class ReadSubtotal:
    cmd: ClassVar[int] = 0x33

    def encode(self) -> bytes:
        return b""

    def read(self, text: str) -> Subtotal:
        return Subtotal.read(text)


@dataclass(frozen=True, slots=True)
class Pay:
    method: str
    amount: int
    cmd: ClassVar[int] = 0x35

    def encode(self) -> bytes:
        return f"{self.method}{self.amount}".encode()

    def read(self, text: str) -> Balance:
        return Balance.read(text)


@dataclass(frozen=True, slots=True)
class AddComment:
    label: str
    text: str
    cmd: ClassVar[int] = 0x36

    def encode(self) -> bytes:
        return compose([f"{self.label},", Free(self.text)], MAX_REQUEST_DATA)

    def read(self, text: str) -> Done:
        return Done(text)


@dataclass(frozen=True, slots=True)
class CloseInvoice:
    total: int
    cmd: ClassVar[int] = 0x38

    def encode(self) -> bytes:
        return price(self.total * 100).encode()

    def read(self, text: str) -> Closed | Pending:
        if text.startswith("P:"):
            return Pending(unescape(text[2:]))
        return Closed.read(text.removeprefix("R:"))


@dataclass(frozen=True, slots=True)
class CancelInvoice:
    cmd: ClassVar[int] = 0x38

    def encode(self) -> bytes:
        return b"C"

    def read(self, text: str) -> Done:
        return Done(text)
