"""The published client `avepay-mcf`, unchanged, pointed at mcfd: it notices nothing but speed."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from support.published import OPERATOR, Published, machine_record, sale
from support.shop import IFU, NIM, Shop, wait_for
from support.till import fresh


def test_a_receipt_has_everything_the_client_reads(shop: Shop, client: Published) -> None:
    """The quickstart of its page: every field of `Receipt` is there with its type, the rate from the label too."""
    began = time.monotonic()
    receipt = client(
        "certify",
        number=fresh(),
        type="FV",
        operator=OPERATOR,
        customer={"type": "PP", "name": "Client Comptant"},
        items=[
            {"name": "Riz 25kg", "tax_group": "B", "unit_price": 15000, "quantity": 1},
            {"name": "Pain", "tax_group": "A", "unit_price": 150, "quantity": 4},
        ],
        payments=[{"method": "cash", "amount": 15600}],
    )
    most = (time.monotonic() - began) * 1000 + 1
    entry = machine_record(shop, receipt)
    assert (receipt.total_ttc, receipt.invoice_type, receipt.invoice_number) == (15600, "FV", entry["number"])
    assert (receipt.nim, receipt.nim_short, receipt.ifu) == (NIM, NIM.partition("-")[0], IFU)
    assert receipt.date_time == datetime.strptime(entry["time"], "%Y%m%d%H%M%S")  # noqa: DTZ007  as the client has it
    assert (receipt.counters.tc, receipt.counters.fvc, receipt.counters.frc) == (
        entry["tc"],
        entry["fvc"],
        entry["frc"],
    )
    assert receipt.qr == f"BFSECEF01;{receipt.nim_short};{receipt.sig};{IFU};{entry['time']}"
    assert [(line.group, line.rate, line.ht, line.tva, line.ttc) for line in receipt.tax] == [
        ("A", 0.0, 600, 0, 600),
        ("B", 18.0, 12712, 2288, 15000),
    ]
    assert 0 < receipt.duration_ms <= most
    assert shop.get(f"certifications/{receipt.sig}").json()["receipt"]["warnings"] == []
    assert entry["opening"]["operator_id"] == "1"
    assert entry["opening"]["isf"] == "SFE-1"


def test_every_payment_alias(shop: Shop, client: Published) -> None:
    """cash, transfer, card, mobile, cheque, other arrive as E, V, C, M, B, A."""
    aliases = ("cash", "transfer", "card", "mobile", "cheque", "other")
    receipt = client("certify", **sale(600, payments=[{"method": alias, "amount": 100} for alias in aliases]))
    assert [entry["method"] for entry in machine_record(shop, receipt)["payments"]] == list("EVCMBA")


def test_comments(shop: Shop, client: Published) -> None:
    """Plain strings, which the client sends without a label, take the next free letters; labelled ones keep theirs."""
    receipt = client("certify", **sale(comments=["Merci", {"label": "A", "text": "Bonjour"}, "À bientôt"]))
    comments = [(entry["label"], entry["text"]) for entry in machine_record(shop, receipt)["comments"]]
    assert sorted(comments) == [("A", "Bonjour"), ("C", "Merci"), ("D", "À bientôt")]


def test_specific_tax(shop: Shop, client: Published) -> None:
    """One that holds is certified separately, one that does not is folded and told in `raw`."""
    item = {"name": "Boisson", "tax_group": "B", "unit_price": 1050, "quantity": 2, "amount_ttc": 2218}
    item |= {"specific_tax": 100, "specific_tax_rate": 50, "specific_tax_desc": "Taxe boisson"}
    paid = [{"method": "cash", "amount": 2218}]
    receipt = client("certify", **sale(items=[item], payments=paid))
    line = machine_record(shop, receipt)["lines"][0]
    assert (line["tax"], line["unit_tax"], line["tax_name"]) == (10_000, 5000, "Taxe boisson")
    folded = client("certify", **sale(items=[{**item, "specific_tax": 99}], payments=paid))
    assert (folded.total_ttc, folded.raw["specificTax"]) == (2218, 0)
    assert [warning["code"] for warning in folded.raw["warnings"]] == ["SPECIFIC_TAX_FOLDED"]


CUSTOMERS = [
    {"type": "CC"},
    {"type": "PP", "name": "Issa Ouédraogo", "phone": "70 00 00 00"},
    {
        "type": "PM",
        "ifu": "00012345X",
        "name": "Faso & Fils",
        "address": "Rue 1, Ouaga",
        "email": "a@b.bf",
        "rccm": "BF-1",
    },
    {"clientType": "PC", "ifu": "00012346X", "name": "Zoé"},
]


@pytest.mark.parametrize("customer", CUSTOMERS, ids=["CC", "PP", "PM", "PC"])
def test_customers(shop: Shop, client: Published, customer: dict[str, str]) -> None:
    """With whatever the client passes on: address, phone, e-mail, trade register."""
    entry = machine_record(shop, client("certify", **sale(customer=customer)))["customer"]
    kind = customer.get("type") or customer["clientType"]
    assert (entry["type"], entry["ifu"], entry["name"]) == (kind, customer.get("ifu", ""), customer.get("name", ""))
    contact = entry["contact"] or [""] * 4
    assert contact == [customer.get(name, "") for name in ("address", "phone", "email", "rccm")]


def test_the_raw_names_too(shop: Shop, client: Published) -> None:
    """A dict in the API's own words instead of the friendly ones."""
    raw = {
        "invoiceNumber": fresh(),
        "invoiceType": "FT",
        "priceMode": "TTC",
        "operatorId": "9",
        "operatorName": "Zoé",
        "isf": "SFE-2",
        "customer": {"clientType": "CC"},
        "items": [{"name": "Acompte", "taxGroup": "A", "unitPrice": 500, "amountTtc": 500}],
        "payments": [{"method": "B", "amount": 500}],
        "psvbGroup": "B",
    }
    receipt = client("certify", invoice=raw)
    assert (receipt.invoice_type, receipt.raw["psvb"]["amount"]) == ("FT", 5)
    assert machine_record(shop, receipt)["opening"]["isf"] == "SFE-2"


# -- credit notes -------------------------------------------------------------------------------------------------------


def test_a_credit_note_of_a_receipt(shop: Shop, client: Published) -> None:
    """`from_` a receipt makes the reference `{NIM}-{FVC}`; nature COR by default; its counter is FRC."""
    receipt = client("certify", **sale(15000))
    credit = client("credit_note", from_=receipt, **sale(5000))
    entry = machine_record(shop, credit)
    assert (credit.invoice_type, credit.total_ttc) == ("FA", 5000)
    assert (entry["opening"]["reference"], entry["opening"]["nature"]) == (f"{NIM}-{receipt.counters.fvc}", "COR")
    assert credit.counters.frc == entry["frc"]


@pytest.mark.parametrize("nature", ["RAM", "RRR"])
def test_the_natures(shop: Shop, client: Published, nature: str) -> None:
    """Given with a reference, or with `RRR` for a rebate on nothing in particular."""
    receipt = client("certify", **sale(100))
    reference = "RRR" if nature == "RRR" else f"{NIM}-{receipt.counters.fvc}"
    credit = client("credit_note", **sale(100), credit_note_nature=nature, credit_note_ref=reference, type="FA")
    assert machine_record(shop, credit)["opening"]["nature"] == nature


# -- the rest of it -----------------------------------------------------------------------------------------------------


def live(shop: Shop, info: Any) -> Any:
    """That, if it is what the machine has counted."""
    counters = info.counters
    return info if (counters.tc, counters.fvc, counters.frc) == shop.machines[0].counters else None


def test_info(shop: Shop, client: Published) -> None:
    """Machine, counters and merchant, read live: no older than a second."""
    info = wait_for(lambda: live(shop, client("info")), "the counters of the machine")
    assert (info.nim, info.nim_short, info.ifu, info.mode) == (NIM, NIM.partition("-")[0], IFU, "live")
    assert abs((info.date_time.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()) < 5
    merchant = info.merchant
    assert all((merchant.commercial_name, merchant.address, merchant.city, merchant.zone, merchant.email))
    assert info.read_at.endswith("Z")


def test_me(shop: Shop, client: Published) -> None:
    """Whose key it is, and whether its machine answers."""
    expected = {"id": "", "label": "till", "mode": "live", "nim": NIM, "connected": True}
    assert {**client("me"), "id": ""} == {**expected, "role": "manager", "expiresAt": None}


def test_cancel_pending(shop: Shop, client: Published) -> None:
    """Nothing is open: said, and not an error (the client posts without a body)."""
    result = client("cancel_pending")
    assert (result.was_pending, bool(result.message)) == (False, True)


def test_the_sandbox(shop: Shop, client: Published) -> None:
    """The same client with a test key."""
    key = shop.key("test")
    receipt = client("certify", key=key, **sale())
    assert receipt.sig.startswith("TESTFACT")
    assert client("info", key=key).mode == "test"
    assert client("credit_note", key=key, from_=receipt, **sale()).invoice_type == "FA"


# -- webhooks -----------------------------------------------------------------------------------------------------------
