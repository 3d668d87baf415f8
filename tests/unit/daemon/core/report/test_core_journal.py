"""An entry of the journal in JSON and as a line of CSV; sales by article."""

import csv
import io
import json
import re
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.core_samples import AT, BOOK, DEFAULTS, NIM, RATES, body, credit_body, item, read, record

from common.language.reasons import SUBTOTAL, UNREADABLE, to_stored
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import read_invoice
from daemon.core.invoice.invoice import invoice_without_lines
from daemon.core.invoice.request import CUSTOMER_TEXTS, INVOICE_TEXTS, ITEM_TEXTS
from daemon.core.ledger.entries import CashMove, Placed, entry_bytes
from daemon.core.report import articles as sums
from daemon.core.report.articles import Articles, ArticlesReport, certified_amounts
from daemon.core.report.journal import certify_request, exact, is_credited, journal_entry, journal_record, reason_text
from daemon.core.report.journal_csv import COLUMNS, csv_act, csv_header, csv_lines, csv_row
from daemon.core.report.receipt import receipt

ENCODER = msgspec.json.Encoder(decimal_format="number")
CUSTOMER = {"clientType": "PM", "ifu": "00012345X", "name": "ACME", "address": "Zone 1", "phone": "70", "rccm": "BF-1"}

REQUESTS = [
    (body(), False),
    (body(item(unitPrice=Decimal("1050.5"), quantity=2, amountTtc=2101), customer=CUSTOMER, psvbGroup="B"), False),
    (
        body(
            item(amountTtc=2218, unitPrice=1050, quantity=2, specificTax=100, specificTaxRate=50, specificTaxDesc="Taxe"),
            comments=["Merci", {"label": "C", "text": "À bientôt"}],
        ),
        False,
    ),
    (body(item(unitPrice=Decimal("12711.86"), amountTtc=15000), priceMode="HT"), False),
    (body(item(quantity=Decimal("0.125"), code="R25", itemType="LOCSER", taxGroup="A"), operatorId=12, operatorName="Ali", isf="9"), False),
    (credit_body(creditNoteNature="RAM"), True),
]  # fmt: skip


def as_sent(value):
    return json.loads(ENCODER.encode(value), parse_float=Decimal)


@pytest.mark.parametrize(("request_", "credit"), REQUESTS)
def test_the_request_of_an_entry_says_all_that_was_certified(request_, credit):
    """Sent again as it stands in the journal, it would be the same invoice to the last field."""
    invoice = read(request_, credit=credit)
    again = read(as_sent(certify_request(invoice)), credit=credit)
    assert again == msgspec.structs.replace(invoice, warnings=again.warnings)


def test_each_text_that_is_kept_as_it_comes_stands_in_the_journal():
    """Whatever optional text a request describes and the ledger has by the same name: of the invoice, its customer, its items."""
    sent = [{name: f"{name} !" for name, _ in texts.values()} for texts in (INVOICE_TEXTS, CUSTOMER_TEXTS, ITEM_TEXTS)]
    of_invoice, of_customer, of_item = sent
    assert {*of_customer, *of_item} > {"email", "unit", "category"}
    request = as_sent(certify_request(read(body({**item(), **of_item}, customer=of_customer, **of_invoice))))
    for place, texts in zip((request, request["customer"], request["items"][0]), sent, strict=True):
        assert place.items() >= texts.items()


def test_what_was_not_given_is_left_out():
    """A plain sale is as short in the journal as it was on its way."""
    request = as_sent(certify_request(read(body())))
    plain = {
        "name": "Riz 25kg",
        "itemType": "LOCBIE",
        "taxGroup": "B",
        "taxRate": 18,
        "unitPrice": 15000,
        "quantity": 1,
    }
    assert request["items"] == [{**plain, "amountTtc": 15000}]
    assert request["customer"] == {"clientType": "CC"}
    assert request.keys().isdisjoint({"comments", "creditNoteRef", "psvbGroup", "stampDuty"})


def test_an_entry_of_a_certification():
    """With the answer that the till got, byte for byte, and the Z that it is in. Credit notes may take something of it, and of nothing else."""
    sale = record()
    others = (record(state="disputed", counters=None), record(credit_body(item()), credit=True))
    assert [is_credited(each) for each in (sale, *others)] == [True, False, False]
    entry = as_sent(journal_record(sale, 7))
    assert msgspec.json.encode(journal_record(sale, 7).receipt) == msgspec.json.encode(receipt(sale))
    assert (entry["seq"], entry["state"], entry["zNumber"], entry["codeSecef"]) == (1, "certified", 7, sale.code)
    assert (entry["begunAt"], entry["endedAt"]) == ("2026-01-05T09:59:59.923Z", "2026-01-05T10:00:00.123Z")
    assert entry.items() >= as_sent(journal_entry(sale, 7)).items()


def test_an_entry_of_what_was_not_certified():
    """No receipt, no place while it has not ended, no Z while the period is open; the port is left out."""
    lost = record(state="abandoned", code="", machine_time="", counters=None, reason="the port /dev/ttyACM0 is gone")
    entry = as_sent(journal_record(lost, 0))
    assert (entry["receipt"], entry["zNumber"], entry["tc"]) == (None, None, None)
    assert entry["reason"] == "the port the port is gone"
    begun = as_sent(journal_record(record(state="begun", seq=0, ended_at=0, counters=None), 0))
    assert (begun["seq"], begun["endedAt"]) == (None, None)
    refused = as_sent(journal_entry(record(state="refused", counters=None, reason="E:a/b /x"), 0))
    assert refused["reason"] == "E:a/b /x"
    unread = record(state="refused", counters=None, reason=to_stored(UNREADABLE(what=SUBTOTAL, shown="x")))
    assert reason_text(unread, "fr") == "réponse illisible de la machine, le sous-total\N{NO-BREAK SPACE}: 'x'"


@given(st.integers(0, 10**12), st.integers(0, 3))
def test_a_scaled_integer_is_shown_exactly(scaled, decimals):
    """The same value, and no zero that means nothing."""
    number = exact(scaled, decimals)
    assert number * 10**decimals == scaled
    assert ENCODER.encode(number).decode() == str(number)
    assert "E" not in str(number)
    assert not ("." in str(number) and str(number).endswith("0"))


def rows(*lines):
    return list(csv.DictReader(io.StringIO(csv_header() + csv_lines(lines))))


def test_a_line_of_csv():
    """One for each entry, with the totals of the invoice and what was paid by each method; of an invoice that was taken over from its machine only what that told."""
    sale = record(body(item(), item(taxGroup="A", amountTtc=500), psvbGroup="A", pay=0) | {
        "payments": [{"method": "E", "amount": 10000}, {"method": "M", "amount": 5500}]
    })  # fmt: skip
    (row,) = rows(csv_row(sale, 7))
    assert list(row) == list(COLUMNS)
    assert (row["totalTtc"], row["totalHt"], row["totalTva"]) == ("15500", "13212", "2288")
    assert (row["paidE"], row["paidM"], row["paidV"]) == ("10000", "5500", "0")
    assert (row["psvbGroup"], row["psvbAmount"], row["zNumber"]) == ("A", "310", "7")
    assert (row["seq"], row["endedAt"]) == ("1", "2026-01-05T10:00:00.123Z")
    (begun,) = rows(csv_row(record(state="begun", seq=0, ended_at=0, counters=None), 0))
    assert (begun["seq"], begun["endedAt"], begun["tc"]) == ("", "", "")
    (adopted,) = rows(csv_row(record(invoice=invoice_without_lines("FA-9", "FA", 777), number="FA-9", type="FA"), 7))
    cells = {name: cell for name, cell in adopted.items() if cell}
    assert (cells["totalTtc"], cells["tc"], cells["zNumber"]) == ("15000", "11", "7")
    assert not [name for name in cells if re.match("totalH|totalTv|specific|paid|client|price|discount|stamp", name)]


@pytest.mark.parametrize(("kind", "cash"), [("deposit", "500"), ("withdrawal", "-500")])
@pytest.mark.parametrize("z_number", [0, 7])
def test_a_movement_of_cash_is_a_line_too(kind, cash, z_number):
    """What was put in is above nought and what was taken out below, so that the column adds up; what an invoice has beside it is empty."""
    move = CashMove(kind, 500, "=float", "7", "Awa")
    (row,) = rows(csv_act(Placed(3, 0, 0, AT, entry_bytes(move)), z_number))
    assert {name: cell for name, cell in row.items() if cell} == {
        "state": kind,
        "begunAt": "2026-01-05T10:00:00.123Z",
        "endedAt": "2026-01-05T10:00:00.123Z",
        "operatorId": "7",
        "operatorName": "Awa",
        "reason": "'=float",
        "cash": cash,
    } | ({"zNumber": "7"} if z_number else {})


def test_csv_takes_any_text():
    """Commas, quotes and line ends of what a till wrote stay inside their cell."""
    name = 'Éts "Kaboré", fils'
    sale = record(body(customer={"clientType": "PP", "ifu": "0,1", "name": name}))
    (row,) = rows(csv_row(sale, 0))
    assert (row["customerName"], row["customerIfu"], row["zNumber"]) == (name, "0,1", "")


def sold(*requests):
    articles = Articles()
    articles.add(record(request, credit="creditNoteRef" in request) for request in requests)
    return as_sent(articles.report(BOOK, AT - 1000, AT, at=AT))


def test_a_report_of_articles_of_an_earlier_version_is_read():
    """Closed ones are in the ledger for ever; what they do not have is nought, and in TTC. The next one begins with what was certified first."""
    line = {"name": "Riz", "code": "", "group": "B", "quantity_sold": 1, "quantity_returned": 0}
    early = {"nim": NIM, "from": "", "to": "", "certs_count": 1}
    early["articles"] = [line | {"amount_sold": 5, "amount_returned": 0, "amount": 5}]
    report = msgspec.convert(early, ArticlesReport)
    (article,) = report.articles
    counted = Articles()
    counted.add([record(), record(ended_at=AT + 1)])
    assert (counted.certs_count, counted.first_at, counted.upto_seq) == (2, AT, 0)
    assert (report.total_ttc, article.unit_price, article.rate, article.price_mode) == (0, 0, 0, "TTC")


def test_articles_are_told_apart_by_name_code_and_group():
    """Each with the sum of its quantities and amounts, sorted."""
    report = sold(
        body(
            item(quantity=2, amountTtc=30000),
            item(quantity=Decimal("0.5"), amountTtc=7500),
            item(code="R", amountTtc=100),
        ),
        body(item(taxGroup="A", amountTtc=40), item(name="Ail", amountTtc=10)),
    )
    assert report["certs_count"] == 2
    assert [(a["name"], a["code"], a["group"], a["quantity_sold"], a["amount"]) for a in report["articles"]] == [
        ("Ail", "", "B", 1, 10),
        ("Riz 25kg", "", "A", 1, 40),
        ("Riz 25kg", "", "B", Decimal("2.5"), 37500),
        ("Riz 25kg", "R", "B", 1, 100),
    ]


@pytest.mark.parametrize(("nature", "returned"), [("COR", 1), ("RAN", 1), ("RAM", 1), ("RRR", 0)])
def test_credit_notes_give_back(nature, returned):
    """Amounts always; goods unless it is a rebate. At its own price, it is a line of its own."""
    reference = "RRR" if nature == "RRR" else f"{NIM}-291"
    report = sold(body(), credit_body(item(amountTtc=4000), creditNoteNature=nature, creditNoteRef=reference))
    back, rice = report["articles"]
    assert (back["unit_price"], rice["unit_price"]) == (4000, 15000)
    assert (rice["quantity_sold"], back["quantity_returned"]) == (1, returned)
    assert (rice["amount_sold"], back["amount_returned"], report["total_ttc"]) == (15000, 4000, 11000)


def test_a_line_s_share_is_that_of_its_cents_too():
    """Of a machine with two decimals on a line: 10.99 and 1 000.01 without tax are 12.97 and 1 180.01 with it."""
    request = body(
        item(amountTtc=None, unitPrice=Decimal("10.99")),
        item(amountTtc=None, unitPrice=Decimal("1000.01")),
        priceMode="HT",
        pay=1193,
    )
    invoice = read_invoice(request, defaults=msgspec.structs.replace(DEFAULTS, line_cents=True), rates=RATES)
    assert [amount for _, amount in certified_amounts(invoice)] == [13, 1180]


def test_articles_come_to_what_was_certified():
    """SFE 5.1: in HT mode the lines of a group share its certified total to the franc; each price and mode, and each category, is a line of its own, with the
    quantity of the till."""
    ht = [item(unitPrice=Decimal("10.40"), amountTtc=None) for _ in range(10)]
    taxed = item(
        name="Bière",
        unitPrice=250,
        quantity=601,
        amountTtc=186_000,
        specificTax=50,
        specificTaxRate=1,
        category="Boissons",
    )
    requests = [body(*ht, priceMode="HT", pay=118), body(item(amountTtc=12, unitPrice=12)), body(taxed, pay=186_000)]
    report = sold(*requests)
    assert report["total_ttc"] == sum(record(request).total_ttc for request in requests) == 118 + 12 + 186_000
    assert [(a["category"], a["price_mode"], a["unit_price"], a["quantity_sold"]) for a in report["articles"]] == [
        ("", "HT", Decimal("10.4"), 10),
        ("", "TTC", 12, 1),
        ("Boissons", "TTC", 250, 601),
    ]
    assert (report["kind"], report["isfs"], report["articles"][0]["rate"]) == ("A", ["ISF1"], 18)


def test_a_report_holds_twenty_thousand_articles():
    """One more is refused."""
    sale = record()
    (one,) = sale.invoice.items

    def sold(first, count):
        items = tuple(msgspec.structs.replace(one, name=f"A{first + number}") for number in range(count))
        return msgspec.structs.replace(sale, invoice=msgspec.structs.replace(sale.invoice, items=items))

    found = Articles()
    found.add([sold(0, 20_000)])
    with pytest.raises(InvalidRequest, match="more than 20000 different articles"):
        found.add([sold(20_000, 1)])


def test_a_report_holds_so_many_articles_and_no_more(monkeypatch):
    """A sandbox can sell a new article in each line for ever: one report is refused in words before it fills the box's memory. What was refused or abandoned was not sold."""
    monkeypatch.setattr(sums, "MAX_ARTICLES", 3)
    found = Articles()
    found.add([record(state="refused", counters=None), record(state="abandoned", counters=None)])
    assert (found.report(BOOK, 0, AT, at=AT).articles, found.certs_count) == ((), 0)
    found.add([record(body(*(item(name=f"A{number}", amountTtc=10) for number in range(3))))])
    assert len(found.report(BOOK, 0, AT, at=AT).articles) == 3
    with pytest.raises(InvalidRequest, match="from: more than 3 different articles"):
        found.add([record(body(item(name="A3", amountTtc=10)))])
