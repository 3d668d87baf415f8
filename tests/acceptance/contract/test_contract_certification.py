"""The service contract, "Resources and their fields" and "Endpoints": the certify request and its answer, over HTTP on a real line."""

import json
import re
from typing import Any

import pytest
from support.shop import IFU, NIM, Shop, invoice
from support.till import certified, fresh, on_machine, problem, untouched

from daemon.api.service import API_ROUTES

FULL = {
    "invoiceType": "FV",
    "priceMode": "TTC",
    "operatorId": "7",
    "operatorName": "Awa",
    "isf": "SFE-9",
    "customer": {"clientType": "PM", "ifu": "00012345X", "name": "Faso Négoce SARL"},
    "items": [
        {
            "name": "Riz, 25 kg <brisé> & parfumé",
            "itemType": "LOCBIE",
            "taxGroup": "B",
            "taxRate": 18,
            "unitPrice": 15000,
            "quantity": 2,
            "amountTtc": 30000,
        },
        {"name": "Pain", "itemType": "LOCBIE", "taxGroup": "A", "taxRate": 0, "unitPrice": 150, "quantity": 4},
    ],
    "payments": [{"method": "E", "amount": 20000}, {"method": "M", "amount": 10600}],
}


def test_every_field_of_the_request_reaches_the_machine(shop: Shop) -> None:
    """Operator, ISF, customer, items and payments are certified as the till wrote them, in the machine's own words."""
    number = fresh()
    machine_data = on_machine(shop.machines[0], certified(shop.certify({"invoiceNumber": number, **FULL})))
    opening = {"operator_id": "7", "operator_name": "Awa", "isf": "SFE-9", "number": number, "type": "FV"}
    assert {**machine_data["opening"], **opening, "price_mode": "TTC", "ifu": IFU} == machine_data["opening"]
    assert machine_data["customer"]["type"] == "PM"
    assert (machine_data["customer"]["ifu"], machine_data["customer"]["name"]) == ("00012345X", "Faso Négoce SARL")
    assert [(line["name"], line["item_type"], line["group"], line["rate"]) for line in machine_data["lines"]] == [
        ("Riz, 25 kg <brisé> & parfumé", "LOCBIE", "B", 1800),
        ("Pain", "LOCBIE", "A", 0),
    ]
    assert [(line["amount"], line["price"], line["quantity"]) for line in machine_data["lines"]] == [
        (30000, 1_500_000, 2000),
        (600, 15000, 4000),
    ]
    assert [(paid["method"], paid["amount"]) for paid in machine_data["payments"]] == [
        ("E", 2_000_000),
        ("M", 1_060_000),
    ]


def test_the_six_payment_methods_go_to_the_machine_as_they_come(shop: Shop) -> None:
    """`method` is one of E, V, C, M, B, A, passed on unchanged."""
    body = invoice(fresh(), 600, payments=[{"method": method, "amount": 100} for method in "EVCMBA"])
    paid = on_machine(shop.machines[0], certified(shop.certify(body)))["payments"]
    assert [each["method"] for each in paid] == list("EVCMBA")


NOTIFIED = json.dumps({"who": "distributor", "reference": "1"}).encode()


def post(shop: Shop, content: bytes, path: str = "certify") -> Any:
    headers = {**shop.headers(), "Content-Type": "application/json"}
    return shop.http.post(f"/v1/mcf/{NIM}/{path}", content=content, headers=headers)


@pytest.mark.parametrize("path", sorted(path for route in API_ROUTES for path in route.paths if ":int}" in path))
def test_a_number_in_a_path_that_no_row_has(shop: Shop, path: str) -> None:
    """404, also beyond 64 bits: nothing of that number is there."""
    methods = next(route.http_methods for route in API_ROUTES if path in route.paths)
    path = re.sub(r"\{\w+:int\}", "9" * 30, path)
    with untouched(shop):
        problem(post(shop, NOTIFIED, path) if "POST" in methods else shop.get(path), 404, "NOT_FOUND")


def test_a_z_with_a_bad_body_closes_nothing(shop: Shop) -> None:
    """400, and no number is used."""
    with untouched(shop):
        problem(post(shop, b"[]", "reports/z"), 400, "INVALID_JSON")
