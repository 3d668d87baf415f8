"""What the journal says of what was found, asked for without a browser."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import httpx
import pytest
from support.browser import Visitor, staffed_shop
from support.shop import IFU, NIM, Machine, Shop, invoice

BAKERY = {"clientType": "PM", "name": "Boulangerie Wend Panga", "ifu": "00012345A"}


@pytest.fixture
def reader(shop: Shop) -> Iterator[httpx.Client]:
    with Visitor(shop, "reader", "en") as reader:
        yield reader


def journal_text(reader: httpx.Client, **query: str) -> str:
    """The line that says what was found."""
    answer = reader.get("/ui/journal", params=query)
    found = re.search(r'id="told" role="status">([^<]*)<', answer.text)
    return re.sub(r"\s", " ", found[1])


def test_what_was_found_is_summed_up(reader: httpx.Client, shop: Shop) -> None:
    """What is certified of it, less its credit notes; nothing without a question, where nothing is certified, and where more comes on another page."""
    sales = [
        shop.certify(invoice(f"B-{number}", price, customer=BAKERY)).json() for number, price in ((1, 700), (2, 1300))
    ]
    credit = {"invoiceType": "FA", "customer": BAKERY, "creditNoteRef": f"{NIM}-{sales[0]['fvc']}"}
    credited = shop.certify(invoice("B-3", 700, **credit), path="credit-note")
    assert credited.status_code == 200, credited.text
    assert journal_text(reader, q="boulangerie") == "3 invoices shown · certified, net of credit notes: 1 300 F CFA"
    assert journal_text(reader, q="B-2") == "1 invoice shown · certified, net of credit notes: 1 300 F CFA"
    assert (
        journal_text(reader, q="boulangerie", type="FA")
        == "1 invoice shown · certified, net of credit notes: -700 F CFA"
    )
    assert journal_text(reader) == "7 invoices shown"
    assert journal_text(reader, state="refused") == "Nothing found."
    for number in range(50):
        assert shop.certify(invoice(f"M-{number}")).status_code == 200
    assert journal_text(reader, q="M-") == "50 invoices shown"


def test_another_machine_is_chosen_from_an_invoice_and_a_z(reader: httpx.Client, shop: Shop) -> None:
    """Its list follows, of invoices or closures: it may have none of that number, or another one."""
    assert shop.certify(invoice("S-1")).status_code == 200
    z = shop.closed()["z_number"]
    row = re.search(r'href="(/ui/journal/[^"]*)"', reader.get("/ui/journal").text)
    for screen, listed in ((unescape(row[1]), "/ui/journal"), (f"/ui/closures/{z}", "/ui/closures")):
        places = re.search(r'<nav class="machines".*?</nav>', reader.get(screen).text, re.DOTALL)
        others = [unescape(place) for place in re.findall('href="([^"]*)"', places[0])]
        assert [place.partition("?")[0] for place in others] == [listed] * 2
        assert [reader.get(place).status_code for place in others] == [200] * 2


def test_credit_notes_of_exports_are_credit_notes(reader: httpx.Client, shop: Shop) -> None:
    """The chip has both types, with a customer searched for too; one type alone is still found by itself."""
    sold = {"customer": BAKERY, "items": [{"name": "Coton", "taxGroup": "D", "unitPrice": 900, "quantity": 1}]}
    paid = {"payments": [{"method": "E", "amount": 900}]}
    for sale, credit in (("FV", "FA"), ("EV", "EA")):
        done = shop.certify(invoice(f"C-{sale}", invoiceType=sale, **sold, **paid)).json()
        body = invoice(f"C-{credit}", invoiceType=credit, creditNoteRef=f"{NIM}-{done['fvc']}", **sold, **paid)
        assert shop.certify(body, path="credit-note").status_code == 200
    chip = re.search(r'href="/ui/journal\?([^"]*type=[^"]*)"[^>]*>Credit notes', reader.get("/ui/journal").text)
    query = dict(parse_qsl(unescape(chip[1])))
    found = reader.get("/ui/journal", params=query).text
    assert all(f">C-{kind}<" in found for kind in ("FA", "EA")), found
    assert ">C-EV<" not in found
    assert journal_text(reader, **query, q="C-").startswith("2 invoices shown")
    assert journal_text(reader, type="EA", q="C-").startswith("1 invoice shown")


@pytest.mark.long
@pytest.mark.parametrize(
    "day", ["9999-12-31", "0001-01-01", "1999-12-31", "2100-01-01", "2026-02-30", "20260101", "yesterday"]
)
@pytest.mark.parametrize("path", ["/ui/journal", "/ui/cash", "/ui/a"])
def test_a_day_that_no_box_has_is_none(reader: httpx.Client, path: str, day: str) -> None:
    """Typed as one end of a range or both, it is as if that were empty."""
    for each in ({"from": day}, {"to": day}, {"from": day, "to": day}):
        assert reader.get(path, params=each).status_code == 200
    assert reader.get(path, params={"from": "2000-01-01", "to": "2099-12-31"}).status_code == 200


def test_an_invoice_of_a_machine_in_test_mode_is_none(tmp_path: Path) -> None:
    """Its screen says so as its paper does, also when the machine is long out of that mode: its code begins with TESTFACT for ever."""
    machine = Machine(tmp_path, NIM, IFU, "--test-mode")
    with staffed_shop(tmp_path, "reader", machines=(machine,), per_machine={"test_mode": True}) as shop:
        assert shop.certify(invoice("T-1")).json()["codeSecef"].startswith("TESTFACT")
        with Visitor(shop, "reader", "en") as reader:
            link = re.search(r'href="(/ui/journal/[^"]+)"', reader.get("/ui/journal").text)
            assert "NO FISCAL VALUE" in reader.get(unescape(link[1])).text


def test_a_shop_that_has_sold_nothing_has_no_empty_table(tmp_path: Path) -> None:
    """Where there is nothing yet it says so: without a search nothing was searched for in vain."""
    with staffed_shop(tmp_path, "reader") as shop, Visitor(shop, "reader", "en") as reader:
        assert journal_text(reader) == "None yet."
        assert journal_text(reader, q="x") == "Nothing found."
        for path in ("/ui/x", "/ui/a"):
            screen = reader.get(path).text
            assert ("<table" in screen, screen.count("None yet.")) == (False, 3), path
