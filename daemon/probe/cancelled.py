"""What is tried in an invoice that is cancelled again."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.language import Text
from daemon.probe.finding import Finding, confirmed, contradicted, judged, not_tried
from daemon.probe.replies import (
    COMMENT,
    CUSTOMER,
    GROUPS,
    ITEM,
    PAYMENT,
    SUBTOTAL,
    read_state,
)
from daemon.probe.sale import AMOUNT, Sale, francs_of, item_of, read_subtotal

_RATE = 1800
_HT_WITH_TAX = 2596
_SPECIFIC = 10_000
_ROUNDING = Text("VAT in whole francs, rounded half up")
_PER_LINE = Text("VAT is computed on the total of a group, not on each line")
_ROUNDED = {
    (15_300, 228_800): "half up",
    (15_300, 228_900): "up",
    (15_200, 228_800): "down",
    (15_254, 228_814): "with cents",
}
"""By the VAT in 1000 and in 15000 at 18 %: 152.54 and 2288.14."""
_ROUNDINGS = {
    "half up": Text("half up"),
    "up": Text("up"),
    "down": Text("down"),
    "with cents": Text("with cents"),
    "unknown": Text("unknown"),
}
_ON_GROUP = {"half up": 6_100, "up": 6_200, "down": 6_100, "with cents": 6_102}
"""In 400: 61.02."""


LONGEST_NAME = 170


async def walk_in(sale: Sale) -> Finding:
    """Tried before anything else, since every invoice begins with it."""
    expected = Text("a customer of whom nothing is known is C3h without data")
    bare = await sale.send(CUSTOMER)
    if bare.refusal is None:
        await sale.cancel()
        return confirmed("walk_in", expected, bare.text or Text("empty"))
    sale.walk_in = b"CC,,,,,,"
    full = await sale.send(CUSTOMER, sale.walk_in)
    return contradicted(
        "walk_in",
        expected,
        f"{bare.refusal}; CC,,,,,,: {full.text}",
        Text('walk_in = "fields" in its [machine.habits]'),
        habits__walk_in="fields",
    )


async def item_at_all(sale: Sale) -> Finding:
    """Without it there is nothing more to be tried."""
    opened = await sale.begin(sale.new_number())
    item = await sale.add()
    await sale.cancel()
    return judged(
        item.refusal is None,
        "item",
        Text("an invoice is opened and takes an item of group B at the machine's own rate"),
        opened.refusal or item.text,
        Text("no sale is possible with mcfd as it is: send us the file"),
    )


async def customer(sale: Sale) -> Finding:
    answer = await sale.send(
        CUSTOMER, f"PM,{sale.ifu},Société d'essai,Secteur 4,+226 70 00 00 00,essai@example.bf,RCCM 1"
    )
    await sale.cancel()
    return judged(
        answer.refusal is None,
        "customer",
        Text("a customer with all seven fields is taken"),
        answer.text,
        Text("the sale is refused with the machine's words; send us the file"),
    )


async def cancelling(sale: Sale) -> Finding:
    """38h C after C0h, 31h, 33h and 35h, and where nothing is open."""
    before = (await read_state(sale.line)).facts
    said = [(await sale.cancel()).refusal is not None]
    for depth in range(4):
        await sale.begin(sale.new_number())
        for cmd, data in (
            (ITEM, item_of(sale, str(AMOUNT), f"{AMOUNT}.00*1.000")),
            (SUBTOTAL, ""),
            (PAYMENT, f"E{AMOUNT}"),
        )[:depth]:
            await sale.send(cmd, data)
        said.append((await sale.cancel()).refusal is None)
    after = (await read_state(sale.line)).facts
    nothing, opened, item, subtotal, paid = (Text("yes") if yes else Text("NO") for yes in said)
    came = Text(
        "refused where none is open: {nothing}; cancelled after C0h: {opened}, 31h: {item}, 33h: {subtotal}, 35h: {paid}",
        nothing=nothing,
        opened=opened,
        item=item,
        subtotal=subtotal,
        paid=paid,
    )
    return judged(
        all(said) and before == after,
        "cancel",
        Text("38h C cancels an open invoice at each step, is refused when none is open, and moves no counter"),
        came if before == after else Text("{came}; the counters moved", came=came),
        Text("an invoice that cannot be cancelled blocks the next one; send us the file"),
    )


async def names(sale: Sale) -> Finding:
    """By halves: the longest name that is taken."""
    await sale.begin(sale.new_number())
    taken, refused = 0, LONGEST_NAME + 1
    if (await sale.add(name="N" * LONGEST_NAME)).refusal is None:
        taken = LONGEST_NAME
    while refused - taken > 1 and taken < LONGEST_NAME:
        middle = (taken + refused) // 2
        if (await sale.add(name="N" * middle)).refusal is None:
            taken = middle
        else:
            refused = middle
    await sale.cancel()
    return judged(
        taken == LONGEST_NAME,
        "name",
        Text("an item's name may be as long as the frame allows (170 bytes)"),
        Text("the longest taken: {taken} bytes", taken=taken),
        Text("name_bytes = {bytes} in its [machine.habits]: longer ones are cut", bytes=taken),
        habits__name_bytes=taken,
    )


async def amounts(sale: Sale) -> list[Finding]:
    await sale.begin(sale.new_number())
    cents = await sale.send(ITEM, item_of(sale, "100.50", "100.50*1.000"))
    fraction = await sale.send(ITEM, item_of(sale, "100", "33.33*3.000"))
    quantity = await sale.send(ITEM, item_of(sale, "125", "1000.00*0.125"))
    item = await sale.add()
    await sale.cancel()
    form = item.text.split(",")
    return [
        judged(
            cents.refusal is not None,
            "item.cents",
            Text("an item's amount with cents is refused"),
            cents.text,
            Text("nothing changes: mcfd sends whole amounts"),
        ),
        judged(
            fraction.refusal is None and quantity.refusal is None,
            "item.fractions",
            Text("prices with two decimals and quantities with three are taken, within a franc of the amount"),
            f"33.33*3.000: {fraction.text}; 1000.00*0.125: {quantity.text}",
            Text("such a sale is refused with the machine's words; send us the file"),
        ),
        judged(
            len(form) == 4,  # noqa: PLR2004  TTC, HT, TVA, TS
            "item.reply",
            Text("31h answers TTC, HT, TVA, TS of the line"),
            item.text,
            Text("nothing depends on it"),
        ),
    ]


async def groups(sale: Sale) -> Finding:
    """One item of each group with the machine's own rate, and the subtotal of all."""
    await sale.begin(sale.new_number())
    refused = [group for group in GROUPS if (await sale.add("1000", group=group)).refusal is not None]
    subtotal = await sale.send(SUBTOTAL)
    await sale.cancel()
    return judged(
        not refused and subtotal.refusal is None,
        "groups",
        Text("all sixteen groups on one invoice, and their subtotal in one answer"),
        Text(
            "refused: {which}; 33h: {subtotal}",
            which=" ".join(refused) or Text("none"),
            subtotal=subtotal.refusal or Text("{count} bytes", count=len(subtotal.text)),
        ),
        Text("an invoice with those groups is refused with the machine's words"),
    )


async def specific_tax(sale: Sale) -> Finding:
    await sale.begin(sale.new_number())
    rate = sale.state.rate("B")
    amount = 2100 + round(100 * (10_000 + rate) / 10_000)
    item = await sale.send(ITEM, f"{item_of(sale, str(amount), '1050.00*2.000')};T50,100,Taxe sonde")
    found = read_subtotal(await sale.send(SUBTOTAL))
    await sale.cancel()
    told = None if found is None else found.specific
    return judged(
        item.refusal is None and told in (None, _SPECIFIC),
        "specific_tax",
        Text("a specific tax: the amount is price × quantity and the tax with its VAT, and 33h tells the tax"),
        item.text if told is None else Text("{answer}; 33h: {tax}", answer=item.text, tax=francs_of(told)),
        Text("such an item is refused; send us the file"),
    )


async def comments(sale: Sale) -> Finding:
    await sale.begin(sale.new_number())
    await sale.add()
    said = [(await sale.send(COMMENT, f"{label},Commentaire {label}")).text for label in "AH"]
    await sale.cancel()
    return judged(
        not any(text.startswith("E:") for text in said),
        "comments",
        Text("comments A to H after the items"),
        "; ".join(said),
        Text("an invoice with comments is refused with the machine's words; send us the file"),
    )


async def vat(sale: Sale) -> list[Finding]:
    """At 18 %: 152.54 of VAT in 1000; 61.02 in 400, and four times 15.25 in the four lines of 100 that it is made of."""
    if sale.state.rate("B") != _RATE:
        why = Text("group B has no rate of 18 %")
        return [not_tried("vat_rounding", _ROUNDING, why), not_tried("vat_per_line", _PER_LINE, why)]
    one, more = await _vat_in(sale, ["1000"]), await _vat_in(sale, [str(AMOUNT)])
    four = await _vat_in(sale, ["100"] * 4)
    rounding = _ROUNDED.get((one or 0, more or 0), "unknown")
    return [
        judged(
            rounding == "half up",
            "vat_rounding",
            _ROUNDING,
            Text(
                "{rounding}: {one} in 1000, {more} in {amount}",
                rounding=_ROUNDINGS[rounding],
                one=francs_of(one),
                more=francs_of(more),
                amount=AMOUNT,
            ),
            Text("mcfd takes the machine's VAT as it is, within a franc"),
        ),
        judged(
            four == _ON_GROUP.get(rounding),
            "vat_per_line",
            _PER_LINE,
            Text("{vat} in 4 × 100", vat=francs_of(four)),
            Text("mcfd takes the machine's VAT as it is, within a franc for each line"),
        ),
    ]


async def _vat_in(sale: Sale, amounts: Sequence[str]) -> int | None:
    """Hundredths of a franc; None where it cannot be read."""
    await sale.begin(sale.new_number())
    for amount in amounts:
        await sale.add(amount)
    found = read_subtotal(await sale.send(SUBTOTAL))
    await sale.cancel()
    return None if found is None else found.vat[GROUPS.index("B")]


async def specific_tax_ht(sale: Sale) -> Finding:
    """2 × 1050 and 100 of specific tax, without VAT: 396 of VAT at 18 % on both, 378 on the price alone."""
    expected = Text("in HT mode, VAT is computed on the price with the specific tax in it")
    if sale.state.rate("B") != _RATE:
        return not_tried("specific_tax_ht", expected, Text("group B has no rate of 18 %"))
    await sale.begin(sale.new_number(), mode="HT")
    item = await sale.send(ITEM, f"{item_of(sale, '2200', '1050.00*2.000')};T50,100,Taxe sonde")
    found = read_subtotal(await sale.send(SUBTOTAL))
    await sale.cancel()
    total = None if found is None else found.total // 100
    return judged(
        total == _HT_WITH_TAX,
        "specific_tax_ht",
        expected,
        item.refusal or Text("{total} for 2100 + 100", total=total),
        Text('specific_tax_ht = "folded" in its [machine.habits]'),
        habits__specific_tax_ht="folded",
    )
