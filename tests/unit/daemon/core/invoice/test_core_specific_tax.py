"""The specific tax: certified as its own line when both invariants hold, folded otherwise, never refused (decision 4)."""

from decimal import Decimal

import msgspec
import pytest
from support.core_samples import DEFAULTS, RATES, body, item, read

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import read_invoice

HOLDS = {"unitPrice": 1050, "quantity": 2, "amountTtc": 2218, "specificTax": 100, "specificTaxRate": 50}

HOLDING = [
    ("the page's own example", {}, (100, 5000)),
    ("written as decimals", {"amountTtc": Decimal("2218.0"), "specificTaxRate": Decimal("50.00")}, (100, 5000)),
    ("a fractional price", {"unitPrice": Decimal("1050.5"), "amountTtc": 2219}, (100, 5000)),
    (
        "VAT of it fractional, made whole by the price",
        {"unitPrice": Decimal("50.05"), "amountTtc": 106, "specificTax": 5, "specificTaxRate": Decimal("2.5")},
        (5, 250),
    ),
    (
        "a fractional quantity",
        {"unitPrice": 1000, "quantity": Decimal("2.5"), "amountTtc": 2559, "specificTax": 50, "specificTaxRate": 20},
        (50, 2000),
    ),
    ("a group without VAT", {"taxGroup": "A", "amountTtc": 2200}, (100, 5000)),
    (
        "less than a franc a unit",
        {"taxGroup": "A", "quantity": 4, "amountTtc": 4202, "specificTax": 2, "specificTaxRate": Decimal("0.5")},
        (2, 50),
    ),
    (
        "two decimals a unit",
        {"quantity": 4, "amountTtc": 4259, "specificTax": 50, "specificTaxRate": Decimal("12.5")},
        (50, 1250),
    ),
]

BOTH = "specificTax and specificTaxRate must both be given"
MISMATCH = "amountTtc is not unitPrice × quantity + specificTax × (1 + taxRate / 100)"
OTHER_RATE = "specificTaxRate × quantity is not specificTax"
NOT_WHOLE = "amountTtc and specificTax must be whole numbers"

FOLDING = [
    ("the amount does not fit", {"amountTtc": 2200}, MISMATCH),
    ("the amount is a franc off", {"amountTtc": 2219}, MISMATCH),
    ("the rate does not give the tax", {"specificTaxRate": 49}, OTHER_RATE),
    ("the tax is not whole", {"specificTax": Decimal("100.5"), "specificTaxRate": Decimal("50.25")}, NOT_WHOLE),
    (
        "the tax is not whole, and all adds up",
        {
            "quantity": 1,
            "unitPrice": Decimal("999.5"),
            "amountTtc": 1100,
            "taxGroup": "A",
            "specificTax": Decimal("100.5"),
            "specificTaxRate": Decimal("100.5"),
        },
        NOT_WHOLE,
    ),
    ("only the tax", {"specificTaxRate": None}, BOTH),
    ("only the rate", {"specificTax": None}, BOTH),
    (
        "a negative tax",
        {"specificTax": -100, "specificTaxRate": -50, "amountTtc": 1982},
        "specificTax is negative",
    ),
    ("a string", {"specificTax": "100"}, "specificTax must be a number"),
    ("true", {"specificTax": True}, "specificTax must be a number"),
    ("an object", {"specificTaxRate": {"a": 1}}, "specificTaxRate must be a number"),
    ("a list", {"specificTax": [100], "specificTaxRate": [50]}, "specificTax must be a number"),
    (
        "beyond any exact number",
        {"specificTax": Decimal("1e400")},
        "specificTax is a number that JSON cannot carry exactly",
    ),
    ("a huge integer", {"specificTaxRate": 10**400}, "specificTaxRate is a number that JSON cannot carry exactly"),
    ("a rate without a tax", {"specificTax": 0, "amountTtc": 2100}, OTHER_RATE),
    ("no price to check it by", {"unitPrice": None}, "unitPrice is not given"),
    (
        "three decimals a unit",
        {
            "quantity": 8,
            "unitPrice": Decimal("12.5"),
            "amountTtc": 109,
            "taxGroup": "A",
            "specificTax": 9,
            "specificTaxRate": Decimal("1.125"),
        },
        "specificTaxRate has more than 2 decimals",
    ),
]


def only(invoice):
    (line,) = invoice.items
    return line


@pytest.mark.parametrize(("why", "changes", "tax"), HOLDING, ids=[case[0] for case in HOLDING])
def test_a_tax_that_holds_is_certified_separately(why, changes, tax):
    """The item goes with its own price and quantity, its tax and its tax per unit in hundredths; no warning."""
    request = item(**{**HOLDS, **changes})
    invoice = read(body(request, pay=int(request["amountTtc"])))
    line = only(invoice)
    assert (line.specific_tax, line.specific_rate) == tax
    assert line.line_amount == line.amount_ttc == invoice.total_ttc == request["amountTtc"]
    assert line.price == request["unitPrice"] * 100
    assert line.quantity == request["quantity"] * 1000
    assert invoice.warnings == ()
    assert invoice.specific_tax == tax[0]


@pytest.mark.parametrize(("why", "changes", "expected"), FOLDING, ids=[case[0] for case in FOLDING])
def test_a_tax_that_does_not_hold_is_folded_and_never_refused(why, changes, expected):
    """Certified at `amountTtc`, the price derived from it, no specific tax, and one warning with the index and the reason."""
    request = item(**{**HOLDS, **changes})
    invoice = read(body(item(), request))
    line = invoice.items[1]
    assert (line.specific_tax, line.specific_rate, line.specific_name) == (0, 0, "")
    assert line.line_amount == line.amount_ttc == request["amountTtc"]
    assert abs(line.price * line.quantity - line.line_amount * 100_000) < 100_000
    message = f"the specific tax is folded into the price: {expected}"
    assert [(warn.code, str(warn.text), warn.item) for warn in invoice.warnings] == [
        ("SPECIFIC_TAX_FOLDED", message, 1)
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"specificTax": None, "specificTaxRate": None},
        {"specificTax": 0, "specificTaxRate": 0},
        {"specificTax": 0},
        {"specificTaxRate": Decimal("0.0")},
    ],
)
def test_a_tax_of_nothing_is_no_tax(fields):
    """Tills that always send the fields get no warning for zero, and no leniency for a fraction."""
    assert read(body(item(**fields))).warnings == ()
    with pytest.raises(InvalidRequest, match="whole"):
        read(body(item(amountTtc=Decimal("10.5"), **fields), pay=11))


def test_an_amount_that_is_left_out_holds_no_tax_that_does_not_hold():
    """Price times quantity is certified, and the till is warned: it adds the tax, or it does not."""
    line = {name: value for name, value in HOLDS.items() if name != "amountTtc"}
    assert read(body({"name": "Boisson", "taxGroup": "B", **line}, pay=2218)).total_ttc == 2218
    for wrong in ({"specificTaxRate": 49}, {"specificTax": 0, "specificTaxRate": 0}, {"specificTax": 0}):
        invoice = read(body({"name": "Boisson", "taxGroup": "B", **line, **wrong}, pay=2100))
        assert (invoice.total_ttc, invoice.specific_tax) == (2100, 0)


@pytest.mark.parametrize(
    ("amount", "certified", "paid"),
    [
        (Decimal("1000.5"), 1001, 1001),
        (Decimal("1000.5"), 1001, Decimal("1000.5")),
        (Decimal("1000.5"), 1001, 1000),
        (Decimal("1000.4"), 1000, Decimal("1000.4")),
        (Decimal("1000.4"), 1000, 1001),
        (Decimal("2218.7999999999997"), 2219, Decimal("2218.8")),
    ],
)
def test_an_amount_with_a_tax_that_is_not_whole_is_rounded_half_up(amount, certified, paid):
    """The item is folded, the payments may be off by the rounding, and the largest is adjusted. Without `amountTtc` it is `unitPrice × quantity`; 3 × 0.50 is 1.5, certified
    as 2."""
    tax = {"specificTax": 100, "specificTaxRate": 50}
    invoice = read(body(item(amountTtc=amount, quantity=2, **tax), pay=paid))
    assert (invoice.total_ttc, only(invoice).amount_ttc) == (certified, certified)
    assert sum(payment.amount for payment in invoice.payments) == certified
    codes = [(warn.code, warn.item) for warn in invoice.warnings]
    assert codes == [("AMOUNT_ROUNDED", 0)] + [("PAYMENT_ADJUSTED", -1)] * (paid != certified)
    assert f"folded into the price and amountTtc rounded to {certified}: " in str(invoice.warnings[0].text)
    product = item(amountTtc=None, unitPrice=Decimal("0.5"), quantity=3, specificTax="?")
    assert read(body(product, pay=2)).total_ttc == 2


def test_in_ht_mode_the_line_excludes_vat_altogether():
    """Literal invariants in both modes: at 18 % the till's 1 118 holds, and is 947 without VAT, tax included."""
    request = item(unitPrice=1000, quantity=1, amountTtc=1118, specificTax=100, specificTaxRate=100)
    invoice = read(body(request, priceMode="HT"))
    line = only(invoice)
    assert (line.specific_tax, line.line_amount, line.price, line.quantity) == (100, 947, 84700, 1000)
    assert invoice.total_ttc == 947 + 170


def test_in_ht_mode_no_price_of_0_is_left():
    """12 F without VAT is 10, all of it the tax: folded, and the goods cost what is certified."""
    request = item(unitPrice=Decimal("0.2"), quantity=1, amountTtc=12, specificTax=10, specificTaxRate=10)
    invoice = read(body(request, priceMode="HT"))
    line = only(invoice)
    assert (line.specific_tax, line.line_amount, line.price) == (0, 10, 1000)
    assert [warn.code for warn in invoice.warnings] == ["SPECIFIC_TAX_FOLDED"]


def test_in_ht_mode_a_large_quantity_goes_as_one_piece_with_its_whole_tax():
    """No price with 2 decimals would do, and tax per unit × quantity has to stay the tax."""
    tax = {"specificTax": 100_000, "specificTaxRate": 1}
    request = item(unitPrice=Decimal("0.01"), quantity=100_000, amountTtc=1000 + 118_000, **tax)
    line = only(read(body(request, priceMode="HT")))
    assert line.quantity == 1000
    assert line.specific_rate == line.specific_tax * 100 == 100_000 * 100


@pytest.mark.parametrize("amount", [2478, None])
def test_in_ht_mode_a_tax_on_top_of_the_price_holds(amount):
    """SFE 6.9, decision 41: 2 × 1 000 and 2 × 50 of tax, with 18 % on both, are 2 478; the price stays the till's, also where it leaves the amount out. In TTC mode 2 × 1 050 and
    100 of tax with 18 % on it are 2 218. The name of the tax goes with it."""
    request = item(unitPrice=1000, quantity=2, amountTtc=amount, specificTax=100, specificTaxRate=50)
    invoice = read(body(request, priceMode="HT", pay=2478))
    line = only(invoice)
    assert (line.specific_tax, line.price, line.quantity, line.line_amount) == (100, 100_000, 2000, 2100)
    assert (invoice.total_ttc, invoice.taxes[0].ht, invoice.warnings) == (2478, 2100, ())
    invoice = read(body(item(**{**HOLDS, "amountTtc": amount and 2218, "specificTaxDesc": "Taxe"}), pay=2218))
    assert (only(invoice).specific_tax, invoice.total_ttc, invoice.warnings) == (100, 2218, ())
    assert only(invoice).specific_name == "Taxe"


@pytest.mark.parametrize(
    ("mode", "tax", "codes"), [("TTC", 100, []), ("HT", 0, ["SPECIFIC_TAX_FOLDED", "PAYMENT_ADJUSTED"])]
)
def test_a_machine_without_vat_on_it_in_ht_mode_gets_none_there(mode, tax, codes):
    """Decision 31, `specific_tax_ht = "folded"`: the amount is certified all the same, and the answer says why; TTC mode is as ever."""
    request = body(
        item(unitPrice=1000, quantity=1, amountTtc=1118, specificTax=100, specificTaxRate=100), priceMode=mode
    )
    folding = msgspec.structs.replace(DEFAULTS, fold_in_ht=True)
    invoice = read_invoice(request, defaults=folding, rates=RATES)
    assert (only(invoice).specific_tax, [warn.code for warn in invoice.warnings]) == (tax, codes)
    assert invoice.total_ttc == (1118 if mode == "TTC" else 1117)  # decision 24: within a franc
