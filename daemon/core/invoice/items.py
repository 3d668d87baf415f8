"""One line of an invoice, from the till's request to the machine's command (decisions 1 to 4 and 24).

The machine accepts a line whose amount is `price × quantity` within a franc, plus its specific tax (protocol 3). If the
till's price does not give the amount, a price that does is derived. If no price with 2 decimals does, because the
quantity is large, the line is sent as one piece at the whole amount. The item keeps the till's price and quantity too.

In TTC mode `amountTtc` is certified (decision 2). In HT mode the unit price is, rounded half up on each line to whole
francs, or to two decimals if the machine accepts them (SFE 6.2); VAT is added to the group's total (decision 24). There
`amountTtc` counts only without a unit price, or with a specific tax that is certified or folded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, get_args

import msgspec

from common.language import Text, sentence
from common.language.reasons import (
    AMOUNT_ROUNDED,
    FOLD_AMOUNT_DIFFERS,
    FOLD_HT_MODE,
    FOLD_NO_PRICE,
    QUANTITY_AS_ONE,
    TAX_FOLDED,
    TAX_FOLDED_AND_ROUNDED,
    UNIT_PRICE_DERIVED,
    VAT_RATE_CHANGED,
    to_stored,
)
from daemon.core import money
from daemon.core.invoice import taxes
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.invoice import GROUPS, Invoice, Item, ItemType, PriceMode, Warn
from daemon.core.invoice.request import ITEM_TEXTS, MIDDLE_LENGTH, NAME_LENGTH
from daemon.core.invoice.rules import PSVB_RATES
from daemon.core.invoice.taxes import PRODUCT, WHOLE, Fold, SpecificTax, percent, without_vat
from daemon.core.money import MAX_AMOUNT, divide_half_up, round_half_up

LETTERS = tuple(GROUPS)
ITEM_TYPES = get_args(ItemType)
IMPORTED_SERVICE = "IMPSERV"
"""The code of an imported service in the SFE annex, whose mention on paper is [IMPSER]."""
MAX_QUANTITY = 10**9
ONE = 1000
"""A quantity of 1."""
MAX_OFF = 10
"""How many times what is paid a price before the reduction may have been, where the till does not say it: more is taken
for a mistake."""


class Line(NamedTuple):
    """`exact`: the amount by the till's figures, with VAT. `rounded`: it was not whole, so payments may differ by 1."""

    item: Item
    exact: int | Fraction
    warnings: tuple[Warn, ...]
    rounded: bool


class RequestedLine(NamedTuple):
    """What the till wrote, complete: `price` in hundredths (None when it was left out), `amount` with VAT."""

    price: int | None
    quantity: int
    amount: int | Fraction
    rate: int

    @property
    def product(self) -> int:
        """UnitPrice × quantity, in hundred-thousandths of a franc; 0 without a price."""
        return (self.price or 0) * self.quantity


class MachineLine(NamedTuple):
    """What the machine gets of it."""

    amount: int
    price: int
    quantity: int
    tax: SpecificTax = SpecificTax(0, 0)
    cents: int = 0


def read_item(
    fields: Fields, index: int, mode: PriceMode, rates: Mapping[str, int], *, fold: bool, cents: bool
) -> Line | None:
    """Reads one line; None without a valid amount, with every fault in `fields.errors`. `fold`: this machine gets no
    specific tax; `cents`: it accepts two decimals on a line."""
    name = fields.text("name", NAME_LENGTH, required=True)
    item_type = fields.choice("itemType", (*ITEM_TYPES, IMPORTED_SERVICE), "LOCBIE")
    if item_type == IMPORTED_SERVICE:
        item_type = "IMPSER"
    texts = fields.texts(ITEM_TEXTS)
    description = fields.text("specificTaxDesc", MIDDLE_LENGTH)
    group = fields.choice("taxGroup", LETTERS)
    rate = _rate(fields, group, rates)
    discount = fields.francs("discount")
    psvb_group = fields.choice("psvbGroup", tuple(PSVB_RATES), "")
    original = fields.above_zero("originalPrice", 2, MAX_AMOUNT) or 0
    request = _requested_line(fields, mode, rate)
    if request is None:
        return None
    machine_line, warnings = _machine_line(fields, index, mode, request, fold=fold, cents=cents)
    if machine_line.amount < 1 or request.amount > MAX_AMOUNT:
        fields.fault("amountTtc", Text("must come to at least 1 and at most {max_amount}", max_amount=MAX_AMOUNT))
        return None
    amount = round_half_up(request.amount)
    before = _with_vat(original, mode, request)
    if before > MAX_AMOUNT:
        fields.fault("originalPrice", Text("must come to at most {max_amount}", max_amount=MAX_AMOUNT))
    if discount:
        price = _with_vat(request.price, mode, request)
        gross = max(amount, before) if original else max(amount * MAX_OFF, price)
        if discount >= gross:
            fault = Text("must be below the amount before the reduction, {gross}: send originalPrice", gross=gross)
            fields.fault("discount", fault)
    till_price, till_quantity = _of_the_till(request, machine_line)
    item = Item(
        name=name,
        group=group,
        rate=rate,
        price=machine_line.price,
        quantity=machine_line.quantity,
        amount_ttc=amount,
        line_amount=machine_line.amount,
        item_type=item_type,
        specific_tax=machine_line.tax.tax,
        specific_rate=machine_line.tax.rate,
        specific_name=description if machine_line.tax.tax else "",
        discount=discount or max(0, before - amount),
        original_price=original,
        till_price=till_price,
        till_quantity=till_quantity,
        psvb_group=psvb_group,
        line_cents=machine_line.cents,
        **texts,
    )
    return Line(item, _exact(mode, request, machine_line), warnings, rounded=amount != request.amount)


def _with_vat(price: int | None, mode: PriceMode, request: RequestedLine) -> int:
    """What the line comes to at that price."""
    return round_half_up(_default_amount(price or 0, request.quantity, mode, request.rate))


def _of_the_till(request: RequestedLine, machine_line: MachineLine) -> tuple[int, int]:
    """Its price and quantity where others are certified, else 0."""
    is_one = machine_line.quantity != request.quantity
    price = request.price or divide_half_up(machine_line.amount * PRODUCT, request.quantity)
    return (0 if machine_line.price == request.price or not (is_one or request.price) else price), (
        request.quantity if is_one else 0
    )


def _exact(mode: PriceMode, request: RequestedLine, machine_line: MachineLine) -> int | Fraction:
    """In HT mode without a specific tax the prices with VAT, not rounded."""
    if mode == "TTC" or request.price != machine_line.price or machine_line.tax.tax:
        return request.amount
    return Fraction(request.product * (WHOLE + request.rate), PRODUCT * WHOLE)


def _rate(fields: Fields, group: str, rates: Mapping[str, int]) -> int:
    if not group:
        return 0
    rate = rates.get(group)
    if rate is None:
        fields.fault("taxGroup", Text("has no rate on this machine: {group}", group=group))
        return 0
    value = fields.values.get("taxRate")
    if value is None:
        return rate
    try:
        same = money.scaled(value, 2) == rate
    except ValueError as error:
        fields.fault("taxRate", sentence(error))
    else:
        if not same:
            fields.fault(
                "taxRate",
                Text("must be the machine's rate for group {group}, {value}", group=group, value=percent(rate)),
            )
    return rate


def _requested_line(fields: Fields, mode: PriceMode, rate: int) -> RequestedLine | None:
    quantity = fields.above_zero("quantity", 3, MAX_QUANTITY) or ONE
    price = fields.above_zero("unitPrice", 2, MAX_AMOUNT)
    amount = fields.amount("amountTtc")
    sent = amount is not None
    if amount is None:
        if price is None:
            if fields.values.get("amountTtc") is None and fields.values.get("unitPrice") is None:
                fields.fault("amountTtc", Text("or `unitPrice` is required"))
            return None
        tax = fields.values.get("specificTax"), fields.values.get("specificTaxRate")
        with_tax = taxes.amount_with(*tax, product=price * quantity, quantity=quantity, vat=rate, mode=mode)
        amount = _default_amount(price, quantity, mode, rate) if with_tax is None else with_tax
    if sent and not isinstance(amount, int) and not _carries_tax(fields):
        fields.fault("amountTtc", Text("must be a whole number"))
    return RequestedLine(price, quantity, amount, rate)


def _default_amount(price: int, quantity: int, mode: PriceMode, rate: int) -> int | Fraction:
    if mode == "HT":
        return divide_half_up(price * quantity * (WHOLE + rate), PRODUCT * WHOLE)
    whole, rest = divmod(price * quantity, PRODUCT)
    return Fraction(price * quantity, PRODUCT) if rest else whole


def _carries_tax(fields: Fields) -> bool:
    return taxes.carried(fields.values.get("specificTax"), fields.values.get("specificTaxRate"))


def _machine_line(
    fields: Fields, index: int, mode: PriceMode, request: RequestedLine, *, fold: bool, cents: bool
) -> tuple[MachineLine, tuple[Warn, ...]]:
    machine_line: MachineLine | Fold = _plain(mode, request, cents=cents)
    if _carries_tax(fields):
        machine_line = Fold(FOLD_HT_MODE) if fold else _separate(fields, mode, request)
    why = ""
    if isinstance(machine_line, Fold):
        why = machine_line.reason
        machine_line = _folded(mode, request)
    return machine_line, tuple(_warnings(index, request, machine_line, why))


def _separate(fields: Fields, mode: PriceMode, request: RequestedLine) -> MachineLine | Fold:
    """With its specific tax beside it, if that holds."""
    price, quantity, amount, rate = request
    if price is None:
        return Fold(FOLD_NO_PRICE)
    tax = taxes.judge(
        fields.values.get("specificTax"),
        fields.values.get("specificTaxRate"),
        amount=amount,
        product=request.product,
        quantity=quantity,
        vat=rate,
        mode=mode,
    )
    if isinstance(tax, Fold):
        return tax
    if mode == "TTC":
        return MachineLine(round_half_up(amount), price, quantity, tax)
    if tax.is_added:
        return MachineLine(divide_half_up(request.product, PRODUCT) + tax.tax, price, quantity, tax)
    line = without_vat(round_half_up(amount), rate)
    if line <= tax.tax:
        return Fold(Text("it leaves nothing for the goods themselves"))
    price, pieces = _fit(line - tax.tax, request)
    if pieces != quantity:
        tax = SpecificTax(tax.tax, tax.tax * 100)
    return MachineLine(line, price, pieces, tax)


def _plain(mode: PriceMode, request: RequestedLine, *, cents: bool) -> MachineLine:
    if mode == "TTC" or request.price is None:
        return _folded(mode, request)
    whole, rest = divmod(divide_half_up(request.product, PRODUCT // 100), 100)
    if cents and rest and whole:
        return MachineLine(whole, request.price, request.quantity, cents=rest)
    line = divide_half_up(request.product, PRODUCT)
    return MachineLine(line or min(1, round_half_up(request.amount)), request.price, request.quantity)


def _folded(mode: PriceMode, request: RequestedLine) -> MachineLine:
    """The whole amount in the price."""
    amount = round_half_up(request.amount)
    line = amount if mode == "TTC" else without_vat(amount, request.rate)
    return MachineLine(line, *_fit(line, request))


def _fit(line: int, request: RequestedLine) -> tuple[int, int]:
    """A price and a quantity that the machine accepts for that amount; the till's own if within a franc."""
    for price in (request.price, divide_half_up(line * PRODUCT, request.quantity)):
        if price and abs(price * request.quantity - line * PRODUCT) < PRODUCT:
            return price, request.quantity
    return line * 100, ONE


def _warnings(index: int, request: RequestedLine, machine_line: MachineLine, fold: str) -> Iterator[Warn]:
    amount = round_half_up(request.amount)
    if amount != request.amount and fold:
        message = TAX_FOLDED_AND_ROUNDED(amount=amount, fold=fold)
        yield Warn("AMOUNT_ROUNDED", to_stored(message), index)
    elif amount != request.amount:
        exact = Decimal(request.product) / PRODUCT
        message = AMOUNT_ROUNDED(exact=f"{exact:f}", amount=amount)
        yield Warn("AMOUNT_ROUNDED", to_stored(message), index)
    elif fold:
        yield Warn("SPECIFIC_TAX_FOLDED", to_stored(TAX_FOLDED(fold=fold)), index)
    if machine_line.quantity != request.quantity:
        message = QUANTITY_AS_ONE
        yield Warn("QUANTITY_AS_ONE", to_stored(message), index)
    if request.price not in (None, machine_line.price) and not (fold or machine_line.tax.tax):
        message = UNIT_PRICE_DERIVED
        yield Warn("UNIT_PRICE_DERIVED", to_stored(message), index, field=f"items[{index}].unitPrice")


def at_present_rates(invoice: Invoice, rates: Mapping[str, int]) -> Invoice:
    """A deferred sale with the machine's VAT rates (by group), which takes no others, with the total that was paid, and
    warnings. A specific tax whose rate of VAT changed is folded (decision 4). In HT mode, where the rate would change
    the total, the prices become prices with VAT, and each specific tax is folded. `invoice` itself if the rates are the
    same."""
    present = [rates.get(item.group, item.rate) for item in invoice.items]
    if present == [item.rate for item in invoice.items]:
        return invoice
    is_ht = invoice.price_mode == "HT"
    with_vat = _with_vat_included(invoice.items) if is_ht else invoice.items
    found = [_at_rate(index, *each, is_ht=is_ht) for index, each in enumerate(zip(with_vat, present, strict=True))]
    items = tuple(item for item, _ in found)
    changed = Warn("VAT_RATE_CHANGED", to_stored(VAT_RATE_CHANGED))
    folds = (warn for _, warnings in found for warn in warnings if warn not in invoice.warnings)
    return msgspec.structs.replace(
        invoice,
        price_mode="TTC",
        items=items,
        taxes=taxes.tax_lines(items, "TTC"),
        warnings=(*invoice.warnings, changed, *folds),
    )


def _with_vat_included(items: Iterable[Item]) -> Iterator[Item]:
    """Lines of HT mode with amounts and prices of the till that include VAT, at the rates of the sale. Each amount is
    rounded together with those before it in its group, so that they come to the group's total."""
    sums = Counter[tuple[str, int]]()
    for item in items:
        key, factor = (item.group, item.rate), WHOLE + item.rate
        before = sums[key]
        sums[key] += item.line_hundredths
        start, end = (divide_half_up(each * factor, WHOLE * 100) for each in (before, sums[key]))
        yield msgspec.structs.replace(
            item,
            price=divide_half_up(item.printed_price * factor, WHOLE),
            quantity=item.printed_quantity,
            amount_ttc=end - start,
            line_amount=end - start,
            line_cents=0,
            original_price=divide_half_up(item.original_price * factor, WHOLE),
            till_price=0,
            till_quantity=0,
        )


def _at_rate(index: int, item: Item, rate: int, *, is_ht: bool) -> tuple[Item, tuple[Warn, ...]]:
    """In TTC mode, with the same amount. `is_ht`: the prices were without VAT."""
    if not is_ht and (rate == item.rate or not item.specific_tax):
        return msgspec.structs.replace(item, rate=rate), ()
    request = RequestedLine(item.price, item.quantity, item.line_amount, rate)
    line = _folded("TTC", request)
    till_price, till_quantity = _of_the_till(request, line)
    folded = msgspec.structs.replace(
        item,
        rate=rate,
        price=line.price,
        quantity=line.quantity,
        specific_tax=0,
        specific_rate=0,
        specific_name="",
        till_price=item.till_price or till_price,
        till_quantity=item.till_quantity or till_quantity,
    )
    return folded, tuple(_warnings(index, request, line, FOLD_AMOUNT_DIFFERS if item.specific_tax else ""))
