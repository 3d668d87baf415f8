"""Payments and the total that they have to come to."""

from fractions import Fraction

import pytest
from support.core_samples import body, credit_body, item, read

from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.invoice.payments import Due, Paid, adjust_payments

WHOLE = "must be a whole number"
HALF = Fraction(1, 2)


def due(total: int, lines: int, rounded: int) -> Due:
    return Due(total, lines, rounded, Fraction(total), 0)


@pytest.mark.parametrize(
    ("amounts", "wanted", "taken"),
    [
        ([150], due(150, 150, 0), [150]),
        ([100, 50], due(150, 150, 0), [100, 50]),
        ([149], due(150, 150, 1), [150]),
        ([151], due(150, 150, 1), [150]),
        ([149 + HALF], due(150, 149, 1), [150]),
        ([50, 100], due(152, 150, 0), [50, 102]),
        ([49 + HALF, 100 + HALF], due(151, 150, 1), [50, 101]),
    ],
)
def test_what_comes_to_the_total_is_taken(amounts: list[int | Fraction], wanted: Due, taken: list[int]) -> None:
    """To the total or to what the till added up, a franc more or less for each amount of its own that was not whole; the largest is adjusted,
    which is in the till's receipt."""
    errors: list[FieldError] = []
    payments, warned = adjust_payments([Paid("p", "E", amount) for amount in amounts], wanted, errors)
    assert errors == []
    assert [payment.amount for payment in payments] == taken
    assert [warn.code for warn in warned] == ([] if amounts == taken else ["PAYMENT_ADJUSTED"])


@pytest.mark.parametrize(
    ("amounts", "wanted", "faults"),
    [
        ([100], due(150, 150, 0), ["come to 100, the total is 150"]),
        ([149], due(150, 150, 0), ["come to 149, the total is 150"]),
        ([148], due(150, 150, 1), ["come to 148, the total is 150"]),
        ([152 + HALF], due(150, 150, 2), ["come to 152.5, the total is 150"]),
        ([HALF], due(150, 150, 0), [WHOLE, "come to 0.5, the total is 150"]),
        ([99 + HALF, 50 + HALF], due(150, 150, 0), [WHOLE, WHOLE]),
        ([150, 0], due(150, 150, 1), ["must each come to at least 1"]),
    ],
)
def test_what_does_not_come_to_the_total_is_told_with_both(
    amounts: list[int | Fraction], wanted: Due, faults: list[str]
) -> None:
    """What they come to, to the last decimal, and the total; each amount that should be whole; one of nothing."""
    errors: list[FieldError] = []
    adjust_payments([Paid("p", "E", amount) for amount in amounts], wanted, errors)
    assert [str(error.message) for error in errors] == faults


@pytest.mark.parametrize(
    ("mode", "credit", "most"), [("HT", True, 2), ("TTC", True, 0), ("TTC", False, 0), ("HT", False, 0)]
)
def test_who_repays_a_credit_note_in_ht_mode_may_be_off_by_a_franc_for_each_line(
    mode: str, credit: bool, most: int
) -> None:
    """Its till does not know on which side of a franc the machine rounds its VAT; everywhere else the sum is exact."""
    line = item(amountTtc=None, unitPrice=100, taxGroup="A")
    of_kind = credit_body if credit else body
    for off in range(-3, 4):
        request = of_kind(line, line, pay=200 + off, priceMode=mode)
        if abs(off) <= most:
            assert sum(payment.amount for payment in read(request, credit=credit).payments) == 200
        else:
            with pytest.raises(InvalidRequest, match="payments"):
                read(request, credit=credit)
