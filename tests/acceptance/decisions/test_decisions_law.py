"""What the law asks of a request (decisions 24, 35 and 41, SFE 2 and 6), as a till and the machine see it."""

from pathlib import Path
from typing import Any

import pytest
from support.shop import NIM, Shop, invoice, running_shop
from support.till import certified, fresh, invalid, on_machine, untouched

COMPANY = {"clientType": "PM", "ifu": "00012345X", "name": "SARL du Faso"}


def codes(receipt: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in receipt["warnings"]]


def credit(shop: Shop, **changes: Any) -> Any:
    body = {**invoice(fresh(), 500), "invoiceType": "FA", **changes}
    return shop.certify(body, path="credit-note")


def strict(shop: Shop, body: dict[str, Any], path: str = "certify") -> Any:
    return shop.certify(body, path=path, headers={"Mcfd-Strict": "true"})


@pytest.mark.parametrize(
    ("kind", "customer", "field"),
    [
        ("FV", {"clientType": "PP"}, "customer.name"),
        ("FT", {**COMPANY, "ifu": "1"}, "customer.ifu"),
        ("FV", {**COMPANY, "clientType": "PC", "ifu": "00012345x"}, "customer.ifu"),
        ("EV", {**COMPANY, "ifu": "FR 40 303 265 045"}, None),
        ("ET", {**COMPANY, "ifu": "1"}, None),
    ],
)
def test_decision_35_who_the_customer_is(shop: Shop, kind: str, customer: dict[str, str], field: str | None) -> None:
    """PP has a name, PM and PC an IFU of the official form in a local sale; any in an export."""
    body = invoice(fresh(), 500, invoiceType=kind, customer=customer)
    if field is None:
        certified(shop.certify(body))
        return
    with untouched(shop):
        assert [*invalid(shop.certify(body))] == [field]


def test_the_nature_of_a_credit_note_is_chosen(shop: Shop) -> None:
    """SFE 2.28, 2.29: left out it is assumed and said, refused under strict; RRR is a nature and a reference, or neither."""
    sale = certified(shop.certify(invoice(fresh(), 5000)))
    reference = f"{sale['nim']}-{sale['fvc']}"
    assert codes(certified(credit(shop, creditNoteRef=reference))) == ["CREDIT_NOTE_NATURE_ASSUMED"]
    assert codes(certified(credit(shop, creditNoteRef=reference, creditNoteNature="RAM"))) == []
    assert certified(credit(shop, creditNoteRef="RRR", creditNoteNature="RRR"))["invoiceType"] == "FA"
    wrong = [
        ({"creditNoteRef": reference, "creditNoteNature": "RRR"}, "creditNoteRef"),
        ({"creditNoteRef": "RRR", "creditNoteNature": "COR"}, "creditNoteNature"),
    ]
    with untouched(shop):
        for fields, field in wrong:
            assert [*invalid(credit(shop, **fields))] == [field]
        body = {**invoice(fresh(), 500), "invoiceType": "FA", "creditNoteRef": reference}
        assert [*invalid(strict(shop, body, "credit-note"))] == ["creditNoteNature"]


def test_decision_41_a_specific_tax_on_a_price_without_tax(shop: Shop) -> None:
    """SFE 6.9: (2 × 1 000 + 100) with 18 % is 2 478, certified with its tax at the till's own price."""
    item = {"name": "Bière", "taxGroup": "B", "unitPrice": 1000, "quantity": 2, "amountTtc": 2478}
    taxed = {**item, "specificTax": 100, "specificTaxRate": 50}
    pay = [{"method": "E", "amount": 2478}]
    receipt = certified(shop.certify(invoice(fresh(), items=[taxed], payments=pay, priceMode="HT")))
    assert (receipt["totalTtc"], receipt["specificTax"], receipt["warnings"]) == (2478, 100, [])
    (line,) = on_machine(shop.machines[0], receipt)["lines"]
    assert (line["price"], line["amount"], line["tax"]) == (100_000, 2100, 10_000)


def test_decision_24_the_machine_gets_prices_and_amounts_without_vat(shop: Shop) -> None:
    """PMODE HT; VAT is computed on the group's total: 3 × 333 HT are 999, with 18 % 1 178.82 → 1 179."""
    item = {"name": "Boisson", "taxGroup": "B", "unitPrice": 333, "quantity": 1}
    pay = [{"method": "E", "amount": 1179}]
    receipt = certified(shop.certify(invoice(fresh(), items=[item] * 3, payments=pay, priceMode="HT")))
    machine_data = on_machine(shop.machines[0], receipt)
    assert machine_data["opening"]["price_mode"] == "HT"
    assert [(line["price"], line["amount"]) for line in machine_data["lines"]] == [(33_300, 333)] * 3
    assert [(t["group"], t["ht"], t["tva"], t["ttc"]) for t in receipt["taxDetails"]] == [("B", 999, 180, 1179)]
    assert receipt["totalTtc"] == machine_data["total"] == 1179


def test_what_is_certified_otherwise_than_it_was_sent_is_said(shop: Shop) -> None:
    """SFE 2.4, 6.1, 6.5: a derived price, a rounded amount, a text that the machine cuts; the first and the last are a 422 under strict."""
    derived = {"name": "Riz", "taxGroup": "B", "unitPrice": 1000, "quantity": 3, "amountTtc": 5000}
    rounded = {"name": "Sel", "taxGroup": "B", "unitPrice": 333.33, "quantity": 3}
    cut = {"name": "é" * 200, "taxGroup": "B", "amountTtc": 1000}
    body = invoice(fresh(), items=[derived, rounded, cut], payments=[{"method": "E", "amount": 7000}])
    with untouched(shop):
        assert [*invalid(strict(shop, body))] == ["items[0].unitPrice", "items[2].name"]
    receipt = certified(shop.certify(body))
    assert codes(receipt) == ["UNIT_PRICE_DERIVED", "AMOUNT_ROUNDED", "TEXT_CUT"]
    machine_data = on_machine(shop.machines[0], receipt)["lines"][2]["name"]
    request = shop.get(f"certifications/{receipt['codeSecef']}").json()["request"]["items"]
    assert request[2]["name"] == machine_data
    assert request[0]["tillPrice"] == 1000


THEN = {"cadastral": "12340560078", "regime": "RNI", "accounts": ["BF074 1"], "tax_office": "DME Centre I"}
NOW = {"cadastral": "99999999999", "regime": "RSI", "accounts": ["BF074 2"], "tax_office": "DME Centre II"}


TABLES = """
[reports.payment_labels]
A = "Crédit client"
[invoices.comment_names]
C = "Bon de commande"
[invoices.nature_names]
RAM = "Marchandises rendues"
[invoices.client_names]
CC = "Passant"
[invoices.psvb_rates]
B = "3"
"""


def test_the_tables_of_the_shop_are_what_is_printed(own_shop: Shop) -> None:
    """SFE 2.35: names of payments, comments, natures and customers, and the rates of the withholding, are those of the configuration."""
    shop = own_shop
    shop.stop_daemon()
    shop.more_config = TABLES
    shop.start_daemon()
    more = {
        "comments": [{"label": "C", "text": "BC-17"}],
        "psvbGroup": "B",
        "payments": [{"method": "A", "amount": 15000}],
    }
    sale = certified(shop.certify(invoice("P-1", **more)))
    paper = shop.get(f"certifications/{sale['codeSecef']}/ticket").text
    assert "Bon de commande" in paper
    assert "[CC] Passant" in paper
    assert "Crédit client" in paper
    assert sale["psvb"]["amount"] == 450
    assert shop.x_with(1)["psvb"] == [sale["psvb"]]
    credit = invoice("P-2", invoiceType="FA", creditNoteNature="RAM", creditNoteRef=f"{NIM}-{sale['fvc']}")
    code = certified(shop.certify(credit, path="credit-note"))["codeSecef"]
    assert "Marchandises rendues" in shop.get(f"certifications/{code}/ticket").text
    shop.x_with(2)
    assert "RAM Marchandises rendues (1)" in shop.get("reports/x/ticket").text


def test_a_copy_is_its_original(tmp_path: Path) -> None:
    """0047 art. 23, SFE 3 x: an invoice and a Z are printed with the letterhead, the ISF and the words of then, whatever the configuration says since."""
    with running_shop(tmp_path, config={"company": THEN}, per_machine={"isf": "BF-SFE-1"}) as shop:
        code = certified(shop.certify(invoice("L-1")))["codeSecef"]
        other = certified(shop.certify(invoice("L-2", isf="BF-SFE-777")))["codeSecef"]
        shop.get("info")
        shop.close_period()
        paths = [f"certifications/{code}/ticket", "reports/z/1/ticket"]
        before = [shop.get(path).text for path in paths]
        assert "Réf. cadastrale" in before[0]
        assert "BF-SFE-777" in shop.get(f"certifications/{other}/ticket").text
        assert "BF-SFE-1, BF-SFE-777" in before[1]
        shop.stop_daemon()
    with Shop(tmp_path, config={"company": NOW}, per_machine={"isf": "BF-SFE-2"}) as shop:
        shop.more_config = '[reports.payment_labels]\nE = "Liquide"\n'
        shop.start()
        again = [shop.get(path).text for path in paths]
        assert [after.splitlines()[1:] for after in again] == [text.splitlines()[1:] for text in before]
        today = shop.get("reports/x/ticket").text
        assert "DME Centre II" in today
        code = certified(shop.certify(invoice("L-3")))["codeSecef"]
        assert "Liquide" in shop.get(f"certifications/{code}/ticket").text
        shop.stop_daemon()
        shop.verify()
