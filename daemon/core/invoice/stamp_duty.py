"""Stamp duty on a payment in cash (SFE 3 s, CGI 519 and 520): the till's amount, or that of the table."""

from __future__ import annotations

from collections.abc import Sequence

from common.language import Text
from daemon.core.errors import FieldError
from daemon.core.invoice.invoice import CASH, Payment, Warn
from daemon.core.invoice.rules import StampDuty

FIELD = "stampDuty"


def stamp_duty(
    given: int, payments: Sequence[Payment], table: StampDuty, errors: list[FieldError], *, credit: bool
) -> tuple[int, tuple[Warn, ...]]:
    """`given` is what the till says, 0 where it says nothing. A credit note is no receipt of cash."""
    cash = 0 if credit else sum(payment.amount for payment in payments if payment.method == CASH)
    due = table.on(cash)
    if not given:
        return (due if table.is_charged else 0), ()
    if not cash:
        return 0, (_warn("STAMP_DUTY_LEFT_OUT", Text("stamp duty is left out: nothing is paid in cash (E)")),)
    if given > cash:
        errors.append(FieldError(FIELD, Text("must be at most what is paid in cash, {cash}", cash=cash)))
    if given != due:
        return given, (
            _warn("STAMP_DUTY_DIFFERS", Text("the table has a stamp duty of {due} on {cash}", due=due, cash=cash)),
        )
    return given, ()


def _warn(code: str, message: str) -> Warn:
    return Warn(code, str(message), field=FIELD)
