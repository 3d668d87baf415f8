"""The door: an invoice, or every fault of a request (decisions 1 to 4)."""

import unicodedata
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.core_samples import DEFAULTS, NIM, RATES, body, credit_body, item, read

from daemon.core.clock import DAY, millis
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import escaped_length, read_invoice
from daemon.core.invoice.invoice import Comment, Customer
from daemon.core.invoice.number import NEVER, NumberScope, Series
from daemon.core.invoice.rules import Rules


def faults(request, *, credit=False):
    with pytest.raises(InvalidRequest) as caught:
        read(request, credit=credit)
    return [error.field for error in caught.value.errors]


def test_what_a_till_leaves_out_is_filled_in():
    """Decision 1: TTC, the configuration's operator and ISF, also for empty texts, which tills send for what they do not know, and a walk-in customer."""
    invoice = read(body())
    assert (invoice.price_mode, invoice.operator_id, invoice.operator_name, invoice.isf) == (
        "TTC",
        "7",
        "Caisse 7",
        "ISF1",
    )
    assert invoice.customer == Customer("CC")
    assert (invoice.comments, invoice.nature, invoice.reference, invoice.psvb) == ((), "", "", None)
    assert read(body(operatorId="", operatorName="", isf="")) == invoice
    assert read(body(operatorId=" ", operatorName="\u3000", isf="\u200b")) == invoice


@pytest.mark.parametrize(
    ("value", "expected"), [(12, "12"), (Decimal("12.0"), "12"), ("012", "012"), (0, "0"), (-1, "-1")]
)
def test_the_operator_may_be_a_number(value, expected):
    """Decision 1."""
    assert read(body(operatorId=value)).operator_id == expected
    assert faults(body(operatorId=Decimal("1.5"))) == ["operatorId"]


def test_every_fault_is_told_at_once():
    """In the order of the request, each with its path."""
    request = {
        "invoiceNumber": "",
        "invoiceType": "FX",
        "priceMode": "ttc",
        "operatorId": True,
        "customer": {"clientType": "PM", "name": "x" * 201},
        "items": [item(name=None, taxGroup="Z"), "rice", item(quantity=0)],
        "payments": [{"method": "cash", "amount": 0}, None, {}],
        "psvbGroup": "E",
    }
    assert faults(request) == [
        *("invoiceNumber", "invoiceType", "operatorId", "customer.ifu", "customer.name", "priceMode"),
        *("items[0].name", "items[0].taxGroup", "items[1]", "items[2].quantity"),
        *("payments[0].method", "payments[0].amount", "payments[1]", "payments[2].method", "payments[2].amount"),
        "psvbGroup",
    ]


NUMBERS = (
    " FV-1",
    "FV-1 ",
    "\u00a0FV-1",
    "A" * 41,
    "é" * 21,
    "," * 9,
    "A\n",
    "A\x7fB",
    "\ud83d",
    "A^lt;B",
    "A^x2c;",
    5,
    "",
)
REFUSED = {
    "body": [None, [], "x", 5, Decimal("1.5"), True],
    **{field: [body(**{field: value}) for value in (None, [], {}, "x", 1)] for field in ("items", "payments")},
    "invoiceNumber": [body(invoiceNumber=number) for number in NUMBERS],
    "customer": [body(customer=customer) for customer in ("Awa", [], 5, True)],
    "customer.name": [body(customer={"clientType": "PP", "name": name}) for name in (None, "", " ")],
    "comments": [body(comments=comments) for comments in (["x"] * 9, "x", [{"label": "A", "text": "x"}] * 2)],
    "comments[0]": [body(comments=[comment]) for comment in (5, "a\nb", "x" * 201)],
    "comments[0].label": [body(comments=[{"label": "I", "text": "x"}])],
    "comments[1]": [body(comments=["x", ""])],
    "comments[1].text": [body(comments=["x", {"label": "A"}])],
    "payments[0].amount": [
        body(payments=[{"method": "E", "amount": amount}]) for amount in (None, 0, -5, "15000", True, Decimal("1e400"))
    ],
    **{
        field: [body(**{field: value}) for value in ("x" * 201, "a\x1bb", [], False)]
        for field in ("operatorId", "operatorName", "isf")
    },
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_is_refused_is_named(field):
    """A body that is no object, lists without anything in them, a number that C1h cannot say back whole (the machine's own escapes, a space at an end, too long), a customer
    that is no object, a person without a name, more than eight comments or one label twice, texts with control characters, amounts of nothing."""
    for request in REFUSED[field]:
        assert faults(request) == [field], request
    assert faults({}) == ["invoiceNumber", "invoiceType", "items", "payments"]


def test_a_thousand_items_and_a_hundred_payments_are_the_most():
    """One more is refused without being read."""
    many = [item(amountTtc=1) for _ in range(1000)]
    assert read(body(*many)).total_ttc == 1000
    assert faults(body(*many, item())) == ["items"]
    payments = [{"method": "E", "amount": 150}] * 100
    assert len(read(body(payments=payments)).payments) == 100
    assert faults(body(payments=[*payments, {}])) == ["payments"]


@pytest.mark.parametrize("kind", ["FV", "FT", "EV", "ET", "FA", "EA"])
def test_sales_come_by_certify_and_credit_notes_by_themselves(kind):
    """These with a nature (COR by default) and a reference."""
    is_credit = kind in ("FA", "EA")
    invoice = read(credit_body(invoiceType=kind) if is_credit else body(invoiceType=kind), credit=is_credit)
    assert (invoice.type, invoice.is_credit) == (kind, is_credit)
    assert (invoice.nature, invoice.reference) == (("COR", f"{NIM}-291") if is_credit else ("", ""))
    assert faults(body(invoiceType=kind) if is_credit else credit_body(invoiceType=kind), credit=not is_credit) == [
        "invoiceType"
    ]


@pytest.mark.parametrize("nature", ["COR", "RAN", "RAM", "RRR"])
def test_natures_of_a_credit_note(nature):
    """fiscal-rules.md; RRR goes with the reference RRR (SFE 2.29), and no other nature does."""
    right, wrong = (f"{NIM}-291", "RRR") if nature != "RRR" else ("RRR", f"{NIM}-291")
    assert read(credit_body(creditNoteNature=nature, creditNoteRef=right), credit=True).nature == nature
    field = "creditNoteNature" if nature != "RRR" else "creditNoteRef"
    assert faults(credit_body(creditNoteNature=nature, creditNoteRef=wrong), credit=True) == [field]


@pytest.mark.parametrize(("reference", "assumed"), [(f"{NIM}-291", "COR"), ("RRR", "RRR")])
def test_a_nature_that_is_left_out_is_assumed_and_said(reference, assumed):
    """SFE 2.28: it has to be chosen, so the till hears of it, and a strict one is refused."""
    invoice = read(credit_body(creditNoteRef=reference), credit=True)
    (warn,) = invoice.warnings
    assert (invoice.nature, warn.code, warn.field) == (assumed, "CREDIT_NOTE_NATURE_ASSUMED", "creditNoteNature")
    with pytest.raises(InvalidRequest) as caught:
        read(credit_body(creditNoteRef=reference), credit=True, strict=True)
    assert [error.field for error in caught.value.errors] == ["creditNoteNature"]


@pytest.mark.parametrize("number", ["FV-1", "A" * 40, "é" * 20, "12,3<4", "№ 7/2026", "^caret"])
def test_numbers_the_machine_can_carry_back(number):
    """Up to 40 characters and 40 bytes as the machine stores them: protocol 2, `,` is five bytes, `<` and `>` four, `&` five."""
    assert read(body(invoiceNumber=number)).number == number
    assert escaped_length("a,b<c>d&é") == 1 + 5 + 1 + 4 + 1 + 4 + 1 + 5 + 2


@pytest.mark.parametrize("number", ["Fe\u0301vrier-1", "Fu\u0308n\u0303-1", "\u212b-1", "\u1100\u1161-1"])
def test_a_number_is_taken_composed(number):
    """Decision 37: however a till writes its accents, the same number is the same number; its length is that of what is kept."""
    assert read(body(invoiceNumber=number)).number == unicodedata.normalize("NFC", number)
    assert read(body(invoiceNumber="e\u0301" * 20)).number == "é" * 20


UNSEEN = {
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "soft hyphen": "\u00ad",
    "direction": "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "variation selectors": "\ufe00\ufe0e\ufe0f\u180b\u180f\U000e0100\U000e01ef",
    "joiners and fillers": "\u034f\u115f\u1160\u3164\uffa0\u17b4\u17b5",
    "blanks": "\u00a0\u2007\u202f\u3000\u1680\u2002\u2800\U0001d159",
    "tags and notation": "\U000e0001\U000e0041\U0001d173\U0001bca0\ufff9",
    "private and unassigned": "\ue000\U000f0000\u0378\ufff0\ufdd0",
    "control": "\x7f\x85\u2028\u2029\ud800",
}


@pytest.mark.parametrize("char", "".join(UNSEEN.values()))
def test_a_number_that_looks_like_another_is_refused(char):
    """Whatever shows nothing, and a space that is not the plain one, at whatever place: what looks the same has to be the same number."""
    for number in (f"FV{char}-1", f"{char}FV-1", f"FV-1{char}"):
        assert faults(body(invoiceNumber=number)) == ["invoiceNumber"]


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8))
def test_a_number_that_is_taken_shows_each_of_its_characters(number):
    """By the tables of Unicode, whatever is drawn; what is plainly visible is taken."""
    if any(unicodedata.category(char)[0] in "CZ" and char != " " for char in number) or number != number.strip():
        assert faults(body(invoiceNumber=number)) == ["invoiceNumber"]
    elif "^" not in number and all(unicodedata.category(char)[0] in "PN" or char.isascii() for char in number):
        assert read(body(invoiceNumber=number)).number == unicodedata.normalize("NFC", number)


@pytest.mark.parametrize(
    ("number", "is_taken"),
    [("№1", False), ("Ω1", False), ("É-1", True), ("E\u0301-1", True), ("5 €", True), ("😀", False)],
)
def test_a_number_that_the_machine_s_texts_cannot_hold_is_refused(number, is_taken):
    """X12: on a machine that keeps its texts as Windows does, "№1" would come back as "?1", and nobody could tell what was certified."""
    defaults = msgspec.structs.replace(DEFAULTS, code_page="cp1252")
    if is_taken:
        assert read_invoice(body(invoiceNumber=number), defaults=defaults, rates=RATES).number
        return
    with pytest.raises(InvalidRequest, match="cp1252") as caught:
        read_invoice(body(invoiceNumber=number), defaults=defaults, rates=RATES)
    assert [error.field for error in caught.value.errors] == ["invoiceNumber"]
    assert read(body(invoiceNumber=number)).number == number


def test_the_year_of_a_number_is_that_of_the_shop():
    """SFE 2.18: it turns at local midnight; on the first day a number of the day before is taken too."""
    zone = timezone(timedelta(hours=-3))
    turn = millis(datetime(2027, 1, 1, tzinfo=zone))
    yearly, ever, series = NumberScope(zone), NumberScope(), Series(zone=zone)
    assert [yearly.year_of(at) for at in (turn - 1, turn)] == [2026, 2027]
    assert [series.prefix("FV", NIM, at) for at in (turn - 1, turn)] == ["FV-2026-", "FV-2027-"]
    assert (series.number("FV-2027-", 12), Series().prefix("FV", NIM, turn - DAY)) == ("FV-2027-000012", "FV-2026-")
    assert yearly.taken_from(turn + 5) == (2027, turn, turn + 5 - DAY)
    assert (ever.year_of(turn), ever.taken_from(turn)) == (0, (0, NEVER, NEVER))


@pytest.mark.parametrize("kind", ["PM", "PC"])
def test_a_business_has_a_name_and_an_ifu(kind):
    """Decision 3; a blank one is none. A customer without a type is a walk-in customer, who needs neither; beside a person an IFU of any form may stand."""
    business = {"clientType": kind, "ifu": "00012345X", "name": "SARL"}
    assert read(body(customer=business)).customer == Customer(kind, "00012345X", "SARL")
    for field in ("ifu", "name"):
        for value in (None, "", "  ", "\u200b"):
            assert faults(body(customer={**business, field: value})) == [f"customer.{field}"]
    for walk_in in ("CC", None):
        assert read(body(customer={"clientType": walk_in})).customer == Customer("CC")
    assert read(body(customer={"clientType": "PP", "name": "Awa", "ifu": "1"})).customer == Customer("PP", "1", "Awa")


@pytest.mark.parametrize("kind", ["PM", "PC"])
@pytest.mark.parametrize(
    ("ifu", "is_one"), [("00012345X", True), ("00012345x", False), ("0001234X", False), ("IFU", False)]
)
def test_the_ifu_of_a_business_has_the_official_form_in_a_local_sale(kind, ifu, is_one):
    """Annex of the SFE: free for exports; the form is configuration."""
    business = {"clientType": kind, "ifu": ifu, "name": "SARL"}
    for local in ("FV", "FT"):
        request = body(customer=business, invoiceType=local)
        assert read(request).customer.ifu == ifu if is_one else faults(request) == ["customer.ifu"]
    request = credit_body(customer=business)
    assert is_one or faults(request, credit=True) == ["customer.ifu"]
    for export in ("EV", "ET"):
        assert read(body(customer=business, invoiceType=export)).customer.ifu == ifu
    assert read(credit_body(customer=business, invoiceType="EA"), credit=True).customer.ifu == ifu
    other = msgspec.structs.replace(DEFAULTS, rules=Rules(ifu_pattern="IFU|[a-z0-9A-Z]{8,9}"))
    assert read_invoice(body(customer=business), defaults=other, rates=RATES).customer.ifu == ifu
    strict = msgspec.structs.replace(DEFAULTS, rules=Rules(ifu_pattern="Z"))
    with pytest.raises(InvalidRequest, match="has not the form of an IFU: Z"):
        read_invoice(body(customer=business), defaults=strict, rates=RATES)
    if not is_one:
        with pytest.raises(InvalidRequest, match="eight digits and a capital letter"):
            read(body(customer=business))


def test_a_customer_has_an_address_and_more():
    """Issue 5 item 6."""
    more = {"address": "Rue 1", "phone": "+226 70000000", "email": "a@b.bf", "rccm": "BF-OUA-01"}
    assert read(body(customer={"name": "Awa", **more})).customer == Customer("CC", "", "Awa", *more.values())
    assert faults(body(customer={"address": 5, "phone": "x" * 41, "email": "a\n", "rccm": []})) == [
        "customer.address",
        "customer.phone",
        "customer.email",
        "customer.rccm",
    ]


def test_comments_take_the_next_free_label():
    """Labelled, unlabelled and plain, as existing clients send them: from C on, as A and B give a reason for no tax (annex of the SFE)."""
    comments = ["one", {"text": "two"}, {"label": "A", "text": "three"}, {"label": None, "text": "four"}]
    assert read(body(comments=comments)).comments == (
        Comment("C", "one"),
        Comment("D", "two"),
        Comment("A", "three"),
        Comment("E", "four"),
    )
    assert [c.label for c in read(body(comments=["x"] * 6)).comments] == list("CDEFGH")
    assert faults(body(comments=["x"] * 8)) == ["comments[6]", "comments[7]"]
    assert read(body(comments=[])).comments == ()
