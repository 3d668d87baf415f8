"""VAT as the machine computes it (fiscal-rules.md): exact; rounded half up on the total of a group, unless it has other habits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from simulator.machine.command_data import GROUPS, ItemData
from simulator.machine.habits import Vat
from simulator.machine.refusal import MachineRefusal

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
_FRANC = 100
_EXACT = 10**9  # price/100 × quantity/1000 × (1 + rate/10 000) is whole in these units


class Share(msgspec.Struct, frozen=True):
    """An amount in hundredths of a franc, split: `ht + tva = ttc`, but for cents that were rounded away from `ttc`."""

    ht: int
    tva: int
    ttc: int


def round_half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def split(whole: int, rate: int, price_mode: str, rounding: Vat = "half-up", untaxed: int = 0) -> Share:
    """`whole`, in hundredths, includes VAT in TTC mode, and excludes it in HT mode; `untaxed` of it bear none. Where it has cents, as some machines take
    them, the total and what is before tax are whole francs, and the tax is what is between them."""
    if whole % _FRANC:
        total, before = _whole(round_half_up(whole * (_PERCENT + rate), _PERCENT)), _whole(whole)
        return Share(before, total - before, total)
    weight = _PERCENT + rate if price_mode == "TTC" else _PERCENT
    if price_mode == "TTC" and rounding == "half-up":
        ht = round_half_up(whole * _PERCENT, weight * _FRANC) * _FRANC
        return Share(ht, whole - ht, whole)
    tva = _rounded((whole - untaxed) * rate, weight, rounding)
    return Share(whole - tva, tva, whole) if price_mode == "TTC" else Share(whole, tva, _whole(whole + tva))


def _rounded(numerator: int, denominator: int, rounding: Vat) -> int:
    """Hundredths of a franc, without cents unless those are told."""
    if rounding == "cents":
        return round_half_up(numerator, denominator)
    denominator *= _FRANC
    if rounding == "half-up":
        return round_half_up(numerator, denominator) * _FRANC
    return (numerator // denominator if rounding == "down" else -(-numerator // denominator)) * _FRANC


def _whole(hundredths: int) -> int:
    return round_half_up(hundredths, _FRANC) * _FRANC


def add_up(shares: Iterable[Share]) -> Share:
    """Of one group; its total is whole francs."""
    parts = list(shares)
    return Share(sum(s.ht for s in parts), sum(s.tva for s in parts), _whole(sum(s.ttc for s in parts)))


def check_line(line: ItemData, rate: int, price_mode: str) -> None:
    """What the machine verifies of a line before it takes it (protocol 3, 31h; protocol 4)."""
    if line.rate != rate:
        raise MachineRefusal("Wrong tax rate")
    if line.hundredths <= 0 or line.price <= 0 or line.quantity <= 0:
        raise MachineRefusal("Amount not above 0")
    if line.unit_tax is not None and (line.tax <= 0 or line.unit_tax * line.quantity != line.tax * 1000):
        raise MachineRefusal("No amount!")
    weight = _PERCENT + rate if price_mode == "TTC" else _PERCENT
    expected = line.price * line.quantity * _PERCENT + line.tax * 1000 * weight
    if abs(line.hundredths * _EXACT // _FRANC - expected) > _EXACT:
        raise MachineRefusal("No amount!" if line.unit_tax is not None else "Wrong amount")
