"""One line: from what the till sent to what the machine gets (decisions 1, 2, 3 and 24)."""

from decimal import Decimal

import pytest
from support.core_samples import body, item, read

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.invoice import TaxLine

PRODUCT = 100_000  # a franc in hundredths × thousandths


def line(pay=None, mode="TTC", **fields):
    invoice = read(body(item(**fields), pay=pay, priceMode=mode))
    return invoice.items[0], invoice


def faults(*items, pay=15000, mode="TTC"):
    with pytest.raises(InvalidRequest) as caught:
        read(body(*items, pay=pay, priceMode=mode))
    return [error.field for error in caught.value.errors]


def test_an_item_needs_little():
    """Name, group and an amount: one piece of local goods at that price and the machine's rate (decision 1)."""
    result, _ = line()
    assert (result.price, result.quantity, result.rate, result.item_type) == (1_500_000, 1000, 1800, "LOCBIE")
    assert (result.amount_ttc, result.line_amount) == (15000, 15000)


def test_an_imported_service_has_either_code_of_the_annex():
    """The SFE annex has the code IMPSERV and the mention [IMPSER]; machine and paper have the latter."""
    assert [line(itemType=code)[0].item_type for code in ("IMPSER", "IMPSERV")] == ["IMPSER", "IMPSER"]


def test_the_amount_is_price_times_quantity_when_left_out():
    """Rounded half up to a whole franc (SFE 6.2), which the till hears; it may have been paid either way."""
    result, invoice = line(pay=250, amountTtc=None, unitPrice=Decimal("12.5"), quantity=20)
    assert (result.price, result.quantity, result.line_amount, invoice.total_ttc) == (1250, 20_000, 250, 250)
    for price, quantity, amount, paid in (
        ("12.5", "1", 13, (13, "12.5", 12)),
        ("333.33", "3", 1000, (1000, "999.99")),
        ("2.5", "3.25", 8, (8, "8.125", 9)),
    ):
        for pay in paid:
            result, invoice = line(
                pay=Decimal(pay), amountTtc=None, unitPrice=Decimal(price), quantity=Decimal(quantity)
            )
            assert (result.line_amount, result.price, result.quantity) == (
                amount, int(Decimal(price) * 100), int(Decimal(quantity) * 1000),
            )  # fmt: skip
            assert invoice.total_ttc == amount
            assert invoice.warnings[0].code == "AMOUNT_ROUNDED"


@pytest.mark.parametrize(
    ("amount", "quantity", "price"),
    [(1000, 3, 33333), (1000, Decimal("0.5"), 200_000), (100, 7, 1429), (1, Decimal("0.333"), 300), (1, 150, 1)],
)
def test_the_price_is_derived_when_left_out(amount, quantity, price):
    """`amountTtc / quantity` to 2 decimals, within a franc of the amount at that quantity."""
    result, _ = line(amountTtc=amount, quantity=quantity)
    assert (result.price, result.quantity) == (price, quantity * 1000)
    assert abs(result.price * result.quantity - amount * PRODUCT) < PRODUCT


def test_the_amount_is_what_is_certified():
    """Decision 2: where the till's price does not give it, one that does is sent; no refusal, but a warning (SFE 6.5), and the
    line keeps the till's own price. A strict till is refused."""
    result, invoice = line(amountTtc=2500, unitPrice=1000, quantity=3)
    assert (result.price, result.quantity, result.line_amount, invoice.total_ttc) == (83333, 3000, 2500, 2500)
    assert [(warn.code, warn.field) for warn in invoice.warnings] == [("UNIT_PRICE_DERIVED", "items[0].unitPrice")]
    assert (result.printed_price, result.printed_quantity) == (100_000, 3000)
    with pytest.raises(InvalidRequest, match="unitPrice"):
        read(body(item(amountTtc=2500, unitPrice=1000, quantity=3)), strict=True)


def test_a_price_that_gives_the_amount_is_kept():
    """With its decimals, and so is the quantity, however large."""
    result, _ = line(amountTtc=5001, unitPrice=Decimal("1250.25"), quantity=4)
    assert (result.price, result.quantity) == (125_025, 4000)
    result, invoice = line(amountTtc=777_777, unitPrice=1, quantity=777_777)
    assert (result.price, result.quantity, invoice.warnings) == (100, 777_777_000, ())


@pytest.mark.parametrize(("amount", "quantity"), [(1001, 30_000), (1, 200), (3, 200), (1, 1000), (999_999, 777_777)])
def test_a_quantity_too_large_for_any_price_goes_as_one_piece(amount, quantity):
    """No price with 2 decimals comes within a franc: quantity 1 at the whole amount, and a warning says so."""
    result, invoice = line(amountTtc=amount, quantity=quantity)
    assert (result.price, result.quantity, result.line_amount) == (amount * 100, 1000, amount)
    assert result.printed_quantity == quantity * 1000
    assert [(warn.code, warn.item) for warn in invoice.warnings] == [("QUANTITY_AS_ONE", 0)]


def test_in_ht_mode_vat_comes_on_the_groups_total():
    """Prices and line amounts without VAT, VAT on the group, the certified total is the machine's (decision 24). Where the amount is left out it is `unitPrice × quantity` with
    VAT, rounded half up: 1 250 and 18 % is 1 475. Where the price is: 1 180 with VAT is 1 000 without, at two pieces 500 each."""
    three = [item(unitPrice=Decimal("33.33"), quantity=1, amountTtc=39) for _ in range(3)]
    invoice = read(body(*three, priceMode="HT", pay=117))
    assert [(each.line_amount, each.price) for each in invoice.items] == [(33, 3333)] * 3
    assert (invoice.taxes, invoice.total_ttc) == ((TaxLine("B", 1800, 99, 18, 117),), 117)
    result, invoice = line(pay=1475, mode="HT", amountTtc=None, unitPrice=Decimal("12.5"), quantity=100)
    assert (result.amount_ttc, result.line_amount, invoice.total_ttc) == (1475, 1250, 1475)
    result, invoice = line(mode="HT", amountTtc=1180, quantity=2)
    assert (result.line_amount, result.price, result.quantity, invoice.total_ttc) == (1000, 50_000, 2000, 1180)


@pytest.mark.parametrize(("paid", "codes"), [(40, ["PAYMENT_ADJUSTED"]), (35, [])])
def test_in_ht_mode_payments_add_up_to_either(paid, codes):
    """Ten items of 3 without VAT: 4 each for the till, 30 and VAT for the machine, which is 35."""
    ten = [item(unitPrice=3, amountTtc=4) for _ in range(10)]
    invoice = read(body(*ten, priceMode="HT", pay=paid))
    assert invoice.total_ttc == 35
    assert [payment.amount for payment in invoice.payments] == [35]
    assert [(warn.code, warn.item) for warn in invoice.warnings] == [(code, -1) for code in codes]
    for wrong in (34, 36, 39, 41):
        assert faults(*ten, mode="HT", pay=wrong) == ["payments"]


@pytest.mark.parametrize(
    ("price", "count", "line_amount", "total", "paid"),
    [
        ("33.49", 30, 33, 1168, (1168, 1186, "1185.546", 1200)),
        ("12.49", 20, 12, 283, (283, 295)),
        ("4.40", 100, 4, 472, (472, 519)),
        ("10.40", 10, 10, 118, (118, 123)),
        ("5.5", 20, 6, 142, (142, 130, "129.8")),
        ("1000", 3, 1000, 3540, (3540,)),
    ],
)
def test_in_ht_mode_each_line_is_rounded_by_itself(price, count, line_amount, total, paid):
    """SFE 6.2: price × quantity half up; a warning says by how much the total differs, and what was paid is the exact total or the certified one."""
    lines = [item(unitPrice=Decimal(price), amountTtc=None)] * count
    for pay in paid:
        invoice = read(body(*lines, priceMode="HT", pay=Decimal(pay)))
        assert {each.line_amount for each in invoice.items} == {line_amount}
        assert (invoice.total_ttc, invoice.payments[0].amount) == (total, total)
        texts = [str(warn.text) for warn in invoice.warnings if warn.code == "LINES_ROUNDED"]
        assert len(texts) == (price != "1000")
    if price == "33.49":
        assert "the total is 1168, the exact one 1185.55, a difference of -17.55" in texts[0]


def test_in_ht_mode_more_than_a_franc_an_item_is_refused():
    """Decision 24: then prices and amounts do not mean the same invoice."""
    assert faults(item(unitPrice=1000, amountTtc=1182), mode="HT", pay=1182) == ["items"]
    assert read(body(item(unitPrice=1000, amountTtc=1181), priceMode="HT")).total_ttc == 1180
    assert faults(item(unitPrice=1000, amountTtc=1000), mode="HT", pay=1000) == ["items"]


def test_in_ht_mode_a_line_of_nothing_is_refused():
    """40 centimes with VAT round to nothing; said to be 1 franc, the line is 1 franc."""
    cheap = item(unitPrice=Decimal("0.4"), amountTtc=None)
    assert faults(cheap, mode="HT", pay=1) == ["items[0].amountTtc"]
    assert read(body({**cheap, "amountTtc": 1}, priceMode="HT")).items[0].line_amount == 1


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", [None, "", "   ", 5, "x" * 201, "a\tb", "a\x00", "a\u2028b", "a\x85b", "\ud800"]),
        ("taxGroup", [None, "", "Q", "b", "AB", 1, True]),
        ("taxRate", [17, Decimal("18.5"), "18", True, -18, Decimal("18.001"), Decimal("1e400")]),
        ("itemType", ["", "BIEN", 1]),
        ("quantity", [0, -1, Decimal("0.0001"), "2", True, 10**9 + 1, Decimal("1e400")]),
        ("unitPrice", [0, -1, Decimal("0.001"), "2", True, 10**12 + 1, 2**53 + 2]),
        ("amountTtc", [0, -1, Decimal("10.5"), "2", True, 10**12 + 1, [], Decimal("1e999999999")]),
        ("code", [5, "x" * 41, "a\nb"]),
        ("specificTaxDesc", [5, "x" * 101, "a\nb"]),
        ("unit", [5, "x" * 21]),
    ],
)
def test_a_faulty_field_is_named(field, values):
    """Decision 3: strict types, bounds, decimals and characters, with the path of the field."""
    for value in values:
        assert faults(item(), item(**{field: value})) == [f"items[1].{field}"], value


@pytest.mark.parametrize(
    "fields",
    [
        {"taxRate": Decimal("18.00")},
        {"taxRate": None},
        {"quantity": None},
        {"itemType": None},
        {"unitPrice": None},
        {"code": None, "specificTaxDesc": ""},
        {"name": "Crème brûlée, 2 < 3 & 4 > 1 – «ok» 日本", "code": "61\u00a0"},
        {"colour": "red"},
    ],
)
def test_what_is_allowed_is_allowed(fields):
    """`null` is absent, numbers may be written with decimals, text in any script, unknown fields are ignored."""
    line(**fields)


def test_the_bounds_themselves_are_fine():
    """A thousand milliards, and a thousandth of a piece. An item needs a price or an amount, and a group that the machine has a rate for: it holds the rates in force."""
    assert line(amountTtc=10**12)[0].line_amount == 10**12
    result, _ = line(amountTtc=10**12, unitPrice=10**12, quantity=Decimal("0.001"))
    assert abs(result.price * result.quantity - 10**12 * PRODUCT) < PRODUCT
    assert faults(item(amountTtc=None, unitPrice=10**12, quantity=2)) == ["items[0].amountTtc"]
    assert faults(item(amountTtc=10**12), item(amountTtc=1), pay=10**12) == ["items", "payments"]
    assert faults(item(amountTtc=None)) == ["items[0].amountTtc"]
    assert faults(*[item(amountTtc=1)] * 1001, pay=1001) == ["items"]
    assert len(read(body(payments=[{"method": "E", "amount": 150}] * 100)).payments) == 100
    with pytest.raises(InvalidRequest, match="payments"):
        read(body(item(amountTtc=101), payments=[{"method": "E", "amount": 1}] * 101))
    with pytest.raises(InvalidRequest, match=r"items\[0\].taxGroup"):
        read(body(), rates={"A": 0})
