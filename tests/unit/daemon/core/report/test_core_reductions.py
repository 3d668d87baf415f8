"""Discounts, prices before a reduction, units and stamp duty: kept, printed, summed, never sent and in no total."""

from decimal import Decimal

import msgspec
import pytest
from support import core_samples
from support.core_samples import DEFAULTS, RATES, body, credit_body, recorded

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import read_invoice
from daemon.core.invoice.rules import Rules, StampDuty
from daemon.core.ledger.book import Aggregate, Book
from daemon.core.ledger.tally import add, contribution
from daemon.core.report.fiscal_reports import x_report
from daemon.core.report.journal import certify_request


def read(item, *, credit=False, total=10_000, **more):
    sold = {"name": "Riz", "taxGroup": "B", **item}
    sale = credit_body(sold, pay=total, creditNoteRef="RRR") if credit else body(sold, pay=total)
    return core_samples.read({**sale, **more}, credit=credit)


def test_they_change_nothing_that_is_recorded():
    """With and without them the machine gets the same."""
    plain = read({"unitPrice": 5000, "quantity": 2})
    invoice = read(
        {"unitPrice": 5000, "quantity": 2, "unit": "sac", "discount": 1000, "originalPrice": 5500}, stampDuty=100
    )
    assert (invoice.taxes, invoice.total_ttc, invoice.payments) == (plain.taxes, plain.total_ttc, plain.payments)
    item = invoice.items[0]
    assert (item.price, item.line_amount, item.unit) == (500_000, 10_000, "sac")
    assert (item.discount, item.original_price) == (1000, 550_000)
    request = certify_request(invoice)
    assert (request.stamp_duty, request.items[0].discount) == (100, 1000)
    assert request.items[0].original_price == Decimal(5500)


@pytest.mark.parametrize(
    ("mode", "price", "original"), [("TTC", 5000, 5500), ("HT", Decimal("4237.29"), Decimal("4661.02"))]
)
def test_the_reduction_follows_from_the_price_before_it(mode, price, original):
    """Where the till gives only that: with VAT, in both price modes."""
    invoice = read({"unitPrice": price, "quantity": 2, "amountTtc": 10_000, "originalPrice": original}, priceMode=mode)
    assert invoice.discount == 1000


def test_x_sums_them_net_of_credit_notes():
    """SFE 4.3 k and l: what reduced the day's sales. A rebate granted afterwards (RRR) is a reduction; credit notes are listed by nature."""
    sale = recorded(read({"amountTtc": 10_000, "discount": 1500}))
    correction = {"creditNoteRef": "EL02000015-1-1", "creditNoteNature": "COR"}
    credit = recorded(read({"amountTtc": 10_000, "discount": 500}, credit=True, **correction))
    rebate = recorded(read({"amountTtc": 2000}, credit=True, total=2000))
    running = add(add(contribution(sale), contribution(credit)), contribution(rebate))
    report = x_report(Book(1, "EL02000015-1", "live"), Aggregate(2, 0, running, {}, 0, 0, 0), 0)
    assert report.reductions == 1000 + 2000
    assert [(each.nature, each.count, each.total) for each in report.by_nature] == [
        ("COR", 1, 10_000),
        ("RRR", 1, 2000),
    ]


@pytest.mark.parametrize(
    ("fields", "is_taken"),
    [
        ({"amountTtc": 100, "discount": 100}, True),
        ({"amountTtc": 100, "unitPrice": 100, "discount": 900}, True),
        ({"amountTtc": 100, "discount": 999}, True),
        ({"amountTtc": 100, "discount": 1000}, False),
        ({"amountTtc": 100, "discount": 999_999}, False),
        ({"amountTtc": 100, "originalPrice": 1000, "discount": 900}, True),
        ({"amountTtc": 100, "originalPrice": 1000, "discount": 1000}, False),
        ({"amountTtc": 100, "unitPrice": 1000, "discount": 900}, True),
    ],
)
def test_a_reduction_is_below_the_price_before_it(fields, is_taken):
    """SFE 3 n: as far as the till says that price. Of a till that does not, half off and more is accepted; ten times what is paid is taken
    for a mistake."""
    if is_taken:
        assert read(fields, total=100).discount == fields["discount"]
        return
    with pytest.raises(InvalidRequest, match="discount"):
        read(fields, total=100)


CASH, BANK = {"method": "E", "amount": 15_000}, {"method": "V", "amount": 15_000}


def charged(*payments, **more):
    total = sum(payment["amount"] for payment in payments)
    rules = Rules(stamp_duty=StampDuty(is_charged=more.pop("is_charged", True)))
    body = {
        "invoiceNumber": "F-1",
        "invoiceType": "FV",
        "items": [{"name": "Riz", "taxGroup": "B", "amountTtc": total}],
        "payments": [*payments],
        **more,
    }
    return read_invoice(body, defaults=msgspec.structs.replace(DEFAULTS, rules=rules), rates=RATES)


@pytest.mark.parametrize(
    ("cash", "duty"),
    [(999, 0), (1000, 30), (5000, 30), (5001, 50), (10_000, 50), (10_001, 100), (50_000, 100), (50_001, 150),
     (100_000, 150), (100_001, 200), (1_000_000, 1050)],
)  # fmt: skip
def test_stamp_duty_by_the_table_of_the_tax_code(cash, duty):
    """CGI 519; none on what is paid otherwise (520); nothing by itself where the shop has not switched it on."""
    assert charged({"method": "E", "amount": cash}).stamp_duty == duty
    assert charged({"method": "E", "amount": cash}, BANK).stamp_duty == duty
    assert charged({"method": "E", "amount": cash}, is_charged=False).stamp_duty == 0
    assert charged(BANK).stamp_duty == 0


def test_stamp_duty_of_the_till_is_checked():
    """Left out with a bank transfer, told where the table says otherwise, refused beyond what is paid in cash."""
    assert [charged(CASH, stampDuty=100).stamp_duty, charged(CASH, stampDuty=100).warnings] == [100, ()]
    for payment, duty, code in ((CASH, 99, "STAMP_DUTY_DIFFERS"), (BANK, 0, "STAMP_DUTY_LEFT_OUT")):
        invoice = charged(payment, stampDuty=99, is_charged=False)
        assert (invoice.stamp_duty, [warn.code for warn in invoice.warnings]) == (duty, [code])
    assert charged(CASH, stampDuty=CASH["amount"]).stamp_duty == CASH["amount"]
    for beyond in (CASH["amount"] + 1, 99_999_999):
        with pytest.raises(InvalidRequest, match="stampDuty"):
            charged(CASH, stampDuty=beyond)


def test_stamp_duty_is_in_the_drawer():
    """X tells it beside the totals, and what the drawer should hold."""
    running = contribution(recorded(charged(CASH)))
    report = x_report(Book(1, "EL02000015-1", "live"), Aggregate(1, 0, running, {}, 0, 0, 0), 0)
    assert (report.stamp_duty, report.total_ttc, report.cash.expected) == (100, 15_000, 15_100)


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"discount": Decimal("0.5")}, "items[0].discount"),
        ({"discount": -1}, "items[0].discount"),
        ({"discount": "10"}, "items[0].discount"),
        ({"originalPrice": 0}, "items[0].originalPrice"),
        ({"originalPrice": 500_000_001, "quantity": 2000}, "items[0].originalPrice"),
        ({"unit": 3}, "items[0].unit"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(item, field):
    """Nought stands for none; a fraction of a franc, a negative one and a string are faults, and a price before the reduction that
    comes to more than an amount may: what is taken off did not fit the ledger (500, and the line went down)."""
    assert [read({"amountTtc": 10_000, "discount": off}, stampDuty=off).discount for off in (0, 1)] == [0, 1]
    with pytest.raises(InvalidRequest) as refused:
        read({"amountTtc": 10_000, **item})
    assert [error.field for error in refused.value.errors] == [field]
