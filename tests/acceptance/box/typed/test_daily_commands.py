"""The command line beside a running daemon: what it asks of it, and what keys are made with."""

import json

import pytest
from support.shop import NIM, Shop, invoice


def listed(shop: Shop) -> dict[str, object]:
    (machine,) = json.loads(shop.mcfd("machine", "list", "--json", check=True).stdout)
    return machine


def test_the_machines_as_they_are_now(shop: Shop) -> None:
    """`machine list` and `machine info` ask the running daemon, which has the port: ready, with the invoice that was certified last."""
    fvc = shop.certify(invoice("D-1")).json()["fvc"]
    machine = listed(shop)
    assert (machine["condition"], machine["last_invoice"]) == ("ready", "D-1")
    content = json.loads(shop.mcfd("machine", "info", "EL02000015", "--json", check=True).stdout)
    assert (content["source"], content["live"]["connected"], content["ledger"]["counters"]["fvc"]) == (
        "daemon",
        True,
        fvc,
    )
    assert "ready" in shop.mcfd("machine", "info").stdout


@pytest.fixture
def strict_key(shop: Shop) -> str:
    return shop.mcfd("keys", "create", "--nim", NIM, "--strict", check=True).stdout.strip()


def test_a_strict_key_refuses_what_nobody_knows(shop: Shop, strict_key: str) -> None:
    """As with the header `Mcfd-Strict`, on each of its requests; other keys are only warned."""
    body = {**invoice("D-2"), "price_mode": "TTC"}
    refused = shop.certify(body, headers={"Authorization": f"Bearer {strict_key}"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "price_mode")
    assert shop.certify(body).status_code == 200
    keys = json.loads(shop.mcfd("keys", "list", "--json", check=True).stdout)
    assert sorted(key["strict"] for key in keys) == [False, True]
