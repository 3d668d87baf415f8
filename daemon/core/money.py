"""Exact integers at the door: numbers of a JSON body become whole or scaled integers, or are refused.

A JSON parser that keeps what it read gives `int` or `Decimal`; a binary float never gets here. Every bound is checked
on a number's size before it is written out, so that `1e999999999` costs nothing.
"""

from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from fractions import Fraction

from common.language import Text
from common.language.reasons import NUMBER_EXPECTED, NUMBER_INEXACT

MAX_AMOUNT = 10**12
"""The largest amount, price or total, in francs."""

EXACT_INTEGERS = 2**53
"""From here on JSON numbers of different value read as the same double (RFC 8259, section 6)."""

_SIGNIFICANT_DIGITS = 17
_SMALLEST_EXPONENT = -30
_POWERS = (1, 10, 100, 1000)
_EXACTLY = Context(prec=_SIGNIFICANT_DIGITS, traps=[Inexact, InvalidOperation, Overflow])

Number = int | Decimal


def divide_half_up(numerator: int, denominator: int) -> int:
    """Rounded to the nearest integer, halves up; for a denominator above 0."""
    return (2 * numerator + denominator) // (2 * denominator)


def round_half_up(value: int | Fraction) -> int:
    return value if isinstance(value, int) else divide_half_up(value.numerator, value.denominator)


def number(value: object) -> Number:
    """A number JSON can carry exactly; ValueError says in a few words why it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        if -EXACT_INTEGERS <= value <= EXACT_INTEGERS:
            return value
        raise ValueError(NUMBER_INEXACT)
    if not isinstance(value, Decimal) or not value.is_finite():
        raise ValueError(NUMBER_EXPECTED)
    if value.is_zero():
        return 0
    return _bounded(value)


def _bounded(value: Decimal) -> Decimal:
    if value.adjusted() < _SMALLEST_EXPONENT:
        raise ValueError(NUMBER_INEXACT)
    try:
        exact = _EXACTLY.plus(value)
    except (Inexact, Overflow, InvalidOperation):
        raise ValueError(NUMBER_INEXACT) from None
    if abs(exact) > EXACT_INTEGERS:
        raise ValueError(NUMBER_INEXACT)
    return exact


def scaled(value: object, decimals: int) -> int:
    """`value` in units of 10^-decimals; ValueError when it has more decimals than that."""
    exact = number(value)
    if isinstance(exact, int):
        return exact * _POWERS[decimals]
    shifted = exact.scaleb(decimals)
    whole = int(shifted)
    if whole != shifted:
        too_fine = Text("has more than {decimals} decimals", decimals=decimals)
        raise ValueError(too_fine if decimals else Text("must be a whole number"))
    return whole


def fraction(value: object) -> int | Fraction:
    """The exact value, an `int` when it is whole."""
    exact = number(value)
    whole = int(exact)
    return whole if whole == exact else Fraction(exact)
