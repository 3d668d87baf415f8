"""Sales that are certified later (arrêté 2025-0049, article 6 g): 202, what became of them, and each certified once."""

from base64 import b64decode
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.ledgers.ledger import query
from support.shop import IFU, NIM, Machine, Shop, invoice, running_shop, wait_for
from support.till import certified, fresh, invalid, problem, untouched

ASYNC = {"Prefer": "respond-async"}


def defer(shop: Shop, body: Any, *, key: str = "", headers: dict[str, str] = ASYNC, **where: Any) -> httpx.Response:
    return shop.certify(body, key=key, headers=headers, **where)


def taken_back(shop: Shop, key: str) -> httpx.Response:
    return shop.http.delete(f"/v1/mcf/{NIM}/requests/{key}", headers=shop.headers())


def taken(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    return answer.json()


def request_state(shop: Shop, key: str, **where: Any) -> dict[str, Any]:
    answer = shop.get(f"requests/{key}", **where)
    assert answer.status_code == 200, answer.text
    return answer.json()


def settled(shop: Shop, key: str, **where: Any) -> dict[str, Any]:
    """The receipt, once the machine has certified it."""
    found = wait_for(lambda: (body := request_state(shop, key, **where))["status"] == "certified" and body, "certified")
    return found["receipt"]


@pytest.fixture
def dead(own_shop: Shop) -> Shop:
    """A shop whose machine has just died."""
    own_shop.machines[0].kill()
    wait_for(lambda: not own_shop.is_ready(), "the machine's death")
    return own_shop


def test_the_answer_has_the_slip_where_it_is_wanted(dead: Shop) -> None:
    """As `…/ticket` gives it, for the till to print at once; a repeat under the same key has it in another form, or none."""
    key = fresh()
    for form in ("text", "html", ""):
        body = taken(defer(dead, invoice("S-1"), key=key, **({"document": form} if form else {})))
        ticket = dead.get(f"requests/{key}/ticket", **({"format": form} if form else {}))
        assert "SANS VALEUR FISCALE" in ticket.text
        paper = body.get("document")
        assert (b64decode(paper["content"]).decode() if paper else "") == (ticket.text if form else "")
    assert defer(dead, invoice("S-2"), key=fresh(), document="docx").status_code == 422


def test_a_till_that_does_not_wait(shop: Shop) -> None:
    """202 with where to look, then the receipt, which says when it was sold; a repeat gets the same 202, later the receipt."""
    key, number = fresh(), fresh()
    first = defer(shop, invoice(number), key=key)
    body = taken(first)
    assert body["status"] in ("waiting", "on_the_line")
    assert first.headers["location"] == f"/v1/mcf/{NIM}/requests/{key}"
    assert first.headers["preference-applied"] == "respond-async"
    assert (body["invoiceNumber"], body["totalTtc"]) == (number, 15000)
    assert body["regulariseBefore"] > body["soldAt"]
    receipt = settled(shop, key)
    assert receipt["deferred"] == {"soldAt": body["soldAt"], "reason": "requested", "outage": 0}
    again = defer(shop, invoice(number), key=key)
    assert certified(again) == receipt
    assert again.headers["idempotency-replayed"] == "true"
    assert [entry["number"] for entry in shop.machines[0].certified(receipt["tc"] - 1)] == [number]
    for copy in (1, 2):  # a duplicate is one, wherever it is fetched (SFE 2.11)
        assert f"DUPLICATA N° {copy}" in shop.get(f"requests/{key}/ticket", copy="duplicate").text
    assert shop.get(f"certifications/{receipt['codeSecef']}").json()["receipt"]["copies"] == 2
    problem(taken_back(shop, key), 409, "REQUEST_NOT_WAITING")
    shop.verify()


@pytest.mark.parametrize(
    ("sent", "is_async"),
    [
        (["respond-async, wait=10"], True),
        (["wait=10", "return=minimal, respond-async"], True),
        (["respond-async=no"], False),
        (['note="later, respond-async, please"'], False),
    ],
)
def test_a_preference_in_whatever_shape(shop: Shop, sent: list[str], is_async: bool) -> None:
    """RFC 7240: several headers are one list, names know no case, what is quoted is one word."""
    key = fresh()
    headers = [*shop.headers(key=key).items(), *(("Prefer", each) for each in sent)]
    answer = shop.http.post(f"/v1/mcf/{NIM}/certify", json=invoice(key), headers=headers)
    assert answer.status_code == (202 if is_async else 200), answer.text
    settled(shop, key)


def test_without_a_key_nothing_is_taken_on(shop: Shop) -> None:
    """A till that does not wait has to be able to ask: the missing header is named, and bad content is refused as ever."""
    with untouched(shop):
        missing = problem(defer(shop, invoice(fresh())), 400, "IDEMPOTENCY_KEY_REQUIRED")
        assert [error["field"] for error in missing["errors"]] == ["Idempotency-Key"]
        assert "items" in invalid(defer(shop, invoice(fresh(), items=[]), key=fresh()))


def test_a_dead_machine_comes_back(dead: Shop) -> None:
    """Sales wait in their order, also over a kill of the daemon; their numbers are taken; one is taken back, and its number is free again."""
    shop, numbers, keys = dead, [fresh() for _ in range(4)], [fresh() for _ in range(4)]
    bodies = [taken(defer(shop, invoice(number), key=key)) for number, key in zip(numbers, keys, strict=True)]
    again = taken(defer(shop, invoice(numbers[0]), key=keys[0], headers={}))
    assert again == bodies[0]
    problem(shop.certify(invoice(numbers[0])), 409, "DUPLICATE_INVOICE")
    problem(defer(shop, invoice(numbers[0]), key=fresh()), 409, "DUPLICATE_INVOICE")
    problem(defer(shop, invoice(fresh()), key=keys[0]), 409, "IDEMPOTENCY_KEY_REUSED")
    problem(shop.certify(invoice(fresh())), 503, "BRIDGE_OFFLINE")
    assert taken_back(shop, keys[3]).json()["status"] == request_state(shop, keys[3])["status"] == "abandoned"
    assert taken_back(shop, keys[3]).status_code == 200
    assert shop.get("reports/x").json()["waiting"] == {"count": 3, "total": 45000}
    assert shop.get("requests/never").status_code == 404
    shop.kill_daemon()
    shop.machines[0].start()
    shop.start_daemon()
    receipts = [settled(shop, key) for key in keys[:3]]
    assert [entry["number"] for entry in shop.machines[0].certified()] == numbers[:3]
    assert sorted(receipt["tc"] for receipt in receipts) == [receipt["tc"] for receipt in receipts]
    certified(shop.certify(invoice(numbers[3])))
    assert shop.closed()["waiting"] == {"count": 0, "total": 0}
    shop.verify()


def test_the_paper_of_a_sale_that_waits(dead: Shop) -> None:
    """A slip without code, QR of a certification or counters; afterwards the invoice, which says what it regularises. The till and the slip
    know what is paid beside the total."""
    shop, key = dead, fresh()
    answer = defer(shop, invoice(fresh(), stampDuty=100, psvbGroup="A", custmer={}), key=key)
    body = taken(answer)
    assert answer.headers["preference-applied"] == "respond-async"
    there = shop.http.get(answer.headers["location"], headers=shop.headers()).json()
    assert (there["status"], there["invoiceNumber"]) == ("waiting", body["invoiceNumber"])
    assert (body["stampDuty"], body["psvbByGroup"]) == (100, [{"group": "A", "base": 15000, "rate": 2, "amount": 300}])
    assert [warning["code"] for warning in body["warnings"]] == ["UNKNOWN_FIELD"]
    for form in ("text", "html", "escpos"):
        slip = shop.http.get(body["ticket"], params={"format": form}, headers=shop.headers())
        assert slip.status_code == 200, slip.text
        words = slip.content.decode("cp858" if form == "escpos" else "utf-8")
        assert "EN ATTENTE DE CERTIFICATION" in words
        assert "SANS VALEUR FISCALE" in words
        assert "Montant timbre quittance" in words
        assert "PSVB A" in words
        assert "SECeF" not in words
        assert "BFSECEF01" not in words
    page = shop.http.get(body["customerPage"])
    assert "SANS VALEUR FISCALE" in page.text
    assert shop.http.get(body["customerPage"][:-1] + "_").status_code == 404
    shop.machines[0].start()
    code = settled(shop, key)["codeSecef"]
    paper = " ".join(shop.http.get(body["ticket"], headers=shop.headers()).text.split())
    assert "Régularisation de la vente du" in paper
    assert code[:4] in paper
    assert code[:4] in shop.http.get(body["customerPage"]).text


def test_paper_names_the_shop_while_the_machine_is_dead(own_shop: Shop) -> None:
    """Also after a start without it: the slip, its page, the declaration of the outage, and a duplicate. Name and address are the machine's (2Bh): they are read while it is
    there, though nobody asks."""
    shop, base = own_shop, f"/v1/mcf/{NIM}"
    code = certified(shop.certify(invoice(fresh())))["codeSecef"]
    names = "SELECT count(*) FROM letterhead WHERE book_id = 1"
    wait_for(lambda: query(shop.ledger, names) == [(2,)], "the name in the ledger")
    shop.stop_daemon()
    shop.machines[0].kill()
    shop.start_daemon(ready=False)
    body = taken(defer(shop, invoice(fresh()), key=fresh()))
    papers = f"{base}/outages/1/declaration", f"{base}/certifications/{code}/ticket", f"{base}/reports/x/ticket"
    for path in (body["ticket"], body["customerPage"], *papers):
        paper = shop.http.get(path, headers=shop.headers())
        assert paper.status_code == 200, paper.text
        assert "MAISON FASO" in paper.text, path
    assert "Avenue Kwamé Nkrumah" in paper.text


def test_a_machine_out_of_order_defers_where_the_shop_wants_it(tmp_path: Path) -> None:
    """`when_out_of_order = "defer"`: 202 for a till that sends no header at all; with the machine there it waits as ever."""
    with running_shop(tmp_path, per_machine={"when_out_of_order": "defer"}) as shop:
        certified(shop.certify(invoice(fresh())))
        shop.machines[0].kill()
        wait_for(lambda: not shop.is_ready(), "the machine's death")
        number = fresh()
        answer = shop.certify(invoice(number))
        key = answer.headers["location"].rpartition("/")[2]
        assert taken(answer)["status"] == "waiting"
        problem(shop.certify(invoice(number)), 409, "DUPLICATE_INVOICE")
        shop.machines[0].start()
        assert settled(shop, key)["deferred"]["reason"] == "line_lost"


def test_what_the_machine_refuses_is_refused(own_shop: Shop) -> None:
    """A blocked machine refuses everything, and no sale is given up for it; one that it refuses while it certifies others is refused for good."""
    shop, keys = own_shop, [fresh() for _ in range(3)]
    shop.machines[0].order("mode", mode="blocked")
    for key in keys:
        taken(defer(shop, invoice(key), key=key))
    wait_for(lambda: len(shop.events("sale.put_off")) >= 2, "two refusals")
    assert {request_state(shop, key)["status"] for key in keys} == {"waiting"}
    assert events(shop, "cert.refused") == []  # each of them waits again
    shop.machines[0].order("mode", mode="active")
    certified(shop.certify(invoice(fresh())))
    assert [settled(shop, key)["invoiceNumber"] for key in keys] == keys


def test_one_that_the_machine_does_not_take(tmp_path: Path) -> None:
    """It is refused once, with one event; it has no slip any more, its number is free again, and those behind it are certified."""
    with running_shop(tmp_path, machines=(Machine(tmp_path, NIM, IFU, "--name-most", "20"),)) as shop:
        number, key, next_key = fresh(), fresh(), fresh()
        long_name = {"name": "A" * 21, "taxGroup": "B", "unitPrice": 15000, "quantity": 1}
        ticket = taken(defer(shop, invoice(number, items=[long_name]), key=key))["ticket"]
        taken(defer(shop, invoice(next_key), key=next_key))
        settled(shop, next_key)
        found = request_state(shop, key)
        assert (found["status"], found["problem"]["code"]) == ("refused", "MACHINE_REFUSED")
        (refused,) = events(shop, "cert.refused")
        assert refused > 0
        problem(shop.http.get(ticket, headers=shop.headers()), 404, "NOT_FOUND")
        certified(shop.certify(invoice(number)))
        shop.verify()


def events(shop: Shop, kind: str) -> list[int]:
    """What the events of that kind are about."""
    return [ref for (ref,) in query(shop.ledger, "SELECT ref_id FROM event WHERE type = ? ORDER BY id", kind)]


def test_a_restored_copy_certifies_no_sale_twice(own_shop: Shop) -> None:
    """A sale waited when the copy was made, and was certified since: it stands in doubt until a person has looked, and its till cannot take it back, before
    the machine is there neither. Once it is adopted a retry gets its certification, as `requests` says."""
    shop, key, copy = own_shop, fresh(), own_shop.folder / "copy"
    shop.machines[0].kill()
    wait_for(lambda: not shop.is_ready(), "the machine's death")
    taken(defer(shop, invoice(key), key=key))
    shop.mcfd("backup", str(copy), check=True)
    shop.machines[0].start()
    settled(shop, key)
    shop.stop_daemon()
    shop.machines[0].kill()
    shop.mcfd("restore", str(copy), "--yes", check=True)
    shop.start_daemon(ready=False)
    problem(taken_back(shop, key), 409, "REQUEST_NOT_WAITING")
    shop.machines[0].start()
    wait_for(lambda: shop.http.get("/health/ready").json()["machines"][0]["attention"], "the machine's comparison")
    assert request_state(shop, key)["status"] == "in_doubt"
    problem(shop.certify(invoice(key)), 409, "DUPLICATE_INVOICE")
    problem(taken_back(shop, key), 409, "REQUEST_NOT_WAITING")
    assert request_state(shop, key)["status"] == "in_doubt"
    shop.mcfd("machine", "settle", NIM, "--decision", "adopt", "--reason", "a copy was put back", check=True)
    receipt = request_state(shop, key)["receipt"]
    answer = defer(shop, invoice(key), key=key)
    assert (answer.status_code, answer.json()) == (200, receipt)
    [only] = shop.machines[0].certified()
    assert receipt["codeSecef"] == only["code"]


def test_the_qr_code_of_a_slip_is_the_customers_page_at_the_public_address(tmp_path: Path) -> None:
    with Shop(tmp_path, config={"server": {"public_url": "https://caisse.example/"}}) as shop:
        shop.start().machines[0].kill()
        body = taken(defer(shop, invoice(fresh()), key=fresh()))
        slip = shop.http.get(body["ticket"], params={"format": "escpos"}, headers=shop.headers())
        assert f"https://caisse.example{body['customerPage']}".encode() in slip.content


def test_a_customer_whose_slip_leads_nowhere_reads_a_sentence(shop: Shop) -> None:
    """Of a sale that was taken back, or an address that never was: a page for a phone, a problem for a program."""
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": "fr"}
    page = shop.http.get("/f/none", headers=browser)
    assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (404, "text/html")
    assert "adressez-vous à la boutique" in page.text
    assert shop.http.get("/f/none").json()["code"] == "NOT_FOUND"
