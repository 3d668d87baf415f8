"""VAT as the machine computes it (fiscal-rules.md): exact, rounded half up, on the total of a group."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from simulator.refusal import Refusal
from simulator.wire import GROUPS, Line

# fiscal-rules.md, in hundredths of a percent
DEFAULT_RATES: Mapping[str, int] = dict.fromkeys(GROUPS, 0) | {
    "B": 1800,
    "C": 1000,
    "F": 1800,
    "G": 1000,
    "L": 1000,
    "M": 1000,
}

_PERCENT = 10_000  # a rate of 100 %
_EXACT = 10**9  # price/100 × quantity/1000 × (1 + rate/10 000) is whole in these units


class Share(msgspec.Struct, frozen=True):
    """An amount in whole francs, split: `ht + tva = ttc`."""

    ht: int
    tva: int
    ttc: int


def round_half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def split(amount: int, rate: int, price_mode: str) -> Share:
    """`amount` includes VAT in TTC mode, and excludes it in HT mode."""
    if price_mode == "TTC":
        ht = round_half_up(amount * _PERCENT, _PERCENT + rate)
        return Share(ht, amount - ht, amount)
    tva = round_half_up(amount * rate, _PERCENT)
    return Share(amount, tva, amount + tva)


def check_line(line: Line, rate: int, price_mode: str) -> None:
    """What the machine verifies of a line before it takes it (protocol 3, 31h; protocol 4)."""
    if line.rate != rate:
        raise Refusal("Wrong tax rate")
    if line.amount <= 0 or line.price <= 0 or line.quantity <= 0:
        raise Refusal("Amount not above 0")
    if line.unit_tax is not None and (line.tax <= 0 or line.unit_tax * line.quantity != line.tax * 1000):
        raise Refusal("No amount!")
    weight = _PERCENT + rate if price_mode == "TTC" else _PERCENT
    expected = line.price * line.quantity * _PERCENT + line.tax * 1000 * weight
    if abs(line.amount * _EXACT - expected) > _EXACT:
        raise Refusal("No amount!" if line.unit_tax is not None else "Wrong amount")
