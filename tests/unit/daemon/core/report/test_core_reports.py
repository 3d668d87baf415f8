"""X, Z and A reports and the history record, built from tallies."""

import msgspec
import pytest
from support.core_samples import AT, BOOK, as_json, body, closure, credit_body, item, record

from common.wire.closure import GroupTotal
from daemon.core.invoice.invoice import Psvb
from daemon.core.ledger.book import Aggregate
from daemon.core.ledger.entries import CashTotal
from daemon.core.ledger.tally import add, contribution
from daemon.core.machine.state import FiscalCounters
from daemon.core.report import fiscal_reports

TAXED = item(unitPrice=1050, quantity=2, amountTtc=2218, specificTax=100, specificTaxRate=50)


def tally():
    """Two FV (one with specific tax and PSVB), an EV, a credit note, and an attempt that was refused."""
    total = {}
    for one in (
        record(body(item(), item(taxGroup="A", amountTtc=500))),
        record(body(TAXED, psvbGroup="C", payments=[{"method": "M", "amount": 2218}])),
        record(body(item(taxGroup="D", amountTtc=900), invoiceType="EV")),
        record(credit_body(item(amountTtc=1000)), credit=True),
        record(state="refused", reason="E:busy"),
    ):
        total = add(total, contribution(one))
    return total


def aggregate(**fields):
    return Aggregate(
        **{
            "seq": 5,
            "at": AT,
            "running": tally(),
            "closed": {},
            "period_start": AT - 1000,
            "fvc_start": 7,
            "fvc_end": 9,
            **fields,
        }
    )


def test_x_has_every_field_of_the_service_with_its_name():
    """The table of the service contract, decisions 16 and 17, and what the law adds (fiscal-rules.md)."""
    assert as_json(fiscal_reports.x_report(BOOK, aggregate(), AT)) == {
        "kind": "X",
        "nim": "EL02000015-1",
        "certs_count": 4,
        "total_ttc": 15500 + 2218 + 900 - 1000,
        "total_ht": 12712 + 500 + 1880 + 900 - 847,
        "total_tva": 2288 + 338 - 153,
        "by_group": [
            {"group": "A", "ht": 500, "tva": 0, "ttc": 500},
            {"group": "B", "ht": 12712 + 1880 - 847, "tva": 2288 + 338 - 153, "ttc": 15000 + 2218 - 1000},
            {"group": "D", "ht": 900, "tva": 0, "ttc": 900},
        ],
        "by_type": [
            {"invoice_type": "EV", "count": 1, "total_ttc": 900},
            {"invoice_type": "FA", "count": 1, "total_ttc": 1000},
            {"invoice_type": "FV", "count": 2, "total_ttc": 17718},
        ],
        "by_type_and_group": [
            {"invoice_type": "EV", "group": "D", "ht": 900, "tva": 0, "ttc": 900},
            {"invoice_type": "FA", "group": "B", "ht": 847, "tva": 153, "ttc": 1000},
            {"invoice_type": "FV", "group": "A", "ht": 500, "tva": 0, "ttc": 500},
            {"invoice_type": "FV", "group": "B", "ht": 14592, "tva": 2626, "ttc": 17218},
        ],
        "by_payment": [
            {"method": "E", "label": "Espèces", "amount": 15500 + 900 - 1000},
            {"method": "M", "label": "Mobile money", "amount": 2218},
        ],
        "credit_notes": {"count": 1, "total": 1000},
        "by_nature": [{"nature": "COR", "label": "Correction", "count": 1, "total": 1000}],
        "specific_tax": 100,
        "psvb": [{"group": "C", "base": 2218, "rate": 0.2, "amount": 4}],
        "incomplete": 1,
        "reductions": 0,
        "isfs": [],
        "stamp_duty": 0,
        "cash": {"deposits": 0, "withdrawals": 0, "expected": 15500 + 900 - 1000},
        "period_start": "2026-01-05T09:59:59.123Z",
        "period_end": "2026-01-05T10:00:00.123Z",
        "fvc_start": 7,
        "fvc_end": 9,
    }


def test_x_of_a_book_that_has_seen_nothing():
    """Decision 16: it begins and ends now, and both ends of the FVC range are the last one known. A period never ends before it starts, also when the clock is behind it
    (decision 21). The open period is what ran since the last Z: `running - closed`."""
    nothing = aggregate(running={}, period_start=0, fvc_start=0, fvc_end=291)
    report = fiscal_reports.x_report(BOOK, nothing, AT)
    assert report.period_start == report.period_end == "2026-01-05T10:00:00.123Z"
    assert (report.fvc_start, report.fvc_end) == (291, 291)
    behind = fiscal_reports.x_report(BOOK, aggregate(period_start=AT + 50), AT)
    assert behind.period_end == behind.period_start
    report = fiscal_reports.x_report(BOOK, aggregate(closed=tally()), AT)
    assert (report.certs_count, report.total_ttc, report.by_group, report.by_type) == (0, 0, (), ())
    assert (report.incomplete, report.by_payment, report.psvb) == (0, (), ())


def test_a_group_whose_sales_were_all_credited_is_there_with_zero():
    """It occurred; only groups that do not occur are left out (decision 17)."""
    total = add(contribution(record()), contribution(record(credit_body(), credit=True)))
    report = fiscal_reports.x_report(BOOK, aggregate(running=total), AT)
    assert report.by_group == (GroupTotal("B", 0, 0, 0),)
    assert report.certs_count == 2
    assert report.total_ttc == 0


def test_the_drawer_holds_what_was_paid_and_put_in_without_what_was_taken_out():
    """Of cash alone: what was paid by phone is not in it."""
    running = {"pay.E": 1000, "pay.M": 7000}
    drawer = fiscal_reports.x_report(BOOK, aggregate(running=running), AT, cash=CashTotal(300, 120)).cash
    assert (drawer.deposits, drawer.withdrawals, drawer.expected) == (300, 120, 1180)


@pytest.mark.parametrize("left", ["base", "amount"])
def test_a_withholding_of_which_credits_leave_a_rounding_is_still_told(left):
    """A franc that is withheld, or a base, with nothing of the other: it is on the paper, or its sum would not add up."""
    (result,) = fiscal_reports.x_report(BOOK, aggregate(running={f"psvb.C.{left}": 1}), AT).psvb
    assert (result.group, {"base": result.base, "amount": result.amount}) == ("C", {"base": 0, "amount": 0} | {left: 1})


def test_a_withholding_stands_under_the_rate_at_which_it_was_computed():
    """The rates are configuration, and may be changed within a period; what an earlier version has counted keeps its totals."""
    of_law = record(body(item(amountTtc=1000), psvbGroup="B"))
    changed = msgspec.structs.replace(of_law.invoice, psvb=Psvb("B", 1000, 150, 15), edition=2)
    before = msgspec.structs.replace(changed, edition=1)
    other, earlier = (msgspec.structs.replace(of_law, invoice=invoice) for invoice in (changed, before))
    total = add(contribution(of_law), contribution(other))
    found = fiscal_reports.x_report(BOOK, aggregate(running=total), AT).psvb
    assert as_json(found) == [
        {"group": "B", "base": 1000, "rate": 1, "amount": 10},
        {"group": "B", "base": 1000, "rate": 1.5, "amount": 15},
    ]
    assert {"psvb.B.base", "psvb.B.amount"} <= contribution(earlier).keys()


def test_payment_labels_are_configuration():
    """The sources disagree on some letters; one without a label shows itself."""
    report = fiscal_reports.x_report(BOOK, aggregate(), AT, labels={"E": "Liquide"})
    assert [(p.method, p.label) for p in report.by_payment] == [("E", "Liquide"), ("M", "M")]


def test_z_is_x_with_its_number_its_counters_and_the_head_of_the_chain():
    """All X fields, plus those of the Z; the period ends with the closure. One of an earlier version is read with nothing of what came later."""
    z = fiscal_reports.z_report(
        BOOK,
        aggregate(),
        z_number=4,
        report_id="6f0d7f0e-3f0e-4a5e-9d59-0d6b6c6c7a11",
        created_at=AT,
        counters=FiscalCounters(12, 10, 1),
        unexplained=2,
        chain_previous=b"\xab" * 32,
    )
    x = as_json(fiscal_reports.x_report(BOOK, aggregate(), AT))
    assert as_json(z) == {
        **x,
        "kind": "Z",
        "z_number": 4,
        "report_id": "6f0d7f0e-3f0e-4a5e-9d59-0d6b6c6c7a11",
        "created_at": x["period_end"],
        "mcf_counters": {"tc": 12, "fvc": 10, "frc": 1},
        "unexplained": 2,
        "chain_previous": "ab" * 32,
        "letterhead": "",
    }
    later = {"reductions": 0, "by_nature": (), "isfs": (), "stamp_duty": 0}
    early = {name: value for name, value in as_json(z).items() if name not in later}
    assert {name: getattr(msgspec.convert(early, fiscal_reports.ZReport), name) for name in later} == later


def test_a_lists_its_range_and_its_closures():
    """Decision 19: the aggregate, `from`, `to` and a summary of each closure in the range."""
    a = as_json(fiscal_reports.a_report(BOOK, tally(), [closure()], AT - 5000, AT))
    assert (a["kind"], a["from"], a["to"]) == ("A", "2026-01-05T09:59:55.123Z", "2026-01-05T10:00:00.123Z")
    assert (a["certs_count"], a["total_ttc"]) == (4, 17618)
    assert a["total_ht"] + a["total_tva"] == a["total_ttc"]
    assert a["closures"] == [
        {
            "z_number": 3,
            "period_start": "2026-01-05T09:59:59.123Z",
            "period_end": "2026-01-05T10:00:00.123Z",
            "total_ttc": 30000,
            "certs_count": 2,
        }
    ]
    assert "period_start" not in a


def test_a_history_record_has_the_names_of_the_service():
    """`id` is the report_id of the Z (decision 20)."""
    assert as_json(fiscal_reports.history_record(closure())) == {
        "id": "6f0d7f0e-3f0e-4a5e-9d59-0d6b6c6c7a11",
        "kind": "Z",
        "z_number": 3,
        "period_start": "2026-01-05T09:59:59.123Z",
        "period_end": "2026-01-05T10:00:00.123Z",
        "certs_count": 2,
        "total_ttc": 30000,
        "mcf_counters_end": {"tc": 12, "fvc": 10, "frc": 1},
    }
