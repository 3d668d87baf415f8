"""VAT by tax group over a whole invoice, and the withholding on sales of goods, in exact arithmetic.

In TTC mode lines carry VAT: `ht = ttc × 100 / (100 + rate)`, rounded half up, and `tva = ttc - ht`. In HT mode they
do not (decision 24): `tva = ht × rate / 100`, rounded half up. A specific tax is inside the line amount of either
mode, and so inside the base of VAT.
"""

from __future__ import annotations

from collections.abc import Iterable

from daemon.core.invoice.invoice import Item, PriceMode, Psvb, TaxLine
from daemon.core.money import divide_half_up

WHOLE = 10_000
"""100 % in hundredths of a percent, the unit of every rate here."""

PSVB_RATES = {"A": 200, "B": 100, "C": 20, "D": 0}
"""fiscal-rules.md: 2 %, 1 %, 0.2 %, 0 %."""

GOODS = ("LOCBIE", "IMPBIE")


def tax_lines(items: Iterable[Item], mode: PriceMode) -> tuple[TaxLine, ...]:
    """One line for each group that occurs, by letter."""
    sums: dict[tuple[str, int], int] = {}
    for item in items:
        key = item.group, item.rate
        sums[key] = sums.get(key, 0) + item.line_amount
    return tuple(tax_line(group, rate, amount, mode) for (group, rate), amount in sorted(sums.items()))


def tax_line(group: str, rate: int, amount: int, mode: PriceMode) -> TaxLine:
    """`amount` is the sum of the group's lines: with VAT in TTC mode, without in HT mode."""
    if mode == "TTC":
        ht = without_vat(amount, rate)
        return TaxLine(group, rate, ht, amount - ht, amount)
    tva = divide_half_up(amount * rate, WHOLE)
    return TaxLine(group, rate, amount, tva, amount + tva)


def without_vat(ttc: int, rate: int) -> int:
    return divide_half_up(ttc * WHOLE, WHOLE + rate)


def psvb(group: str, items: Iterable[Item], mode: PriceMode, taxes: Iterable[TaxLine]) -> Psvb:
    """The withholding is on goods (services left out): its base is what is claimed for them, all taxes included (CGI 200, SFE 6.10).

    `taxes` are those of the whole invoice: a tax group that holds goods only counts with its total there, which in HT mode is the machine's."""
    items = tuple(items)
    totals = {line.group: line.ttc for line in taxes}
    with_services = {item.group for item in items if item.item_type not in GOODS}
    goods = tax_lines((item for item in items if item.item_type in GOODS), mode)
    base = sum(line.ttc if line.group in with_services else totals[line.group] for line in goods)
    rate = PSVB_RATES[group]
    return Psvb(group, base, rate, divide_half_up(base * rate, WHOLE))


def percent(rate: int) -> int | float:
    """A rate for people and JSON (18, 0.2); whatever is computed with stays in hundredths of a percent."""
    return rate // 100 if rate % 100 == 0 else rate / 100
