"""VAT per group, and the withholding on goods (fiscal-rules.md, decision 24)."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.core_samples import DEFAULTS, RATES, as_json, body, credit_body, item, read, record

from daemon.core.invoice.intake import read_invoice
from daemon.core.invoice.invoice import NO_ITEM, Psvb, TaxLine
from daemon.core.invoice.items import at_present_rates
from daemon.core.invoice.rules import Rules
from daemon.core.invoice.taxes import tax_line
from daemon.core.ledger.tally import contribution
from daemon.core.report.receipt import receipt

AMOUNTS = st.integers(1, 10**12)
RATE = st.integers(0, 10_000)
TAKEN_OUT = [
    (15_000, 1800, 12_712, 2288),
    (1000, 1800, 847, 153),
    (11, 1000, 10, 1),
    (500, 0, 500, 0),
    (1, 1800, 1, 0),
    (3, 1800, 3, 0),
    (4, 1800, 3, 1),
    # exactly a half goes up: 3 * 100 / 120 = 2.5, 3 * 100 / 200 = 1.5, 1 * 100 / 200 = 0.5
    (3, 2000, 3, 0),
    (3, 10_000, 2, 1),
    (1, 10_000, 1, 0),
    (10**12, 1800, 847_457_627_119, 152_542_372_881),
]
"""`ttc`, `rate` in hundredths of a percent, `ht`, `tva`: of a total with VAT."""

PUT_ON = [
    (1000, 1800, 180),
    (12_712, 1800, 2288),
    (75, 1800, 14),
    (25, 1800, 5),
    (25, 1000, 3),
    (24, 1000, 2),
    (1, 1800, 0),
    (3, 1800, 1),
    (7, 0, 0),
]
"""`ht`, `rate`, `tva`: on a total without."""


@pytest.mark.parametrize(("ttc", "rate", "ht", "tva"), TAKEN_OUT)
def test_vat_is_taken_out_of_a_total_with_vat(ttc, rate, ht, tva):
    """`ht = ttc × 100 / (100 + rate)` rounded half up, `tva = ttc - ht`; 3 at 100 % is 1.5, so 2."""
    assert tax_line("B", rate, ttc * 100, "TTC") == TaxLine("B", rate, ht, tva, ttc)


@pytest.mark.parametrize(("ht", "rate", "tva"), PUT_ON)
def test_vat_comes_on_top_of_a_total_without(ht, rate, tva):
    """HT mode: `tva = ht × rate` rounded half up; 10 % of 25 is 2.5, so 3."""
    assert tax_line("C", rate, ht * 100, "HT") == TaxLine("C", rate, ht, tva, ht + tva)


@given(AMOUNTS, RATE, st.sampled_from(["TTC", "HT"]))
def test_without_and_vat_are_the_whole(amount, rate, mode):
    """`ht + tva = ttc`, always, and VAT is within half a franc of what it should be."""
    line = tax_line("B", rate, amount * 100, mode)
    assert line.ht + line.tva == line.ttc
    assert abs(line.tva - Fraction(line.ht * rate, 10_000)) <= 1
    assert (line.ttc if mode == "TTC" else line.ht) == amount


@given(st.integers(100, 10**14), RATE)
def test_cents_of_a_group_are_rounded_at_its_total(hundredths, rate):
    """HT mode with two decimals: total and HT are the nearest francs of what is exact, and the tax is what is between them (SFE 6.7)."""
    line = tax_line("B", rate, hundredths, "HT")
    exact = Fraction(hundredths * (10_000 + rate), 1_000_000)
    assert line.ht + line.tva == line.ttc
    if hundredths % 100:
        assert abs(line.ttc - exact) <= Fraction(1, 2)
        assert abs(line.ht - Fraction(hundredths, 100)) <= Fraction(1, 2)
        assert line.tva >= 0


@pytest.mark.parametrize("group", RATES)
def test_every_group_has_its_own_line(group):
    """Groups A to P, each at the machine's rate, computed on the group's total and not line by line; sorted, and those that do not occur left out."""
    invoice = read(body(item(taxGroup=group, amountTtc=333), item(taxGroup=group, amountTtc=334)))
    assert invoice.taxes == (tax_line(group, RATES[group], 66700, "TTC"),)
    invoice = read(body(*(item(taxGroup=each, amountTtc=100) for each in "PBAB")))
    assert [(line.group, line.ttc) for line in invoice.taxes] == [("A", 100), ("B", 200), ("P", 100)]


@pytest.mark.parametrize(("group", "rate", "amount"), [("A", 200, 300), ("B", 100, 150), ("C", 20, 30), ("D", 0, 0)])
def test_withholding_is_a_share_of_the_goods_with_all_taxes(group, rate, amount):
    """Of 15 000 F, VAT included (CGI 200): 2 %, 1 %, 0.2 %, 0 %, rounded half up; the rates are configuration (SFE 2.35). 2 × 1 050 F and a specific tax of 100 F with 18 % on it:
    2 218 F are claimed from the customer, so 2 % of that is withheld."""
    assert read(body(psvbGroup=group)).psvb == Psvb(group, 15_000, rate, amount)
    defaults = msgspec.structs.replace(DEFAULTS, rules=Rules(psvb_rates={"A": 250, "B": 250, "C": 250, "D": 250}))
    assert read_invoice(body(psvbGroup=group), defaults=defaults, rates=RATES).psvb == Psvb(group, 15_000, 250, 375)
    taxed = item(unitPrice=1050, quantity=2, amountTtc=2218, specificTax=100, specificTaxRate=50)
    assert read(body(taxed, psvbGroup="A")).psvb == Psvb("A", 2218, 200, 44)


@pytest.mark.parametrize(
    ("nature", "expected"), [*((n, Psvb("A", 15_000, 200, 300)) for n in ("COR", "RAN", "RAM")), ("RRR", None)]
)
def test_a_rebate_does_not_correct_the_withholding_of_its_sale(nature, expected):
    """CGI 200: a credit note of nature RRR carries none, and a warning says that `psvbGroup` was left out; the other natures take it back."""
    reference = {"creditNoteRef": "RRR"} if nature == "RRR" else {}
    credit = read(credit_body(creditNoteNature=nature, psvbGroup="A", **reference), credit=True)
    assert credit.psvb == expected
    assert [warn.code for warn in credit.warnings] == ([] if expected else ["PSVB_LEFT_OUT"])


def test_each_line_may_have_its_own_withholding():
    """SFE 2.16: cement (B, 1 %) and sheet iron (the invoice's A, 2 %) on one invoice, one tax group; a service has none."""
    cement = item(name="Ciment", amountTtc=10_000, psvbGroup="B")
    iron = item(name="Tôle", amountTtc=5000)
    service = item(name="Pose", amountTtc=2000, itemType="LOCSER")
    invoice = read(body(cement, iron, service, psvbGroup="A"))
    assert invoice.withholdings == (Psvb("A", 5000, 200, 100), Psvb("B", 10_000, 100, 100))
    receipt_json = as_json(receipt(record(body(cement, iron, service, psvbGroup="A"))))
    assert (receipt_json["psvb"], [each["group"] for each in receipt_json["psvbByGroup"]]) == (None, ["A", "B"])
    assert read(body(cement)).withholdings == (Psvb("B", 10_000, 100, 100),)
    assert read(body(cement, iron)).withholdings == (Psvb("B", 10_000, 100, 100),)
    assert contribution(record(body(cement, iron, psvbGroup="A")))["psvb.B.base"] == 10_000
    assert read(body({**service, "psvbGroup": "B"}, psvbGroup="A")).withholdings == ()


AMOUNT = st.integers(1, 10**7)
LINE = st.tuples(st.sampled_from([*RATES]), st.sampled_from(["LOCBIE", "IMPBIE", "LOCSER", "IMPSER"]), AMOUNT)


@given(st.lists(LINE, min_size=1, max_size=6), st.sampled_from("ABCD"), st.sampled_from(["TTC", "HT"]))
def test_withholding_by_an_auditor_s_own_reading(lines, group, mode):
    """Computed again in decimals, from the prices alone: the goods of each tax group, with VAT on their sum in HT mode, times the rate of the group."""
    price = "amountTtc" if mode == "TTC" else "unitPrice"
    items = [{"name": "x", "taxGroup": tax, "itemType": kind, price: amount} for tax, kind, amount in lines]
    claimed, goods = {}, {}
    for tax, kind, amount in lines:
        claimed[tax] = claimed.get(tax, 0) + amount
        if kind.endswith("BIE"):
            goods[tax] = goods.get(tax, 0) + amount
    put_on = {tax: Decimal(100 * 100 + RATES[tax]) / 10_000 if mode == "HT" else 1 for tax in claimed}
    whole = {tax: half_up(Decimal(amount) * put_on[tax]) for tax, amount in claimed.items()}
    base = sum(half_up(Decimal(amount) * put_on[tax]) for tax, amount in goods.items())
    withheld = half_up(base * Decimal({"A": "0.02", "B": "0.01", "C": "0.002", "D": "0"}[group]))
    psvb = read(body(*items, pay=sum(whole.values()), priceMode=mode, psvbGroup=group)).psvb
    assert (psvb.group, psvb.base, psvb.amount) == (group, base, withheld)


def half_up(value):
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def test_a_sale_that_waited_has_the_rates_of_now():
    """Its total is what was paid, and stays; a specific tax that does not hold at the new rate is folded."""
    now = {"A": 0, "B": 2000}
    sale = read(body(item(amountTtc=1200), item(taxGroup="A", amountTtc=500)))
    found = at_present_rates(sale, now)
    assert [line.rate for line in found.items] == [2000, 0]
    assert (found.total_ttc, found.taxes) == (1700, (TaxLine("A", 0, 500, 0, 500), TaxLine("B", 2000, 1000, 200, 1200)))
    assert [warning.code for warning in found.warnings] == ["VAT_RATE_CHANGED"]
    assert at_present_rates(sale, {}) is sale
    taxed = read(body(item(unitPrice=1050, quantity=2, amountTtc=2218, specificTax=100, specificTaxRate=50)))
    found = at_present_rates(taxed, now)
    (line,) = found.items
    assert (found.total_ttc, found.specific_tax, line.line_amount, line.price, line.quantity) == (
        2218,
        0,
        2218,
        110900,
        2000,
    )
    assert (line.printed_price, line.printed_quantity) == (105000, 2000)
    assert (line.specific_tax, line.specific_rate, line.specific_name) == (0, 0, "")
    assert [(warning.code, warning.item) for warning in found.warnings] == [
        ("VAT_RATE_CHANGED", NO_ITEM),
        ("SPECIFIC_TAX_FOLDED", 0),
    ]
    with_another = read(
        body(
            item(unitPrice=1050, quantity=2, amountTtc=2218, specificTax=100, specificTaxRate=50),
            item(taxGroup="C", taxRate=10, amountTtc=110),
        )
    )
    found = at_present_rates(with_another, {"C": 500})
    assert (found.specific_tax, [line.rate for line in found.items]) == (100, [1800, 500])


def test_a_sale_without_vat_that_waited_is_certified_with_it():
    """In HT mode the present rate would change what the customer has paid: the prices become prices with VAT, of the same total. A rounded group
    (30 × 33.49 = 1004.70 without VAT), a till's own price and quantity, a reduction and a specific tax go along."""
    sent = [
        item(unitPrice=Decimal("33.49"), quantity=30, amountTtc=None),
        item(unitPrice=Decimal("10.4"), quantity=1, amountTtc=None, originalPrice=20),
        item(taxGroup="A", unitPrice=500, quantity=2, amountTtc=None),
        item(unitPrice=1000, quantity=2, amountTtc=2478, specificTax=100, specificTaxRate=50),
    ]
    sale = read(body(*sent, pay=4676, priceMode="HT", psvbGroup="A"))
    assert at_present_rates(sale, RATES) is sale
    found = at_present_rates(sale, {"A": 0, "B": 2000})
    assert (found.price_mode, found.total_ttc, found.payments) == ("TTC", sale.total_ttc, sale.payments)
    assert [(line.group, line.rate, line.ttc) for line in found.taxes] == [("A", 0, 1000), ("B", 2000, 3676)]
    assert [(line.rate, line.line_amount, line.price, line.quantity) for line in found.items] == [
        (2000, 1186, 3952, 30_000),
        (2000, 12, 1227, 1000),
        (0, 1000, 50_000, 2000),
        (2000, 2478, 123_900, 2000),
    ]
    assert [line.amount_ttc for line in found.items] == [line.line_amount for line in found.items]
    assert [line.printed_price for line in found.items] == [3952, 1227, 50_000, 118_000]
    assert (found.items[1].original_price, found.items[1].discount) == (2360, sale.items[1].discount)
    assert (found.specific_tax, found.withholdings) == (0, sale.withholdings)
    assert [(warning.code, warning.item) for warning in found.warnings[len(sale.warnings) :]] == [
        ("VAT_RATE_CHANGED", NO_ITEM),
        ("SPECIFIC_TAX_FOLDED", 3),
    ]


def test_a_line_without_vat_that_becomes_one_piece_has_the_quantity_of_the_till_on_paper():
    """No price of 301 pieces comes to what was paid."""
    line = item(unitPrice=Decimal("33.49"), quantity=301, amountTtc=None)
    sale = read(body(line, pay=11_894, priceMode="HT"))
    (found,) = at_present_rates(sale, {"B": 2000}).items
    assert (found.line_amount, found.quantity, found.printed_quantity) == (11_894, 1000, 301_000)


@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 10**6), st.integers(1, 10**5)), min_size=1, max_size=8),
    st.integers(0, 5000).filter(lambda rate: rate != RATES["B"]),
    st.booleans(),
)
def test_any_sale_without_vat_that_waited_keeps_its_total(lines, rate, cents):
    """Whatever its lines are, and whether they are rounded to whole francs; a machine takes each of the new ones."""
    items = [
        item(taxGroup=group, unitPrice=Decimal(price) / 100, quantity=Decimal(quantity) / 1000, amountTtc=None)
        for group, price, quantity in lines
    ]
    paid = half_up(
        sum(each["unitPrice"] * each["quantity"] * (100 + RATES[each["taxGroup"]] // 100) / 100 for each in items)
    )
    assume(all(each["unitPrice"] * each["quantity"] >= 1 for each in items))
    defaults = msgspec.structs.replace(DEFAULTS, line_cents=cents)
    sale = read_invoice(body(*items, pay=paid, priceMode="HT"), defaults=defaults, rates=RATES)
    found = at_present_rates(sale, {"A": 100, "B": rate})
    assert sum(line.line_amount for line in found.items) == sum(line.ttc for line in found.taxes) == sale.total_ttc
    assert {line.group: line.ttc for line in found.taxes} == {line.group: line.ttc for line in sale.taxes}
    for line in found.items:
        assert abs(line.price * line.quantity - line.line_amount * 100_000) < 100_000
        assert line.line_amount > 0
