"""VAT by tax group over a whole invoice, and the withholding on sales of goods, in exact arithmetic.

In TTC mode lines carry VAT: `ht = ttc × 100 / (100 + rate)`, rounded half up, and `tva = ttc - ht`. In HT mode they
do not (decision 24): `tva = ht × rate / 100`, rounded half up. A specific tax is inside the line amount of either
mode, and so inside the base of VAT.

The specific tax (excise) of one item: certified as its own line, or folded into the price; never a refusal.

Decision 4: both invariants of the service contract are taken literally, in exact arithmetic, in both price modes:

    amountTtc = unitPrice × quantity + specificTax × (1 + taxRate / 100)
    specificTaxRate × quantity = specificTax

and both results must be whole. In HT mode the first one may be the law's instead (SFE 6.9, decision 41):

    amountTtc = (unitPrice × quantity + specificTax) × (1 + taxRate / 100)

Everything else is folded."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from common.language import sentence
from common.language.reasons import (
    FOLD_AMOUNT_DIFFERS,
    FOLD_DECIMALS,
    FOLD_NEGATIVE,
    FOLD_NOT_WHOLE,
    FOLD_ONE_MISSING,
    FOLD_RATE_DIFFERS,
    FOLD_UNREADABLE,
)
from daemon.core import money
from daemon.core.invoice.invoice import Invoice, Item, PriceMode, Psvb, TaxLine
from daemon.core.money import divide_half_up

WHOLE = 10_000
"""100 % in hundredths of a percent, the unit of every rate here."""

GOODS = ("LOCBIE", "IMPBIE")

PRODUCT = 100_000
"""One franc in units of price × quantity: hundredths times thousandths."""

_QUANTITY = 1000
_PRICE = 100


def tax_lines(items: Iterable[Item], mode: PriceMode) -> tuple[TaxLine, ...]:
    """One line for each group that occurs, by letter."""
    sums: dict[tuple[str, int], int] = {}
    for item in items:
        key = item.group, item.rate
        sums[key] = sums.get(key, 0) + item.line_hundredths
    return tuple(tax_line(group, rate, amount, mode) for (group, rate), amount in sorted(sums.items()))


def tax_line(group: str, rate: int, hundredths: int, mode: PriceMode) -> TaxLine:
    """The tax of a group from the sum of its lines in hundredths of a franc, with VAT in TTC mode, without in HT mode.
    Total and HT are rounded to whole francs, and the tax is their difference (SFE 6.7)."""
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
    """The withholding on goods, without services: the base is their price with all taxes (CGI 200, SFE 6.10). One for
    each PSVB group by letter: the item's own, or else `group`, the invoice's.

    `taxes`: those of the whole invoice. A tax group whose lines are all goods of one PSVB group counts with its total
    there, which in HT mode is the machine's."""
    goods: dict[str, list[Item]] = {group: []} if group and not any(item.psvb_group for item in items) else {}
    for item in items:
        if item.item_type in GOODS and (own := item.psvb_group or group):
            goods.setdefault(own, []).append(item)
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


def withheld_anew(
    invoice: Invoice, taxes: Iterable[TaxLine], other_rates: Mapping[str, int] | None = None
) -> tuple[Psvb, ...]:
    """The same withholdings where the machine has other totals, or a credit note's sale `other_rates`."""
    rates = {each.group: each.rate for each in invoice.withholdings} | dict(other_rates or {})
    is_by_item = any(item.psvb_group for item in invoice.items)
    group = "" if is_by_item or invoice.psvb is None else invoice.psvb.group
    return withholdings(invoice.items, group, invoice.price_mode, taxes, rates) if invoice.withholdings else ()


def percent(rate: int) -> int | float:
    """A rate for people and JSON (18, 0.2); whatever is computed with stays in hundredths of a percent."""
    return rate // 100 if rate % 100 == 0 else rate / 100


class SpecificTax(NamedTuple):
    """`tax` of the line in whole XOF, `rate` per unit in hundredths; `is_added`: the unit price excludes it and VAT."""

    tax: int
    rate: int
    is_added: bool = False


class Fold(NamedTuple):
    """`reason` goes on after "the specific tax is folded into the price: "."""

    reason: str


def carried(tax: object, rate: object) -> bool:
    """Whether an item carries one at all: a plain zero, which some tills always send, is none."""
    return not (_nothing(tax) and _nothing(rate))


def _nothing(value: object) -> bool:
    if value is None:
        return True
    try:
        return money.number(value) == 0
    except ValueError:
        return False


def judge(
    tax: object, rate: object, *, amount: int | Fraction, product: int, quantity: int, vat: int, mode: PriceMode
) -> SpecificTax | Fold:
    """`product` is unitPrice × quantity in hundred-thousandths of a franc, `vat` in hundredths of a percent."""
    if tax is None or rate is None:
        return Fold(FOLD_ONE_MISSING)
    try:
        exact_tax, exact_rate = _read("specificTax", tax), _read("specificTaxRate", rate)
    except ValueError as error:
        return Fold(sentence(error))
    if not isinstance(amount, int) or not isinstance(exact_tax, int):
        return Fold(FOLD_NOT_WHOLE)
    if exact_rate * quantity != exact_tax * _QUANTITY:
        return Fold(FOLD_RATE_DIFFERS)
    is_added = mode == "HT" and amount == _amount(product, exact_tax, vat, "HT")
    if not is_added and amount != _amount(product, exact_tax, vat, "TTC"):
        return Fold(FOLD_AMOUNT_DIFFERS)
    per_unit = exact_rate * _PRICE
    # The machine takes 2 decimals; what the service contract calls a match may have more (0.125 on 8 units is 1).
    return Fold(FOLD_DECIMALS) if per_unit != int(per_unit) else SpecificTax(exact_tax, int(per_unit), is_added)


def amount_with(
    tax: object, rate: object, *, product: int, quantity: int, vat: int, mode: PriceMode
) -> int | Fraction | None:
    """The amount of a line with specific tax and VAT, if not sent; None without a valid specific tax."""
    try:
        exact_tax, exact_rate = _read("specificTax", tax), _read("specificTaxRate", rate)
    except ValueError:
        return None
    if not exact_tax or exact_rate * quantity != exact_tax * _QUANTITY:
        return None
    return _amount(product, exact_tax, vat, mode)


def _amount(product: int, tax: int | Fraction, vat: int, mode: PriceMode) -> int | Fraction:
    goods = Fraction(product, PRODUCT)
    with_vat = Fraction(WHOLE + vat, WHOLE)
    amount = (goods + tax) * with_vat if mode == "HT" else goods + tax * with_vat
    return int(amount) if amount.denominator == 1 else amount


def _read(name: str, value: object) -> int | Fraction:
    try:
        exact = money.fraction(value)
    except ValueError as error:
        raise ValueError(FOLD_UNREADABLE(field=name, fault=sentence(error))) from None
    if exact < 0:
        raise ValueError(FOLD_NEGATIVE(field=name))
    return exact
