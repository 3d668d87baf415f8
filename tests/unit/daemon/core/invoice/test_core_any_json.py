"""Whatever JSON a client sends: a refusal with paths, or an invoice the machine can take."""

from decimal import Decimal
from fractions import Fraction

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from support.core_samples import RATES, as_json, read, recorded

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.invoice import Invoice
from daemon.core.ledger.book import Aggregate, Book
from daemon.core.ledger.tally import add, contribution
from daemon.core.report.fiscal_reports import x_report
from daemon.core.report.receipt import receipt

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner))


def number(least, most, places):
    scale = 10**places
    return st.integers(least * scale, most * scale).map(lambda units: Decimal(units) / scale)


def maybe(strategy):
    """Nearly always what is meant, now and then anything."""
    return st.sampled_from([strategy] * 29 + [SCALARS]).flatmap(lambda chosen: chosen)


# Made once: to make and check a strategy takes longer than to draw from it.
MODE = st.sampled_from(["TTC", "HT"])
TYPE = maybe(st.sampled_from(["FV", "FT", "EV", "ET"]))
OFTEN = st.integers(0, 29).map(lambda n: n < 29)
OPTIONAL = st.fixed_dictionaries({}, optional={"psvbGroup": st.sampled_from("ABCD"), "customer": maybe(st.none())})
PRICES, COUNTS, SPECIFIC = st.integers(1, 500), st.integers(1, 40), st.integers(1, 20)
"""Of items with a specific tax; prices and rates in fifties."""
GROUP = st.sampled_from("ABCDEFGHIJKLMNOP")
PRICE = number(1, 5000, 2)
QUANTITY = number(1, 50, 3) | st.integers(1, 5000)
AMOUNT = st.integers(1, 100_000)
PRICED = st.sampled_from(
    [
        {"amountTtc": AMOUNT},
        {"amountTtc": AMOUNT, "quantity": QUANTITY},
        {"amountTtc": AMOUNT, "quantity": QUANTITY, "unitPrice": PRICE},
        {"quantity": st.integers(1, 500), "unitPrice": st.integers(1, 5000)},
        {"amountTtc": AMOUNT, "quantity": QUANTITY, "specificTax": SCALARS, "specificTaxRate": SCALARS},
    ]
)
ITEM = PRICED.flatmap(
    lambda priced: st.fixed_dictionaries(
        {"name": st.just("Riz"), "taxGroup": GROUP, **priced},
        optional={"taxRate": st.none(), "itemType": maybe(st.sampled_from(["LOCBIE", "LOCSER"]))},
    )
)


@st.composite
def taxed_items(draw):
    """Items whose specific tax holds by construction, unless the amount is not whole."""
    group = draw(GROUP)
    price, quantity, rate = draw(PRICES) * 50, draw(COUNTS), draw(SPECIFIC) * 50
    amount = Fraction(price * quantity) + Fraction(rate * quantity * (10_000 + RATES[group]), 10_000)
    whole = int(amount) if amount == int(amount) else Decimal(amount.numerator) / Decimal(amount.denominator)
    return {
        "name": "Boisson",
        "taxGroup": group,
        "unitPrice": price,
        "quantity": quantity,
        "amountTtc": whole,
        "specificTax": rate * quantity,
        "specificTaxRate": rate,
    }


def amount_of(one, mode):
    """What the till adds up for an item: its amount, or price times quantity, in HT mode with VAT rounded half up."""
    if "amountTtc" in one:
        return one["amountTtc"]
    product = one["unitPrice"] * one["quantity"]
    return product if mode == "TTC" else (product * (10_000 + RATES[one["taxGroup"]]) + 5_000) // 10_000


ITEMS = st.lists(ITEM | taxed_items(), min_size=1, max_size=6)


@st.composite
def requests(draw):
    """Bodies that are mostly right, with payments that mostly come to what the till would add up."""
    mode, items = draw(MODE), draw(ITEMS)
    total = sum(amount_of(one, mode) for one in items)
    return {
        "invoiceNumber": "FV-1",
        "invoiceType": draw(TYPE),
        "priceMode": mode,
        "items": items,
        "payments": [{"method": "E", "amount": total if draw(OFTEN) else draw(SCALARS)}],
        **draw(OPTIONAL),
    }


def check_invoice(invoice):
    """The machine's own rules, in fractions: protocol 3 (31h), protocol 4, decision 24."""
    ttc = invoice.price_mode == "TTC"
    for line in invoice.items:
        vat = Fraction(10_000 + line.rate, 10_000) if ttc else 1
        product = Fraction(line.price, 100) * Fraction(line.quantity, 1000)
        assert line.line_amount > 0
        assert line.amount_ttc > 0
        assert line.price > 0
        assert line.quantity > 0
        assert abs(product + line.specific_tax * vat - line.line_amount) <= 1
        assert line.specific_rate * line.quantity == line.specific_tax * 100_000
        assert line.rate == RATES[line.group]
    assert sum(payment.amount for payment in invoice.payments) == invoice.total_ttc
    assert all(payment.amount > 0 for payment in invoice.payments)
    check_taxes(invoice, "ttc" if ttc else "ht")


def check_taxes(invoice, base):
    assert [tax.group for tax in invoice.taxes] == sorted({line.group for line in invoice.items})
    assert invoice.total_ttc == sum(tax.ttc for tax in invoice.taxes)
    for tax in invoice.taxes:
        lines = [line.line_amount for line in invoice.items if line.group == tax.group]
        assert tax.ht + tax.tva == tax.ttc
        assert getattr(tax, base) == sum(lines)
    lines_total = sum(line.amount_ttc for line in invoice.items)
    allowed = 0 if base == "ttc" else len(invoice.items)
    assert abs(lines_total - invoice.total_ttc) <= allowed


def check_refusal(refusal):
    assert refusal.errors
    assert all(error.field and error.message for error in refusal.errors)


def attempt(request, *, credit=False):
    try:
        return read(request, credit=credit)
    except InvalidRequest as refusal:
        check_refusal(refusal)
        return None


@given(JSON, st.booleans())
def test_any_json_is_refused_or_certifiable(request_, credit):
    """Nothing raises anything but InvalidRequest, and every fault has a path."""
    invoice = attempt(request_, credit=credit)
    assert invoice is None or check_invoice(invoice) is None


@settings(max_examples=settings.default.max_examples * 4)
@given(requests())
def test_what_is_accepted_the_machine_can_take(request_):
    """Every line within the tolerance of 31h, totals and payments equal to the franc, and it can be stored and read back."""
    invoice = attempt(request_)
    if invoice is not None:
        check_invoice(invoice)
        stored = msgspec.msgpack.encode(invoice)
        assert msgspec.msgpack.decode(stored, type=Invoice) == invoice


@given(st.lists(st.tuples(taxed_items(), st.sampled_from(["TTC", "HT"])), min_size=1, max_size=3))
def test_a_specific_tax_is_never_a_reason_to_refuse(cases):
    """Held or folded, in both modes; where it holds in TTC mode it is certified to the franc."""
    for one, mode in cases:
        request = {
            "invoiceNumber": "1",
            "invoiceType": "FV",
            "priceMode": mode,
            "items": [one],
            "payments": [{"method": "E", "amount": one["amountTtc"]}],
        }
        invoice = read(request)
        check_invoice(invoice)
        if isinstance(one["amountTtc"], int):
            assert invoice.specific_tax == one["specificTax"]


@given(st.lists(st.tuples(GROUP, PRICE, QUANTITY), min_size=1, max_size=30))
def test_in_ht_mode_amounts_left_out_are_never_too_far_off(lines):
    """However prices round, the machine's total stays within a franc an item of what the till would add up."""
    items = [{"name": "x", "taxGroup": g, "unitPrice": p, "quantity": q} for g, p, q in lines]
    total = sum(amount_of(one, "HT") for one in items)
    request = {"invoiceNumber": "1", "invoiceType": "FV", "priceMode": "HT", "items": items}
    check_invoice(read({**request, "payments": [{"method": "E", "amount": int(total)}]}))


@given(st.lists(requests(), max_size=6))
def test_a_report_is_the_sum_of_its_receipts(bodies):
    """X of a period equals what the receipts in it say, in every total (no credit notes here)."""
    receipts, running = [], {}
    for index, request in enumerate(bodies):
        invoice = attempt(request)
        if invoice is None:
            continue
        record = recorded(invoice, id=index)
        receipts.append(receipt(record))
        running = add(running, contribution(record))
    aggregate = Aggregate(0, 0, running, {}, 0, 0, 0)
    report = as_json(x_report(Book(1, "EL02000015-1", "live"), aggregate, 0))
    assert report["certs_count"] == len(receipts)
    assert report["total_ttc"] == sum(one.total_ttc for one in receipts)
    assert report["total_ttc"] == report["total_ht"] + report["total_tva"]
    assert report["total_ttc"] == sum(entry["amount"] for entry in report["by_payment"])
    assert report["total_tva"] == sum(tax.tva for one in receipts for tax in one.tax_details)
    assert report["specific_tax"] == sum(one.specific_tax for one in receipts)
