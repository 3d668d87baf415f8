"""VAT by tax group over a whole invoice, and the withholding on sales of goods, in exact arithmetic.

In TTC mode lines carry VAT: `ht = ttc × 100 / (100 + rate)`, rounded half up, and `tva = ttc - ht`. In HT mode they
do not (decision 24): `tva = ht × rate / 100`, rounded half up. A specific tax is inside the line amount of either
mode, and so inside the base of VAT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from daemon.core.invoice.invoice import Invoice, Item, PriceMode, Psvb, TaxLine
from daemon.core.money import divide_half_up

WHOLE = 10_000
"""100 % in hundredths of a percent, the unit of every rate here."""

GOODS = ("LOCBIE", "IMPBIE")


def tax_lines(items: Iterable[Item], mode: PriceMode) -> tuple[TaxLine, ...]:
    """One line for each group that occurs, by letter."""
    sums: dict[tuple[str, int], int] = {}
    for item in items:
        key = item.group, item.rate
        sums[key] = sums.get(key, 0) + item.line_hundredths
    return tuple(tax_line(group, rate, amount, mode) for (group, rate), amount in sorted(sums.items()))


def tax_line(group: str, rate: int, hundredths: int, mode: PriceMode) -> TaxLine:
    """Of the sum of the group's lines in hundredths of a franc: with VAT in TTC mode, without in HT mode. Where it has cents, total and HT are rounded to whole
    francs, and what is between them is the tax (SFE 6.7)."""
    amount, cents = divmod(hundredths, 100)
    if cents:
        ttc, ht = divide_half_up(hundredths * (WHOLE + rate), WHOLE * 100), divide_half_up(hundredths, 100)
        return TaxLine(group, rate, ht, ttc - ht, ttc)
    if mode == "TTC":
        ht = without_vat(amount, rate)
        return TaxLine(group, rate, ht, amount - ht, amount)
    tva = divide_half_up(amount * rate, WHOLE)
    return TaxLine(group, rate, amount, tva, amount + tva)


def without_vat(ttc: int, rate: int) -> int:
    return divide_half_up(ttc * WHOLE, WHOLE + rate)


def withholdings(
    items: Sequence[Item], group: str, mode: PriceMode, taxes: Iterable[TaxLine], rates: Mapping[str, int]
) -> tuple[Psvb, ...]:
    """On goods, services left out: the base is what is claimed for them, all taxes included (CGI 200, SFE 6.10). One for each group, by letter: the
    item's own, or else `group`, the invoice's.

    `taxes` are those of the whole invoice: a tax group whose lines are all goods of one PSVB group counts with its total there, which in HT mode is
    the machine's."""
    goods: dict[str, list[Item]] = {group: []} if group else {}
    for item in items:
        if item.item_type in GOODS and (own := item.psvb_group or group):
            goods.setdefault(own, []).append(item)
    if len(goods) > 1 and group and not goods[group]:
        del goods[group]
    totals = {line.group: line.ttc for line in taxes}
    size = Counter(item.group for item in items)
    found = []
    for letter, chosen in sorted(goods.items()):
        own_size = Counter(item.group for item in chosen)
        base = sum(
            totals[line.group] if own_size[line.group] == size[line.group] else line.ttc
            for line in tax_lines(chosen, mode)
        )
        found.append(Psvb(letter, base, rates[letter], divide_half_up(base * rates[letter], WHOLE)))
    return tuple(found)


def withheld_again(invoice: Invoice, taxes: Iterable[TaxLine]) -> tuple[Psvb, ...]:
    """The same withholdings where the machine has other totals."""
    rates = {each.group: each.rate for each in invoice.withholdings}
    is_by_item = any(item.psvb_group for item in invoice.items)
    group = "" if is_by_item or invoice.psvb is None else invoice.psvb.group
    return withholdings(invoice.items, group, invoice.price_mode, taxes, rates) if rates else ()


def percent(rate: int) -> int | float:
    """A rate for people and JSON (18, 0.2); whatever is computed with stays in hundredths of a percent."""
    return rate // 100 if rate % 100 == 0 else rate / 100
