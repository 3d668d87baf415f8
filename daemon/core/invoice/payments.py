"""How an invoice is paid: its payments have to come to the total (decision 3).

Where amounts were rounded (decision 4) or VAT was computed on the group (decision 24), they may come to what the till
itself added up, and the largest is adjusted to the total that is certified.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from common.language import Text
from common.language.reasons import PAYMENT_ADJUSTED, to_stored
from daemon.core.errors import FieldError
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.invoice import PAYMENT_METHODS, Payment, Warn
from daemon.core.invoice.request import MAX_PAYMENTS
from daemon.core.money import round_half_up


class Paid(NamedTuple):
    """As the till wrote it, exact; `place` is the path for an error."""

    place: str
    method: str
    amount: int | Fraction


class Due(NamedTuple):
    """`total` is certified, `lines` the sum of the till's amounts, `rounded` how many of those were not whole, `exact` what the till's own prices
    come to; `leeway`: of a credit note, how many francs the certified total, which its till repays, may be off."""

    total: int
    lines: int
    rounded: int
    exact: Fraction
    leeway: int


def read_payments(body: Fields) -> list[Paid]:
    payments = []
    for fields in body.objects("payments", MAX_PAYMENTS):
        method = fields.choice("method", PAYMENT_METHODS)
        amount = fields.amount("amount")
        if amount is None and fields.values.get("amount") is None:
            fields.fault("amount", Text("is required"))
        if amount is not None:
            payments.append(Paid(f"{fields.path}amount", method, amount))
    return payments


def adjust_payments(
    paid: Sequence[Paid], due: Due, errors: list[FieldError]
) -> tuple[tuple[Payment, ...], tuple[Warn, ...]]:
    """Payments that come to `due.total` exactly; with a fault in `errors` they mean nothing."""
    total_paid: Fraction = sum((Fraction(p.amount) for p in paid), Fraction())
    is_exact = total_paid in (due.exact, round_half_up(due.exact))
    if not (due.rounded or (total_paid == due.exact != due.total)):
        errors.extend(
            FieldError(p.place, Text("must be a whole number")) for p in paid if not isinstance(p.amount, int)
        )
    if not is_exact and not any(
        abs(total_paid - wanted) <= max(due.rounded, due.leeway) for wanted in (due.total, due.lines)
    ):
        errors.append(
            FieldError(
                "payments", Text("come to {value}, the total is {total}", value=_text(total_paid), total=due.total)
            )
        )
    amounts = [round_half_up(p.amount) for p in paid]
    largest = max(range(len(amounts)), key=amounts.__getitem__)
    amounts[largest] += due.total - sum(amounts)
    if min(amounts) < 1:
        errors.append(FieldError("payments", Text("must each come to at least 1")))
    payments = tuple(Payment(p.method, amount) for p, amount in zip(paid, amounts, strict=True))
    if all(p.amount == amount for p, amount in zip(paid, amounts, strict=True)):
        return payments, ()
    return payments, (_adjusted(due.total),)


def _adjusted(total: int) -> Warn:
    return Warn("PAYMENT_ADJUSTED", to_stored(PAYMENT_ADJUSTED(total=total)))


def _text(amount: int | Fraction) -> str:
    return f"{Decimal(amount.numerator) / Decimal(amount.denominator):f}"
