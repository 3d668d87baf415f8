"""What the law leaves to tables (SFE 2.35): a configuration may say otherwise."""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from common.language import Text
from common.language.reasons import STAMP_DUTY_DIFFERS, STAMP_DUTY_LEFT_OUT, to_stored
from daemon.core.errors import FieldError
from daemon.core.invoice.invoice import CASH, Invoice, Payment, Warn

IFU_PATTERN = "[0-9]{8}[A-Z]"
"""Eight digits and a capital letter."""

PSVB_RATES: Mapping[str, int] = {"A": 200, "B": 100, "C": 20, "D": 0}
"""In hundredths of a percent (SFE 2.16): 2 %, 1 %, 0.2 %, 0 %."""
FIELD = "stampDuty"


class StampDuty(msgspec.Struct, frozen=True):
    """On what is paid in cash, by the Tax Code (art. 519, 520): nothing below `least`; the duty of the first step that the amount does not exceed; beyond
    the last one `more` for each further `every` francs or part of them. Whole francs; `is_charged` where the shop has it computed."""

    is_charged: bool = False
    least: int = 1000
    steps: tuple[tuple[int, int], ...] = ((5_000, 30), (10_000, 50), (50_000, 100))
    every: int = 50_000
    more: int = 50

    def on(self, cash: int) -> int:
        if cash < self.least:
            return 0
        for upto, duty in self.steps:
            if cash <= upto:
                return duty
        last, duty = self.steps[-1]
        return duty - (last - cash) // self.every * self.more

    def amended(self, entered: Invoice, agreed: Invoice) -> Invoice:
        """`agreed`, which the machine's total may have moved over a step; a duty of the till's own stays."""
        if entered.is_credit or not self.is_charged:
            return agreed
        before, after = self.on(cash_of(entered.payments)), self.on(cash_of(agreed.payments))
        if after == before or entered.stamp_duty != before:
            return agreed
        return msgspec.structs.replace(agreed, stamp_duty=after)


class Rules(msgspec.Struct, frozen=True):
    """`ifu_pattern` is a regular expression for the IFU of a company or trader in a local sale (annex of the SFE)."""

    ifu_pattern: str = IFU_PATTERN
    psvb_rates: Mapping[str, int] = msgspec.field(default_factory=lambda: PSVB_RATES)
    stamp_duty: StampDuty = StampDuty()

    def is_ifu(self, text: str) -> bool:
        return re.fullmatch(self.ifu_pattern, text) is not None


def cash_of(payments: Iterable[Payment]) -> int:
    return sum(payment.amount for payment in payments if payment.method == CASH)


def stamp_duty(
    client_duty: int, payments: Sequence[Payment], table: StampDuty, errors: list[FieldError], *, credit: bool
) -> tuple[int, tuple[Warn, ...]]:
    """`client_duty` is what the till says, 0 where it says nothing. A credit note is no receipt of cash."""
    cash = 0 if credit else cash_of(payments)
    due = table.on(cash)
    if not client_duty:
        return (due if table.is_charged else 0), ()
    if not cash:
        return 0, (_warn("STAMP_DUTY_LEFT_OUT", STAMP_DUTY_LEFT_OUT),)
    if client_duty > cash:
        errors.append(FieldError(FIELD, Text("must be at most what is paid in cash, {cash}", cash=cash)))
    if client_duty != due:
        return client_duty, (_warn("STAMP_DUTY_DIFFERS", STAMP_DUTY_DIFFERS(due=due, cash=cash)),)
    return client_duty, ()


def _warn(code: str, message: str) -> Warn:
    return Warn(code, to_stored(message), field=FIELD)
