"""Cash put into the drawer and taken out, over HTTP (decision 34)."""

import csv
import io
import json
from typing import Any

import httpx
from support.shop import Shop, invoice

BODY = {"kind": "deposit", "amount": 20_000, "reason": "Fond de caisse"}


def move(shop: Shop, body: Any, *, key: str = "", **headers: str) -> httpx.Response:
    return shop.certify(body, key=key, path="cash", headers=headers)


def journal_lines(shop: Shop, **query: str) -> list[Any]:
    return [json.loads(line) for line in shop.get("certifications", format="jsonl", **query).text.splitlines()]


def test_cash_stands_in_x_z_and_a_and_never_at_the_machine(own_shop: Shop) -> None:
    """Deposits and withdrawals count beside what was paid in cash; the machine's counters do not move; the Z keeps them. In the
    files of the journal each stands in its place and its Z, and adds to no total; who asks for one state gets no cash."""
    counters = own_shop.machines[0].counters
    answer = move(own_shop, BODY, key="cash-1")
    assert answer.status_code == 201, answer.text
    content = answer.json()
    assert (content["kind"], content["amount"], content["operatorId"], content["warnings"]) == (
        "deposit",
        20_000,
        "1",
        [],
    )
    again = move(own_shop, BODY, key="cash-1")
    assert (again.json(), again.headers["idempotency-replayed"]) == (content, "true")
    assert move(own_shop, {**BODY, "amount": 1}, key="cash-1").json()["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert own_shop.machines[0].counters == counters
    move(own_shop, {"kind": "withdrawal", "amount": 5_000, "reason": "Banque", "operatorId": 7})
    own_shop.certify(invoice("C-1"))
    expected = {"deposits": 20_000, "withdrawals": 5_000, "expected": 30_000}
    assert own_shop.x_with(1)["cash"] == expected
    assert own_shop.get("reports/a").json()["cash"] == expected
    listed = own_shop.get("cash").json()
    assert (listed["deposits"], listed["withdrawals"], listed["count"]) == (20_000, 5_000, 2)
    assert own_shop.get("cash", after=listed["movements"][0]["id"]).json()["movements"] == listed["movements"][1:]
    assert own_shop.close_period().json()["cash"] == expected
    assert own_shop.get("reports/x").json()["cash"] == {"deposits": 0, "withdrawals": 0, "expected": 0}
    assert [(line["state"], line["zNumber"]) for line in journal_lines(own_shop)] == [
        ("deposit", 1),
        ("withdrawal", 1),
        ("certified", 1),
    ]
    table = list(csv.DictReader(io.StringIO(own_shop.get("certifications", format="csv").text)))
    assert [(row["state"], row["cash"], row["totalTtc"]) for row in table] == [
        ("deposit", "20000", ""),
        ("withdrawal", "-5000", ""),
        ("certified", "", "15000"),
    ]
    sheet = own_shop.get("certifications", format="csv", dialect="excel-fr").content.decode("utf-8-sig")
    first, *_ = csv.DictReader(io.StringIO(sheet), delimiter=";")
    assert (first["État"], first["Mouvement de caisse"], first["Motif"]) == ("dépôt", "20000", "Fond de caisse")
    assert len(journal_lines(own_shop, state="certified")) == 1
    ticket = own_shop.get("reports/z/1/ticket", lang="fr").text.replace("\N{NO-BREAK SPACE}", " ")
    assert "Attendu en caisse" in ticket
    own_shop.verify()
