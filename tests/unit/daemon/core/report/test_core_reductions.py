"""Discounts, prices before a reduction, units and stamp duty: kept, printed, summed, never sent and in no total."""

from decimal import Decimal

import pytest

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Aggregate, Book
from daemon.core.ledger.tally import add, contribution
from daemon.core.machine.state import FiscalCounters
from daemon.core.report.fiscal_reports import x_report
from daemon.core.report.journal import certify_request

DEFAULTS = Defaults(operator_id="1", operator_name="Caisse 1", isf="1")
RATES = {"A": 0, "B": 1800}


def read(item, *, credit=False, total=10_000, **more):
    body = {
        "invoiceNumber": "F-1",
        "invoiceType": "FA" if credit else "FV",
        "items": [{"name": "Riz", "taxGroup": "B", **item}],
        "payments": [{"method": "E", "amount": total}],
        **({"creditNoteRef": "RRR"} if credit else {}),
        **more,
    }
    return read_invoice(body, defaults=DEFAULTS, rates=RATES, credit=credit)


def certified(invoice):
    counters = FiscalCounters(1, 1, 0)
    return Record(
        id=1, number="F-1", type=invoice.type, state="certified", begun_at=0, base=counters,
        total_ttc=invoice.total_ttc, invoice=invoice, counters=counters,
    )  # fmt: skip


def test_they_change_nothing_that_is_certified():
    """With and without them the machine is told the same."""
    plain = read({"unitPrice": 5000, "quantity": 2})
    told = read(
        {"unitPrice": 5000, "quantity": 2, "unit": "sac", "discount": 1000, "originalPrice": 5500}, stampDuty=100
    )
    assert (told.taxes, told.total_ttc, told.payments) == (plain.taxes, plain.total_ttc, plain.payments)
    item = told.items[0]
    assert (item.price, item.line_amount, item.unit, item.discount, item.original_price) == (
        500_000,
        10_000,
        "sac",
        1000,
        550_000,
    )
    request = certify_request(told)
    assert (request.stamp_duty, request.items[0].original_price, request.items[0].discount) == (
        100,
        Decimal(5500),
        1000,
    )


@pytest.mark.parametrize(
    ("mode", "price", "original"), [("TTC", 5000, 5500), ("HT", Decimal("4237.29"), Decimal("4661.02"))]
)
def test_the_reduction_follows_from_the_price_before_it(mode, price, original):
    """Where the till gives only that: with VAT, in both price modes."""
    invoice = read({"unitPrice": price, "quantity": 2, "amountTtc": 10_000, "originalPrice": original}, priceMode=mode)
    assert invoice.discount == 1000


def test_x_sums_them_net_of_credit_notes():
    """SFE 2.0, section 4: what reduced the day's sales."""
    sale = certified(read({"amountTtc": 10_000, "discount": 1500}))
    credit = certified(read({"amountTtc": 10_000, "discount": 500}, credit=True))
    running = add(contribution(sale), contribution(credit))
    report = x_report(Book(1, "EL02000015-1", "live"), Aggregate(2, 0, running, {}, 0, 0, 0), 0)
    assert report.reductions == 1000


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"discount": Decimal("0.5")}, "items[0].discount"),
        ({"discount": -1}, "items[0].discount"),
        ({"discount": "10"}, "items[0].discount"),
        ({"originalPrice": 0}, "items[0].originalPrice"),
        ({"unit": 3}, "items[0].unit"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(item, field):
    """Nought stands for none; a fraction of a franc, a negative one and a string are faults."""
    assert read({"amountTtc": 10_000, "discount": 0}, stampDuty=0).discount == 0
    with pytest.raises(InvalidRequest) as refused:
        read({"amountTtc": 10_000, **item})
    assert [error.field for error in refused.value.errors] == [field]
