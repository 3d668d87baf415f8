"""Decisions 36 and 40: what became of a request, and what a request would get."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from support.hurried import STILL
from support.shop import Shop, invoice, wait_for
from support.till import certified, fresh, invalid, problem, untouched


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Whose machine may be at 38h for as long as a test wants."""
    how = {"per_machine": {"certify_timeout": 60.0}, "first": STILL}
    with Shop(tmp_path_factory.mktemp("shop"), **how) as shop:
        yield shop.start()


def found(shop: Shop, key: str) -> dict[str, Any]:
    answer = shop.get(f"requests/{quote(key, safe='')}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("key", ["till1 FV/2026/0001", "/begins?b#c%", "k" * 200])
def test_decision_36_a_certified_request_gives_its_receipt(shop: Shop, key: str) -> None:
    """Byte for byte that of the first answer, for any key that the header takes; nothing is certified by it."""
    receipt = certified(shop.certify(invoice(fresh()), key=key))
    with untouched(shop):
        assert found(shop, key) == {"status": "certified", "receipt": receipt}


def test_decision_36_a_key_that_is_not_known(shop: Shop) -> None:
    """404: never seen, refused before anything was stored, of another book, or malformed in no way that a store would mind."""
    key = fresh()
    invalid(shop.certify({**invoice(fresh()), "items": []}, key=key))
    for each in (key, fresh(), "é"):
        problem(shop.get(f"requests/{quote(each, safe='')}"), 404, "NOT_FOUND")
    sandbox = fresh()
    certified(shop.certify(invoice(fresh()), key=sandbox, mode="test"))
    problem(shop.get(f"requests/{sandbox}"), 404, "NOT_FOUND")
    assert shop.get(f"requests/{sandbox}", mode="test").json()["status"] == "certified"


def test_decision_36_a_request_that_failed(shop: Shop) -> None:
    """Refused by the machine with its words, or abandoned when its line was lost; certified once the same request was sent again."""
    machine, key, body = shop.machines[0], fresh(), invoice(fresh())
    machine.order("mode", mode="blocked")
    refused = problem(shop.certify(body, key=key), 422, "MACHINE_REFUSED")
    outcome = found(shop, key)
    assert outcome["status"] == "refused"
    assert (outcome["problem"]["code"], outcome["problem"]["detail"]) == ("MACHINE_REFUSED", refused["detail"])
    machine.order("mode", mode="active")
    other, key2 = invoice(fresh()), fresh()
    machine.order("fault", spec="unplug-before:0.2@33h#1")
    problem(shop.certify(other, key=key2), 503, "BRIDGE_OFFLINE")
    wait_for(lambda: found(shop, key2)["status"] == "abandoned")
    assert found(shop, key2)["problem"]["code"] == "BRIDGE_OFFLINE"
    wait_for(lambda: shop.http.get("/health/ready").status_code == 200)
    certified(shop.certify(body, key=key))
    assert found(shop, key)["status"] == "certified"


def test_decision_36_what_was_refused_before_38h_says_why(shop: Shop) -> None:
    """A credit note that exceeds its sale, or that fits no sale of the number it names: what the POST was answered, with its figures; and in the journal."""
    sale = certified(shop.certify(invoice(fresh())))
    note = {"invoiceType": "FA", "creditNoteNature": "COR", "creditNoteRef": f"{sale['nim']}-{sale['fvc']}"}
    key = fresh()
    answered = problem(
        shop.certify({**invoice(key, 15_001), **note}, key=key, path="credit-note"), 409, "CREDIT_EXCEEDS_ORIGINAL"
    )
    outcome = found(shop, key)
    refusal = {name: value for name, value in outcome["problem"].items() if name != "request_id"}
    assert (outcome["status"], refusal) == ("abandoned", {name: answered[name] for name in refusal})
    assert (refusal["original_ttc"], refusal["credited_ttc"]) == (15_000, 15_001)
    lines = shop.get("certifications").json()["certifications"]
    (line,) = (each for each in lines if each["invoiceNumber"] == key)
    assert line["reason"] == f"not sent: {answered['detail']}"
    export = {**note, "invoiceType": "EA"}
    answer = shop.certify({**invoice(fresh()), **export}, key=(other := fresh()), path="credit-note")
    assert answer.status_code == 422
    refusal = found(shop, other)["problem"]
    assert (refusal["code"], refusal["errors"]) == ("INVALID_REQUEST", answer.json()["errors"])


def test_decision_36_a_request_that_is_under_way(shop: Shop) -> None:
    """On the line while the machine is closing it, and waiting behind it; certified in the end."""
    machine, first, second = shop.machines[0], fresh(), fresh()
    machine.order("pause-at", next=6, when="before", direction="in")
    with ThreadPoolExecutor(2) as tills:
        for key, status in ((first, "on_the_line"), (second, "waiting")):
            tills.submit(shop.certify, invoice(fresh()), key=key)
            wait_for(lambda key=key, status=status: shop.get(f"requests/{key}").json().get("status") == status, status)
        machine.order("resume")
    assert [found(shop, key)["status"] for key in (first, second)] == ["certified"] * 2


def test_decision_36_a_closure_is_answered(shop: Shop) -> None:
    """A Z that is made says that its request is done; the same POST gives it again."""
    key = fresh()
    shop.close_period(key=key)
    assert found(shop, key) == {"status": "answered"}


def dry_run(shop: Shop, body: dict[str, Any], path: str = "certify", value: str = "true") -> httpx.Response:
    return shop.certify(body, path=path, dry_run=value)


def test_decision_40_a_dry_run_says_what_would_be_certified(shop: Shop) -> None:
    """Totals and warnings as the receipt then has them; nothing is stored, nothing is sent, no code is given."""
    body = {**invoice(fresh(), 999, 1500), "invoiceNumer": "x", "psvbGroup": "A", "stampDuty": 30}
    body["items"][1]["psvbGroup"] = "B"
    with untouched(shop):
        answer = dry_run(shop, body)
    assert answer.status_code == 200
    preview = answer.json()
    receipt = certified(shop.certify(body))
    shared = (
        *("invoiceNumber", "invoiceType", "totalTtc", "taxDetails", "specificTax"),
        *("psvb", "psvbByGroup", "stampDuty", "warnings"),
    )
    assert [each["group"] for each in receipt["psvbByGroup"]] == ["A", "B"]
    assert {name: preview[name] for name in shared} == {name: receipt[name] for name in shared}
    assert preview.keys() == {*shared, "dryRun"}
    assert preview["dryRun"] is True


def test_decision_40_a_dry_run_gets_the_errors_of_the_real_one(shop: Shop) -> None:
    """A wrong field, a number that is taken, a credit note that exceeds its sale; and `dry_run` itself is read strictly."""
    sale = certified(shop.certify(invoice(fresh())))
    reference = f"{sale['nim']}-{sale['fvc']}"
    credit = {
        **invoice(fresh(), 15_001),
        "invoiceType": "FA",
        "creditNoteNature": "COR",
        "creditNoteRef": reference,
    }
    with untouched(shop):
        assert "items" in invalid(dry_run(shop, {**invoice(fresh()), "items": []}))
        problem(dry_run(shop, invoice(sale["invoiceNumber"])), 409, "DUPLICATE_INVOICE")
        problem(dry_run(shop, credit, "credit-note"), 409, "CREDIT_EXCEEDS_ORIGINAL")
        assert (
            dry_run(
                shop,
                {
                    **invoice(fresh(), 15_000),
                    **{k: credit[k] for k in ("invoiceType", "creditNoteNature", "creditNoteRef")},
                },
                "credit-note",
            ).status_code
            == 200
        )
        assert invalid(dry_run(shop, invoice(fresh()), value="yes")).keys() == {"dry_run"}
        for name in ("dryRun", "dry-run", "DRY_RUN", "dryrun", "dry", "preview"):  # certified for good otherwise
            assert invalid(shop.certify(invoice(fresh()), **{name: "true"})).keys() == {name}
        for name in ("dry_run", "dryRun"):
            assert invalid(shop.certify(invoice(fresh(), **{name: True}))).keys() == {name}


@pytest.mark.parametrize(
    "path", ["cash", "reports/z", "reports/articles", "reports/month", "reports/z/1/print", "cancel-pending"]
)
def test_what_cannot_be_tried_is_not_done_by_a_dry_run(shop: Shop, path: str) -> None:
    """A Z that was meant to be tried would close the day for good."""
    body = {"kind": "deposit", "amount": 500, "reason": "Fond de caisse"} if path == "cash" else {}
    with untouched(shop):
        assert invalid(dry_run(shop, body, path)).keys() == {"dry_run"}
        assert invalid(shop.certify(body, path=path, dryRun="true")).keys() == {"dryRun"}
        assert invalid(shop.certify({**body, "dry_run": True}, path=path)).keys() == {"dry_run"}
