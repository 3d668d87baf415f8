"""The specific tax (excise) of one item: certified as its own line, or folded into the price; never a refusal.

Decision 4: both invariants of the service contract are taken literally, in exact arithmetic, in both price modes:

    amountTtc = unitPrice × quantity + specificTax × (1 + taxRate / 100)
    specificTaxRate × quantity = specificTax

and both results must be whole. In HT mode the first one may be the law's instead (SFE 6.9, decision 41):

    amountTtc = (unitPrice × quantity + specificTax) × (1 + taxRate / 100)

Everything else is folded.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from common.language import sentence
from common.language.reasons import (
    FOLD_AMOUNT_DIFFERS,
    FOLD_DECIMALS,
    FOLD_NEGATIVE,
    FOLD_NOT_WHOLE,
    FOLD_ONE_MISSING,
    FOLD_RATE_DIFFERS,
    FOLD_UNREADABLE,
)
from daemon.core import money
from daemon.core.invoice.invoice import PriceMode
from daemon.core.invoice.taxes import WHOLE

PRODUCT = 100_000
"""One franc in units of price × quantity: hundredths times thousandths."""

_QUANTITY = 1000
_PRICE = 100


class SpecificTax(NamedTuple):
    """`tax` of the line in whole XOF, `rate` per unit in hundredths; `is_added`: the unit price is without it and without VAT."""

    tax: int
    rate: int
    is_added: bool = False


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
    tax: object, rate: object, *, amount: int | Fraction, product: int, quantity: int, vat: int, mode: PriceMode
) -> SpecificTax | Fold:
    """`product` is unitPrice × quantity in hundred-thousandths of a franc, `vat` in hundredths of a percent."""
    if tax is None or rate is None:
        return Fold(FOLD_ONE_MISSING)
    try:
        exact_tax, exact_rate = _read("specificTax", tax), _read("specificTaxRate", rate)
    except ValueError as error:
        return Fold(sentence(error))
    if not isinstance(amount, int) or not isinstance(exact_tax, int):
        return Fold(FOLD_NOT_WHOLE)
    if exact_rate * quantity != exact_tax * _QUANTITY:
        return Fold(FOLD_RATE_DIFFERS)
    is_added = mode == "HT" and amount == _amount(product, exact_tax, vat, "HT")
    if not is_added and amount != _amount(product, exact_tax, vat, "TTC"):
        return Fold(FOLD_AMOUNT_DIFFERS)
    return _priced(exact_tax, exact_rate * _PRICE, is_added=is_added)


def _priced(tax: int, per_unit: int | Fraction, *, is_added: bool) -> SpecificTax | Fold:
    """The machine takes 2 decimals; what the service contract calls a match may have more (0.125 on 8 units is 1)."""
    if per_unit != int(per_unit):
        return Fold(FOLD_DECIMALS)
    return SpecificTax(tax, int(per_unit), is_added)


def amount_with(
    tax: object, rate: object, *, product: int, quantity: int, vat: int, mode: PriceMode
) -> int | Fraction | None:
    """What a line comes to with its specific tax and VAT, where the till does not say it; None where it carries none that can be read."""
    try:
        exact_tax, exact_rate = _read("specificTax", tax), _read("specificTaxRate", rate)
    except ValueError:
        return None
    if not exact_tax or exact_rate * quantity != exact_tax * _QUANTITY:
        return None
    return _amount(product, exact_tax, vat, mode)


def _amount(product: int, tax: int | Fraction, vat: int, mode: PriceMode) -> int | Fraction:
    goods = Fraction(product, PRODUCT)
    with_vat = Fraction(WHOLE + vat, WHOLE)
    amount = (goods + tax) * with_vat if mode == "HT" else goods + tax * with_vat
    return int(amount) if amount.denominator == 1 else amount


def _read(name: str, value: object) -> int | Fraction:
    try:
        exact = money.fraction(value)
    except ValueError as error:
        raise ValueError(FOLD_UNREADABLE(field=name, fault=sentence(error))) from None
    if exact < 0:
        raise ValueError(FOLD_NEGATIVE(field=name))
    return exact
