"""The register of outages over HTTP (arrêté 2025-0049, articles 6 and 7; decision 36)."""

from typing import Any

import httpx
import pytest
from support.shop import NIM, Shop, invoice, wait_for
from support.till import fresh


def outages(shop: Shop, **query: str) -> list[dict[str, Any]]:
    answer = shop.get("outages", **query)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert body["count"] == len(body["outages"])
    assert body["nim"] == NIM
    return body["outages"]


def notify(shop: Shop, number: int, *, key: str = "", **body: str) -> httpx.Response:
    return shop.certify(body, key=key, path=f"outages/{number}/notified")


def refused(shop: Shop) -> None:
    assert shop.certify(invoice(fresh())).status_code == 503


@pytest.fixture
def out(own_shop: Shop) -> Shop:
    """A shop whose machine has died, and whose till was refused."""
    own_shop.machines[0].kill()
    wait_for(lambda: not own_shop.is_ready(), "the machine's death")
    assert outages(own_shop) == []
    refused(own_shop)
    wait_for(lambda: outages(own_shop), "the outage")
    return own_shop


def test_a_sale_of_a_till_that_does_not_wait_begins_the_outage(own_shop: Shop) -> None:
    """No till is ever refused where all of them ask with Prefer: respond-async: the first sale that cannot be certified is in the outage."""
    own_shop.machines[0].kill()
    wait_for(lambda: not own_shop.is_ready(), "the machine's death")
    key = fresh()
    assert own_shop.certify(invoice(fresh()), key=key, headers={"Prefer": "respond-async"}).status_code == 202
    (outage,) = outages(own_shop)
    assert outage["sales"] == {"count": 1, "total": 15000}
    own_shop.machines[0].start()
    found = wait_for(
        lambda: (body := own_shop.get(f"requests/{key}").json())["status"] == "certified" and body, "the certification"
    )
    deferred = found["receipt"]["deferred"]
    assert (deferred["outage"], deferred["reason"]) == (outage["id"], outage["reason"])


def test_a_declaration_is_ready_to_be_signed(out: Shop) -> None:
    """In French, with what the law asks for; as text, as a page and as a PDF."""
    notify(out, 1, who="administration", reference="DGI-118")
    answer = out.get("outages/1/declaration")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    result = " ".join(answer.text.split())
    for part in (
        "DÉCLARATION DE DYSFONCTIONNEMENT",
        "article 7 c",
        "Panne n° 1",
        NIM,
        "dure encore",
        "DGI-118",
        "Signature",
    ):
        assert part in result, result
    assert out.get("outages/1/declaration", format="pdf").content.startswith(b"%PDF")
    assert "<html" in out.get("outages/1/declaration", format="html").text
    assert out.get("outages/9/declaration").status_code == 404
    assert out.get("outages", mode="test").json()["outages"] == []  # a sandbox is never out of order
