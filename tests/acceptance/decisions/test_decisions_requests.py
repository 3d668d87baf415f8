"""Decisions 1 to 3, and 5 to 7: what a request has to say, what it may leave out, and what a repeat of it gets."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.receivers.receipt_printer import ReceiptPrinter
from support.shop import NIM, Mode, Shop, invoice, running_shop, wait_for
from support.till import certified, fresh, invalid, on_machine, problem, untouched

ITEM = {"name": "Riz", "taxGroup": "B", "unitPrice": 1000}
PAID = {"method": "E", "amount": 1000}
MINIMAL = {"invoiceType": "FV", "items": [ITEM], "payments": [PAID]}


def minimal(**changes: Any) -> dict[str, Any]:
    return {"invoiceNumber": fresh(), **MINIMAL, **changes}


def item(**changes: Any) -> dict[str, Any]:
    """The minimal invoice with its item changed; a change to None leaves the field out."""
    merged = {**ITEM, **changes}
    return minimal(items=[{name: value for name, value in merged.items() if value is not None}])


def test_decision_1_the_least_that_is_certified(shop: Shop) -> None:
    """Number, type, one item with name, group and an amount, one payment; the rest are the defaults of the page."""
    machine_data = on_machine(shop.machines[0], certified(shop.certify(minimal())))
    opening = machine_data["opening"]
    assert (opening["price_mode"], opening["operator_id"], opening["operator_name"], opening["isf"]) == (
        "TTC",
        "1",
        "Caisse 1",
        "1",
    )
    assert machine_data["customer"]["type"] == "CC"
    line = machine_data["lines"][0]
    assert (line["item_type"], line["rate"], line["quantity"], line["amount"]) == ("LOCBIE", 1800, 1000, 1000)


REFUSED = {
    "no items": (minimal(items=[]), "items"),
    "an amount that is not whole": (minimal(items=[{**ITEM, "amountTtc": 1000.5}]), "items[0].amountTtc"),
    "payments below the total": (minimal(payments=[{**PAID, "amount": 999}]), "payments"),
    "a number too long": (minimal(invoiceNumber="F" * 41), "invoiceNumber"),
    "NUL in the operator": (minimal(operatorName="A\x00"), "operatorName"),
}
"""One of each kind; all of them are in test_core_intake.py and test_core_items.py."""


@pytest.mark.parametrize("case", REFUSED)
def test_decision_3_what_is_refused(shop: Shop, case: str) -> None:
    """422 that names the field; the machine is not even asked, and the ledger has no trace of it."""
    body, field = REFUSED[case]
    with untouched(shop):
        faults = invalid(shop.certify(body))
    assert field in faults, faults


def test_decision_5_a_number_is_certified_once_per_nim(shop: Shop) -> None:
    """409 with the certification it had, for any other invoice of that number too; the sandbox has numbers of its own."""
    number = fresh()
    receipt = certified(shop.certify(invoice(number)))
    for body in (invoice(number), invoice(number, 1), invoice(number, invoiceType="FT")):
        with untouched(shop):
            assert problem(shop.certify(body), 409, "DUPLICATE_INVOICE")["certification"] == receipt
    assert certified(shop.certify(invoice(number), mode="test"))["codeSecef"] != receipt["codeSecef"]


def test_decision_5_five_tills_with_one_number(shop: Shop) -> None:
    """At the same moment and without a key: one is certified, four get a 409 that names it."""
    body, before = invoice(fresh()), shop.machines[0].counters
    with ThreadPoolExecutor(5) as tills:
        answers = list(tills.map(lambda _: shop.certify(body), range(5)))
    (receipt,) = [answer.json() for answer in answers if answer.status_code == 200]
    rows = [problem(answer, 409, "DUPLICATE_INVOICE") for answer in answers if answer.status_code != 200]
    assert [body["certification"] for body in rows] == [receipt] * 4
    assert shop.machines[0].counters[1] == before[1] + 1


def _posts() -> dict[str, tuple[str, dict[str, object]]]:
    return {
        "certify": ("certify", invoice(fresh())),
        "z": ("reports/z", {}),
        "cancel": ("cancel-pending", {}),
        "cash": ("cash", {"kind": "deposit", "amount": 500, "reason": "float"}),
    }


@pytest.mark.parametrize("kind", [*_posts()])
def test_decision_26_a_key_belongs_to_the_book_and_not_to_the_spelling_of_its_nim(shop: Shop, kind: str) -> None:
    """The same key and body under the NIM without its activation counter, or with another one, is the same request."""
    path, body = _posts()[kind]
    headers, short = shop.headers(key=fresh()), NIM.partition("-")[0]
    first = shop.http.post(f"/v1/mcf/{short}-7/{path}", json=body, headers=headers)
    assert first.is_success, first.text
    with untouched(shop):
        for nim in (NIM, short, f"{short}-2"):
            again = shop.http.post(f"/v1/mcf/{nim}/{path}", json=body, headers=headers)
            assert (again.status_code, again.content) == (first.status_code, first.content)
            assert again.headers["idempotency-replayed"] == "true"
        other = shop.http.post(f"/v1/mcf/{short}/{path}", json={**body, "more": 1}, headers=headers)
        problem(other, 409, "IDEMPOTENCY_KEY_REUSED")


def _every_post(shop: Shop, document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], Mode]]:
    """Operation id, path, a body that is accepted, and mode, in an order in which each has what it needs."""
    places = {
        op["post"]["operationId"]: path.removeprefix("/v1/mcf/{nim}/")
        for path, op in document["paths"].items()
        if "post" in op
    }
    filled = {"{z}": "1", "{number}": "1", "{outage}": "1", "{period}": "1"}

    def take(name: str, body: dict[str, Any], mode: Mode = "test") -> tuple[str, str, dict[str, Any], Mode]:
        path = places.pop(name)
        for part, value in filled.items():
            path = path.replace(part, value)
        return name, path, body, mode

    filled["{code}"] = certified(shop.certify(invoice(fresh()), mode="test"))["codeSecef"]
    yield take("certify_invoice", invoice(fresh()))
    credit = {"invoiceType": "FA", "creditNoteNature": "RAM", "creditNoteRef": f"{NIM}-1"}
    yield take("certify_credit_note", {**invoice(fresh()), **credit})
    yield take("close_period", {})
    yield take("close_articles_report", {})
    yield take("move_test_clock", {"days": 400})
    yield take("close_month", {})
    yield take("close_year", {"period": shop.get("reports/year", mode="test").json()["reports"][0]["period"]})
    yield take("move_cash", {"kind": "deposit", "amount": 500, "reason": "float"})
    yield take("cancel_pending_invoice", {})
    for name in [each for each in places if each.startswith("print_")]:
        yield take(name, {})
    shop.machines[0].kill()
    wait_for(lambda: not shop.is_ready(), "the machine's death")
    assert shop.certify(invoice(fresh())).status_code == 503
    wait_for(lambda: shop.get("outages").json()["outages"], "the outage")
    yield take("note_outage_notified", {"who": "administration", "reference": "DGI-1"}, "live")
    assert not places, "a POST that is not tested here"


def test_decision_6_every_post_has_the_key(tmp_path: Path) -> None:
    """Each POST of the OpenAPI document names the header, answers a repeat with its first answer, and refuses the key with another body. What was printed
    is not printed again, nor with the key under another query."""
    with ReceiptPrinter() as printer, running_shop(tmp_path, config={"printer": {"address": printer.address}}) as shop:
        document = shop.http.get("/openapi.json").json()
        for name, path, body, mode in _every_post(shop, document):
            send = partial(shop.certify, key=name, mode=mode, path=path)
            first = send(body)
            assert first.is_success, (name, first.text)
            assert "idempotency-replayed" not in first.headers, name
            printed = len(printer.jobs)
            again = send(body)
            assert (again.status_code, again.content) == (first.status_code, first.content), name
            assert again.headers["idempotency-replayed"] == "true", name
            problem(send({**body, "more": 1}), 409, "IDEMPOTENCY_KEY_REUSED")
            if name.startswith("print_"):
                problem(send(body, lang="en"), 409, "IDEMPOTENCY_KEY_REUSED")
            assert len(printer.jobs) == printed, name
        posts = [each["post"] for each in document["paths"].values() if "post" in each]
        for each in posts:
            assert "Idempotency-Key" in {parameter["name"] for parameter in each["parameters"]}, each["operationId"]
            assert "409" in each["responses"], each["operationId"]


def test_decision_6_a_repeat_in_other_bytes_is_the_same_request(shop: Shop) -> None:
    """A till that builds its request anew after a restart, or keeps it in a database, may write names in another order and numbers in another way: it gets
    its receipt. It was 409, and the till took another number and key for the sale."""
    body, headers = invoice(fresh()), shop.headers(key=fresh())
    url = f"/v1/mcf/{NIM}/certify"
    first = shop.http.post(url, json=body, headers=headers)
    certified(first)
    with untouched(shop):
        reordered = json.dumps(dict(reversed(body.items())), indent=1)
        again = shop.http.post(url, content=reordered, headers={**headers, "Content-Type": "application/json"})
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["idempotency-replayed"] == "true"


def test_decision_6_a_repeat_waits_for_the_first(shop: Shop) -> None:
    """While the first is still on the line, its twins wait and get its answer; one invoice is certified."""
    machine, body, key = shop.machines[0], invoice(fresh()), fresh()
    before = machine.counters
    machine.order("pause-at", next=6, when="before", direction="in")
    with ThreadPoolExecutor(5) as tills:
        first = tills.submit(shop.certify, body, key=key)
        wait_for(machine.is_stopped, "38h")
        answers = [first, *(tills.submit(shop.certify, body, key=key) for _ in range(4))]
        assert not wait(answers, timeout=0.2).done
        machine.order("resume")
        contents = {answer.result().content for answer in answers}
    assert contents == {first.result().content}
    certified(first.result())
    assert machine.counters == (before[0] + 1, before[1] + 1, before[2])


def test_unknown_fields_are_told_or_refused(shop: Shop) -> None:
    """27: a misspelt field is a warning of a certified invoice, kept with it; with `Mcfd-Strict: true` a 422, and nothing is sent."""
    body = invoice("U-1", price_mode="TTC")
    before = shop.machines[0].counters
    refused = shop.certify(body, headers={"Mcfd-Strict": "true"})
    assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_REQUEST")
    assert refused.json()["errors"] == [
        {"field": "price_mode", "message": "is not a known field; did you mean priceMode?"}
    ]
    assert shop.machines[0].counters == before
    answer = shop.certify(body).json()
    (warning,) = answer["warnings"]
    assert (warning["code"], warning["field"]) == ("UNKNOWN_FIELD", "price_mode")
    assert shop.get(f"certifications/{answer['codeSecef']}").json()["receipt"] == answer
    unclear = shop.certify(body, headers={"Mcfd-Strict": "yes"})
    assert unclear.json()["errors"][0]["field"] == "Mcfd-Strict"


def test_the_largest_amount_is_certified(own_shop: Shop) -> None:
    """Of a price, a line, a total and a payment; a franc more is refused by name."""
    most = 10**12
    sale = certified(own_shop.certify(invoice(fresh(), most)))
    assert (sale["totalTtc"], own_shop.x_with(1)["total_ttc"]) == (most, most)
    assert "items[0].unitPrice" in invalid(own_shop.certify(invoice(fresh(), most + 1)))


@pytest.mark.parametrize(
    ("path", "body", "near"),
    [
        ("reports/z", {"cash_counted": 5000}, "cashCounted"),
        ("reports/month", {"perod": "2026-01"}, "period"),
        ("reports/year", {"perod": "2026"}, "period"),
        ("reports/articles", {"period": "2026"}, ""),
    ],
)
def test_unknown_fields_of_a_closure_are_told_or_refused(
    shop: Shop, path: str, body: dict[str, Any], near: str
) -> None:
    """27, and 40 for the header of a rehearsal with a live key: a closure cannot be taken back. What is stored, and read again, has no warnings."""
    (field,) = body
    certified(shop.certify(invoice(fresh())))
    words = f"{field}: is not a known field" + (f"; did you mean {near}?" if near else "")
    is_over = path in ("reports/z", "reports/articles")
    before = shop.get("reports").json()["count"]
    refused = shop.certify(body, path=path, headers={"Mcfd-Strict": "true"})
    assert (refused.status_code, refused.json()["detail"]) == (422, words), refused.text
    assert shop.get("reports").json()["count"] == before
    test = {"Mcfd-Test": "offline"}
    answers = [shop.certify(body, key=f"told-{path}", path=path, headers=test) for _ in range(2)]
    if not is_over:
        assert [answer.json()["code"] for answer in answers] == ["PERIOD_NOT_OVER"] * 2
        return
    assert answers[0].content == answers[1].content
    warnings = answers[0].json()["warnings"]
    assert [(each["code"], each["field"]) for each in warnings] == [
        ("UNKNOWN_FIELD", field),
        ("TEST_HEADER_IGNORED", "Mcfd-Test"),
    ]
    assert "warnings" not in shop.certify({}, path=path).json()
    if path == "reports/z":
        stored = shop.get(f"reports/z/{answers[0].json()['z_number']}").json()
        assert stored == {name: value for name, value in answers[0].json().items() if name != "warnings"}


@pytest.mark.parametrize(
    ("field", "is_in_url"),
    [(field, False) for field in ("after_z", "AfterZ", "afterz", "after")]
    + [(field, True) for field in ("afterZ", "after_z", "after", "cashCounted")],
)
def test_a_condition_that_is_not_read_closes_nothing(shop: Shop, field: str, is_in_url: bool) -> None:
    """27: `afterZ` prevents a second closure. Misspelt, or in the URL, and ignored, it would close the period that it was to leave open."""
    before = shop.get("reports").json()["count"]
    body, query = ({}, {field: "0"}) if is_in_url else ({field: 0, "note": "x"}, {})
    refused = shop.certify(body, path="reports/z", **query)
    words = (
        "belongs in the body" if field in ("afterZ", "cashCounted") else "is not a known field; did you mean afterZ?"
    )
    assert (refused.status_code, refused.json().get("errors")) == (422, [{"field": field, "message": words}])
    assert shop.get("reports").json()["count"] == before
