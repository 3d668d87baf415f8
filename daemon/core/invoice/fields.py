"""Reads a JSON object strictly, field by field, and collects all faults for one answer.

JSON `null` means an absent field. `"2"` is not 2 and `true` is not 1.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TypeVar

import msgspec

from common.language import Text, sentence
from common.language.reasons import TEXT_CUT, TEXT_REPLACED, to_stored
from common.one_line import BLANK, UNSEEN, fault_of_line, shows_nothing
from daemon.core import money
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.invoice.invoice import BUSINESSES, NO_ITEM, Invoice, Warn
from daemon.core.invoice.number import normalised

N = TypeVar("N", int, int | Fraction)
COMPANY_NAME = "customer.name"


def is_visible(number: str) -> bool:
    """Whether each character shows, or is a plain space: two numbers that look the same must not be two numbers."""
    unseen = any(unicodedata.category(char) in UNSEEN or (char.isspace() and char != " ") for char in number)
    return not unseen and not BLANK.search(number)


class Fields:
    """`path` is what stands before a field's name in an error: empty, or as `items[2].`."""

    __slots__ = ("errors", "path", "values")

    def __init__(self, values: dict[str, object], path: str, errors: list[FieldError]) -> None:
        self.values = values
        self.path = path
        self.errors = errors

    def fault(self, name: str, message: str) -> None:
        self.errors.append(FieldError(self.path + name, message))

    def text(self, name: str, longest: int, *, required: bool = False) -> str:
        """Empty when absent, blank, or faulty; a required one has to show something."""
        value = self.values.get(name)
        if value is None or value == "":
            if required:
                self.fault(name, Text("is required"))
            return ""
        if not isinstance(value, str):
            self.fault(name, Text("must be a string"))
            return ""
        return self.checked(name, value, longest, required=required)

    def checked(self, name: str, value: str, longest: int, *, required: bool) -> str:
        if fault := fault_of_line(value, longest, may_be_blank=not required):
            self.fault(name, fault)
            return ""
        return "" if shows_nothing(value) else value

    def texts(self, names: Mapping[str, tuple[str, int]]) -> dict[str, str]:
        """Each as `text`, by its name in the ledger (`core.invoice.request.kept_texts`)."""
        return {target: self.text(name, longest) for target, (name, longest) in names.items()}

    def number(self, name: str, longest: int) -> str:
        """An invoice number, normalised; empty when absent or faulty."""
        value = self.values.get(name)
        if not isinstance(value, str) or value == "":
            return self.text(name, longest, required=True)
        value = normalised(value)
        if is_visible(value):
            return self.checked(name, value, longest, required=True)
        self.fault(name, Text("must not contain invisible characters, or spaces other than the plain one"))
        return ""

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of `allowed`; without a default it is required. Empty when missing or faulty."""
        value = self.values.get(name)
        if isinstance(value, str) and value in allowed:
            return value
        if value is not None:
            self.fault(name, Text("must be one of {choices}", choices=", ".join(allowed)))
        elif default is None:
            self.fault(name, Text("is required"))
        else:
            return default
        return ""

    def above_zero(self, name: str, decimals: int, most: int) -> int | None:
        """In units of 10^-decimals; None when absent or faulty. `most` is in whole units."""
        return self._read(name, partial(money.scaled, decimals=decimals), most * 10**decimals, most)

    def amount(self, name: str) -> int | Fraction | None:
        """Exact francs above 0, an int when whole; None when absent or faulty."""
        return self._read(name, money.fraction, money.MAX_AMOUNT, money.MAX_AMOUNT)

    def francs(self, name: str) -> int:
        """Whole francs; 0 when absent, nought or faulty."""
        value = self.values.get(name)
        if isinstance(value, int | Decimal) and not isinstance(value, bool) and value <= 0:
            if value:
                self.fault(name, Text("must be a whole number of francs, 0 or more"))
            return 0
        value = self.amount(name)
        if value is not None and not isinstance(value, int):
            self.fault(name, Text("must be a whole number"))
        return value if isinstance(value, int) else 0

    def whole(self, name: str, most: int) -> int:
        """From 0 to `most`; 0 when absent or faulty."""
        value = self.values.get(name)
        try:
            whole = 0 if value is None else money.scaled(value, 0)
        except ValueError:
            whole = -1
        if 0 <= whole <= most:
            return whole
        self.fault(name, Text("has to be a whole number from {least} to {most}", least=0, most=most))
        return 0

    def _read(self, name: str, read: Callable[[object], N], limit: int, display: int) -> N | None:
        value = self.values.get(name)
        if value is None:
            return None
        try:
            result = read(value)
        except ValueError as error:
            self.fault(name, sentence(error))
            return None
        if 0 < result <= limit:
            return result
        self.fault(name, Text("must be at most {shown}", shown=display) if result > 0 else Text("must be above 0"))
        return None

    def inside(self, name: str) -> Fields | None:
        """The object in a field; None when absent or faulty."""
        value = self.values.get(name)
        if isinstance(value, dict):
            return Fields(value, f"{self.path}{name}.", self.errors)
        if value is not None:
            self.fault(name, Text("must be an object"))
        return None

    def each(self, name: str, most: int, *, required: bool = True) -> list[object]:
        """The elements of a list; empty when absent or faulty."""
        value = self.values.get(name)
        if value is None:
            if required:
                self.fault(name, Text("is required"))
        elif not isinstance(value, list):
            self.fault(name, Text("must be a list"))
        elif required and not value:
            self.fault(name, Text("must not be empty"))
        elif len(value) > most:
            self.fault(name, Text("must have at most {most} entries", most=most))
        else:
            return value
        return []

    def objects(self, name: str, most: int) -> Iterator[Fields]:
        """Each element of a required list; one that is no object is a fault and is left out."""
        for index, value in enumerate(self.each(name, most)):
            place = f"{self.path}{name}[{index}]"
            if isinstance(value, dict):
                yield Fields(value, place + ".", self.errors)
            else:
                self.errors.append(FieldError(place, Text("must be an object")))


def as_cut(invoice: Invoice, as_stored: Callable[[Invoice], Invoice]) -> Invoice:
    """The invoice with a warning for each text that will be cut or loses characters. InvalidRequest for a cut name of a
    company or trader, which tells who may deduct the VAT."""
    stored = as_stored(invoice)
    if stored is invoice:
        return invoice
    warnings = []
    for (field, before, item), (_, after, _) in zip(_texts(invoice), _texts(stored), strict=True):
        length, is_cut = len(after), len(after) < len(before)
        if is_cut and field == COMPANY_NAME and invoice.customer.client_type in BUSINESSES:
            message = Text(
                "is longer than the machine stores beside the customer's other texts: {length} characters",
                length=length,
            )
            raise InvalidRequest.at(field, message)
        if before != after:
            reason = TEXT_CUT(field=field, length=length) if is_cut else TEXT_REPLACED(field=field)
            warnings.append(Warn("TEXT_CUT", to_stored(reason), item, field))
    return msgspec.structs.replace(stored, warnings=(*invoice.warnings, *warnings))


def _texts(invoice: Invoice) -> Iterator[tuple[str, str, int]]:
    """Each text that may be cut: the path of its field, the text, the index of the item."""
    yield "operatorName", invoice.operator_name, NO_ITEM
    customer = invoice.customer
    for name in ("name", "address", "phone", "email", "rccm"):
        yield f"customer.{name}", getattr(customer, name), NO_ITEM
    for index, item in enumerate(invoice.items):
        yield f"items[{index}].name", item.name, index
        yield f"items[{index}].code", item.code, index
        yield f"items[{index}].specificTaxDesc", item.specific_name, index
    for index, comment in enumerate(invoice.comments):
        yield f"comments[{index}]", comment.text, NO_ITEM
