"""The specific tax (excise) of one item: certified as its own line, or folded into the price; never a refusal.

Decision 4: both invariants of the service contract are taken literally, in exact arithmetic, in both price modes:

    amountTtc = unitPrice × quantity + specificTax × (1 + taxRate / 100)
    specificTaxRate × quantity = specificTax

and both results must be whole. Everything else is folded.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from common.language import Text, sentence
from daemon.core import money
from daemon.core.invoice.taxes import WHOLE

PRODUCT = 100_000
"""One franc in units of price × quantity: hundredths times thousandths."""

_QUANTITY = 1000
_PRICE = 100


class SpecificTax(NamedTuple):
    """`tax` of the line in whole XOF, `rate` per unit in hundredths."""

    tax: int
    rate: int


class Fold(NamedTuple):
    """`reason` goes on after "the specific tax is folded into the price: "."""

    reason: str


def carried(tax: object, rate: object) -> bool:
    """Whether an item carries one at all: a plain zero, which some tills always send, is none."""
    return not (_nothing(tax) and _nothing(rate))


def _nothing(value: object) -> bool:
    if value is None:
        return True
    try:
        return money.number(value) == 0
    except ValueError:
        return False


def judge(
    tax: object, rate: object, *, amount: int | Fraction, product: int, quantity: int, vat: int
) -> SpecificTax | Fold:
    """`product` is unitPrice × quantity in hundred-thousandths of a franc, `vat` in hundredths of a percent."""
    if tax is None or rate is None:
        return Fold(Text("specificTax and specificTaxRate must both be given"))
    try:
        exact_tax, exact_rate = _read("specificTax", tax), _read("specificTaxRate", rate)
    except ValueError as error:
        return Fold(sentence(error))
    if not isinstance(amount, int) or not isinstance(exact_tax, int):
        return Fold(Text("amountTtc and specificTax must be whole numbers"))
    if exact_rate * quantity != exact_tax * _QUANTITY:
        return Fold(Text("specificTaxRate × quantity is not specificTax"))
    if amount * PRODUCT * WHOLE != product * WHOLE + exact_tax * PRODUCT * (WHOLE + vat):
        return Fold(Text("amountTtc is not unitPrice × quantity + specificTax × (1 + taxRate / 100)"))
    return _priced(exact_tax, exact_rate * _PRICE)


def _priced(tax: int, per_unit: int | Fraction) -> SpecificTax | Fold:
    """The machine takes 2 decimals; what the service contract calls a match may have more (0.125 on 8 units is 1)."""
    if per_unit != int(per_unit):
        return Fold(Text("specificTaxRate has more than 2 decimals"))
    return SpecificTax(tax, int(per_unit))


def _read(name: str, value: object) -> int | Fraction:
    try:
        exact = money.fraction(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    if exact < 0:
        raise ValueError(f"{name} is negative")
    return exact
