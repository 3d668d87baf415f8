"""Numbers at the door: exact, bounded, and never expanded before they are checked."""

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core import money


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"),
    [(0, 7, 0), (1, 2, 1), (3, 2, 2), (5, 2, 3), (249, 100, 2), (250, 100, 3), (1, 3, 0), (2, 3, 1), (-1, 2, 0)],
)
def test_halves_go_up(numerator, denominator, rounded):
    """Half up, not to even."""
    assert money.divide_half_up(numerator, denominator) == rounded
    assert money.round_half_up(Fraction(numerator, denominator)) == rounded


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**12))
def test_rounding_is_never_off_by_more_than_a_half(numerator, denominator):
    """For numbers far beyond any amount, exactly."""
    rounded = money.divide_half_up(numerator, denominator)
    assert Fraction(-1, 2) < rounded - Fraction(numerator, denominator) <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("value", "decimals", "result"),
    [
        (15000, 0, 15000),
        (Decimal("15000.0"), 0, 15000),
        (Decimal("2.5"), 2, 250),
        (Decimal("2.50000"), 1, 25),
        (7, 1, 70),
        (Decimal("1E+5"), 0, 100000),
        (Decimal("-0.0"), 2, 0),
        (Decimal("0E+999999999"), 2, 0),
        (Decimal("0.001"), 3, 1),
        (-3, 2, -300),
        (2**53, 0, 2**53),
        (-(2**53), 0, -(2**53)),
        (Decimal("9007199254740992.0"), 0, 2**53),
        (Decimal("-9007199254740992.0"), 0, -(2**53)),
    ],
)
def test_numbers_become_scaled_integers(value, decimals, result):
    """`15000`, `15000.0` and `2.5` are what they look like."""
    assert money.scaled(value, decimals) == result


@pytest.mark.parametrize(
    ("value", "decimals", "expected"),
    [
        *((value, 0, "must be a whole number") for value in ("2.5", "0.0001")),
        ("0.0001", 1, "has more than 1 decimals"),
        *((value, 2, "has more than 2 decimals") for value in ("0.005", "0.30000000000000004")),
        ("1e-30", 3, "has more than 3 decimals"),
    ],
)
def test_too_many_decimals_are_refused(value, decimals, expected):
    """Nothing is rounded in silence; a whole number in words of its own."""
    with pytest.raises(ValueError, match=f"^{expected}$"):
        money.scaled(Decimal(value), decimals)


@pytest.mark.parametrize(
    "value",
    [
        2**53 + 1,
        -(2**53) - 1,
        10**400,
        Decimal("1e400"),
        Decimal("1e999999999"),
        Decimal("1e-999999999"),
        Decimal("9007199254740993.0"),
        Decimal("1e-31"),
        Decimal("1.23456789012345678"),
    ],
)
def test_what_json_cannot_carry_is_refused(value):
    """Beyond 2^53, or more digits than a double has: two such numbers may read as the same one."""
    with pytest.raises(ValueError, match="JSON cannot carry"):
        money.number(value)


@pytest.mark.parametrize("value", [None, True, False, "2", [], {}, 1.5, Decimal("NaN"), Decimal("Infinity")])
def test_what_is_no_number_is_refused(value):
    """`"2"` is not 2 and `true` is not 1; a float never gets here."""
    with pytest.raises(ValueError, match="must be a number"):
        money.number(value)


def test_huge_exponents_and_long_numbers_cost_nothing():
    """They are judged by their size, not written out first."""
    values = [Decimal(text) for text in ("1e999999999", "1e-999999999", "9" * 500_000, "1." + "3" * 500_000)]
    start = time.process_time()
    for value in values:
        with pytest.raises(ValueError, match="JSON"):
            money.scaled(value, 2)
    assert time.process_time() - start < 0.5


def test_digits_of_a_double_are_kept_exactly():
    """What a till's own rounding leaves behind can still be rounded half up."""
    assert money.fraction(Decimal("2218.7999999999997")) == Fraction("2218.7999999999997")
    assert money.fraction(Decimal("2218.000")) == 2218


@given(st.decimals(allow_nan=True, allow_infinity=True) | st.integers() | st.text(), st.integers(0, 3))
def test_any_value_is_exact_or_refused(value, decimals):
    """What comes through is what was sent, in its unit."""
    try:
        result = money.scaled(value, decimals)
    except ValueError:
        return
    assert Fraction(result, 10**decimals) == Fraction(value)
