"""The electronic journal over HTTP: pages, one certification, files, QR codes; sales by article."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import segno
from PIL import Image
from support.shop import NIM, Shop, invoice, wait_for
from support.till import certified, fresh, invalid, problem

EVER = {"from": "2020-01-01"}


@pytest.fixture(scope="module")
def receipts(shop: Shop) -> list[dict[str, Any]]:
    """Seven sales, a Z after the third and the fifth."""
    found = []
    for number in range(1, 8):
        found.append(certified(shop.certify(invoice(fresh(), 1000 * number), key=f"j-{number}")))
        if number in (3, 5):
            assert shop.close_period().status_code == 201
    return found


def pages(shop: Shop, **query: Any) -> Iterator[dict[str, Any]]:
    """Page after page, as a client reads them."""
    page = shop.get("certifications", **query).json()
    yield page
    while page["next"] is not None:
        page = shop.get("certifications", **query, cursor=page["next"]).json()
        yield page


def numbers(found: list[dict[str, Any]]) -> list[str]:
    return [entry["invoiceNumber"] for entry in found]


def test_newest_first_and_page_by_page(shop: Shop, receipts: list[dict[str, Any]]) -> None:
    """Every entry once, whatever the size of a page; the last page says that it is the last."""
    expected = [receipt["invoiceNumber"] for receipt in reversed(receipts)]
    for limit in (1, 3, 7, 100):
        read = list(pages(shop, limit=limit, state="certified", **EVER))
        assert [number for page in read for number in numbers(page["certifications"])] == expected
        assert all(page["count"] == len(page["certifications"]) <= limit for page in read)
        assert {page["nim"] for page in read} == {NIM}


def test_one_certification(shop: Shop, receipts: list[dict[str, Any]]) -> None:
    """The receipt as the till got it, the request with its defaults, the Z; with the code's dashes too."""
    receipt = receipts[1]
    code = receipt["codeSecef"]
    found = shop.get(f"certifications/{code}").json()
    assert found["receipt"] == receipt
    assert found["request"]["items"][0]["unitPrice"] == 2000
    assert found["request"]["customer"] == {"clientType": "CC"}
    assert (found["zNumber"], found["state"], found["totalTtc"]) == (1, "certified", 2000)
    dashed = "-".join(code[at : at + 4] for at in range(0, 24, 4))
    assert shop.get(f"certifications/{dashed}").json() == found


def test_an_unknown_code_is_not_found(shop: Shop, receipts: list[dict[str, Any]]) -> None:
    """404 for the record and its QR codes alike, and for a code of the sandbox asked for with a live key."""
    test = certified(shop.certify(invoice(fresh()), mode="test"))["codeSecef"]
    for path in ("X" * 24, "X" * 24 + "/qr.svg", "X" * 24 + "/qr.png", test):
        problem(shop.get(f"certifications/{path}"), 404, "NOT_FOUND")
    assert shop.get(f"certifications/{test}", mode="test").status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"state": "sold"}, "state"),
        ({"limit": 1001}, "limit"),
        ({"cursor": "1.x"}, "cursor"),
        ({"format": "xlsx"}, "format"),
        ({"format": "csv", "dialect": "x"}, "dialect"),
        ({"from": "yesterday"}, "from"),
    ],
)
def test_a_query_that_cannot_be_read(shop: Shop, query: dict[str, Any], field: str) -> None:
    """422 that names the parameter."""
    assert list(invalid(shop.get("certifications", **query))) == [field]


@pytest.mark.parametrize("number", ["BON 12 A", "1+1=2", "50% / été"])
def test_a_number_with_a_space_or_a_plus_is_found(shop: Shop, number: str) -> None:
    """HTTP libraries write a space in a query as `+` and a plus as `%2B`; a space as `%20` is the same."""
    assert shop.certify(invoice(number, 700), mode="test").is_success
    for written in (quote_plus(number), quote(number, safe="")):
        page = shop.http.get(f"/v1/mcf/{NIM}/certifications?invoiceNumber={written}", headers=shop.headers("test"))
        assert numbers(page.json()["certifications"]) == [number], written


def test_a_file_holds_the_whole_range(shop: Shop, receipts: list[dict[str, Any]]) -> None:
    """Oldest first, whatever the limit, in both forms the same entries; JSONL has each record as it is asked for alone, but for what may still be
    credited."""
    text = shop.get("certifications", format="csv", limit=1, state="certified", **EVER).text
    rows = list(csv.DictReader(io.StringIO(text)))
    lines = [
        json.loads(line)
        for line in shop.get("certifications", format="jsonl", state="certified", **EVER).text.splitlines()
    ]
    expected = [receipt["codeSecef"] for receipt in receipts]
    assert [row["codeSecef"] for row in rows] == [line["codeSecef"] for line in lines] == expected
    assert [row["totalTtc"] for row in rows] == [str(receipt["totalTtc"]) for receipt in receipts]
    assert [row["zNumber"] for row in rows] == ["1", "1", "1", "2", "2", "", ""]
    alone = shop.get(f"certifications/{expected[0]}").json()
    assert lines[0] == {name: value for name, value in alone.items() if name != "remainingTtc"}
    assert shop.get("certifications", format="jsonl", to="2020-01-01").text == ""


def modules(content: str) -> list[list[bool]]:
    """Dark and light, with the quiet zone."""
    return [[bool(dark) for dark in row] for row in segno.make_qr(content, error="m").matrix_iter(border=4)]


def test_the_qr_code_as_svg(shop: Shop, receipts: list[dict[str, Any]]) -> None:
    """What the receipt says is to be in it, measured for an 80 mm ticket (72 mm of which are printed)."""
    receipt = receipts[0]
    answer = shop.get(f"certifications/{receipt['codeSecef']}/qr.svg")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    side = len(modules(receipt["qrContent"]))
    assert f'width="{side * 0.75}mm"' in answer.text
    assert 25 < side * 0.75 < 40
    assert "<script" not in answer.text
    assert "immutable" in answer.headers["cache-control"]


def test_the_qr_code_as_png(shop: Shop, receipts: list[dict[str, Any]]) -> None:
    """Six dots of the printer to a module, at its 203 dpi, and dot for dot the code of the receipt."""
    receipt = receipts[0]
    answer = shop.get(f"certifications/{receipt['codeSecef']}/qr.png")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    picture = Image.open(io.BytesIO(answer.content))
    expected = modules(receipt["qrContent"])
    side = len(expected)
    assert (picture.mode, picture.size) == ("1", (6 * side, 6 * side))
    assert [[picture.getpixel((6 * x, 6 * y)) == 0 for x in range(side)] for y in range(side)] == expected
    assert [round(dots) for dots in picture.info["dpi"]] == [203, 203]


def test_sales_by_article(shop: Shop, receipts: list[dict[str, Any]]) -> None:
    """Sums of the range, as the X of the same range has them; a returned article is taken off."""
    sale = certified(
        shop.certify(
            {
                **invoice(fresh(), 3000),
                "items": [{"name": "Huile 1 L", "code": "H1", "taxGroup": "B", "unitPrice": 1500, "quantity": 2}],
            },
            mode="test",
        )
    )
    credit = {
        **invoice(fresh(), 1500, invoiceType="FA"),
        "items": [{"name": "Huile 1 L", "code": "H1", "taxGroup": "B", "unitPrice": 1500, "quantity": 1}],
        "creditNoteRef": f"{NIM}-{sale['fvc']}",
        "creditNoteNature": "RAM",
    }
    certified(shop.certify(credit, mode="test", path="credit-note"))

    def counted() -> dict[str, Any] | None:
        report = shop.get("reports/articles", mode="test").json()
        oil = [article for article in report["articles"] if article["code"] == "H1"]
        return oil[0] if oil and oil[0]["quantity_returned"] else None

    assert wait_for(counted, "the tick") == {
        "name": "Huile 1 L",
        "code": "H1",
        "group": "B",
        "quantity_sold": 2,
        "quantity_returned": 1,
        "amount_sold": 3000,
        "amount_returned": 1500,
        "amount": 1500,
        "category": "",
        "unit_price": 1500,
        "price_mode": "TTC",
        "rate": 18,
    }
    shop.x_with(2)
    report = shop.get("reports/articles").json()
    x = shop.get("reports/x", **{"from": report["from"], "to": report["to"]}).json()
    assert sum(article["amount"] for article in report["articles"]) == x["total_ttc"] == 28000
    assert report["certs_count"] == x["certs_count"] == len(receipts)
