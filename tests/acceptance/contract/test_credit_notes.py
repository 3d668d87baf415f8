"""Credit notes over HTTP: the ledger knows what may still be credited, and the tax server may take its time."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.shop import IFU, NIM, Machine, Shop, invoice
from support.till import invalid

LOCAL = "EL02000016-3"


def credit(number: str, reference: str, *prices: int, **changes: Any) -> dict[str, Any]:
    return {**invoice(number, *prices), "invoiceType": "FA", "creditNoteRef": reference, **changes}


def sold(shop: Shop, number: str, price: int) -> str:
    """The reference of a new sale."""
    return f"{NIM}-{shop.certify(invoice(number, price)).json()['fvc']}"


def test_the_last_line_of_a_sale_in_ht_takes_the_rest(own_shop: Shop) -> None:
    """Three lines of 42 HT are 149 with VAT; credited one by one, each is 50, and the third is a franc too much. The refusal says what is left, in a
    field and in words, and with that amount in TTC the sale is credited to the franc, HT and VAT too. Nothing is left then."""

    def lines(count: int, total: int) -> dict[str, Any]:
        article = {"name": "Vis", "taxGroup": "B", "unitPrice": 42}
        return {"priceMode": "HT", "items": [article] * count, "payments": [{"method": "E", "amount": total}]}

    sale = own_shop.certify({**invoice("HT-1"), **lines(3, 149)}).json()
    reference = f"{NIM}-{sale['fvc']}"
    for number in ("HT-2", "HT-3"):
        done = own_shop.certify(credit(number, reference, **lines(1, 50)), path="credit-note")
        assert (done.status_code, done.json()["totalTtc"]) == (200, 50)
    refused = own_shop.certify(credit("HT-4", reference, **lines(1, 50)), path="credit-note")
    assert (refused.status_code, refused.json()["code"]) == (409, "CREDIT_EXCEEDS_ORIGINAL")
    assert refused.json()["left_ttc"] == 49
    assert "49 of 149 is left" in refused.json()["detail"]
    item = {"name": "Vis", "taxGroup": "B", "amountTtc": 49}
    rest = {"items": [item], "payments": [{"method": "E", "amount": 49}]}
    last = own_shop.certify(credit("HT-4", reference, **rest), path="credit-note")
    assert last.status_code == 200, last.text
    for _ in range(2):
        refused = own_shop.certify(credit("HT-5", reference, 1), path="credit-note")
        assert (refused.status_code, refused.json()["left_ttc"]) == (409, 0)
    report = own_shop.x_with(4)
    assert (report["total_ttc"], report["total_ht"], report["total_tva"]) == (0, 0, 0)


@pytest.mark.parametrize("style", ["pending", "silent", "syn"])
def test_a_slow_tax_server_is_waited_for(shop: Shop, style: str) -> None:
    """`P:` answers, plain silence and SYN while the tax server checks a credit note end in one certification."""
    machine = shop.machines[0]
    reference = sold(shop, f"S-{style}", 900)
    machine.order("options", credit_style=style, credit_check=0.6)
    before = machine.counters
    answer = shop.certify(credit(f"W-{style}", reference, 900), path="credit-note")
    machine.order("options", credit_check=0.0)
    assert answer.status_code == 200, answer.text
    assert machine.counters[2] == before[2] + 1
    shop.verify()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Two machines on one box, of which the second counts only local sales in FVC."""
    folder = tmp_path_factory.mktemp("pair")
    machines = Machine(folder, NIM, IFU), Machine(folder, LOCAL, IFU, "--fvc-local")
    with Shop(folder, machines=machines) as shop:
        yield shop.start()


def test_a_credit_note_names_its_original_by_number(own_shop: Shop) -> None:
    """Instead of the reference, whatever the number's case; the answer and the journal have the reference, and what remains of the sale."""
    reference = sold(own_shop, "S-10", 10000)
    body = {**credit("C-10", "", 6000), "creditNoteRef": None, "originalInvoiceNumber": "s-10"}
    receipt = own_shop.certify(body, key="c-10", path="credit-note").json()
    assert receipt["warnings"] == [] or [each["code"] for each in receipt["warnings"]] == ["CREDIT_NOTE_NATURE_ASSUMED"]
    assert own_shop.certify(body, key="c-10", path="credit-note").json() == receipt
    page = own_shop.get("certifications").json()["certifications"]
    found = {each["invoiceNumber"]: each for each in page}
    assert found["C-10"]["creditNoteRef"] == reference
    assert "remainingTtc" not in found["C-10"]
    assert found["S-10"]["remainingTtc"] == 4000
    detail = own_shop.get(f"certifications/{found['S-10']['codeSecef']}").json()
    assert detail["remainingTtc"] == 4000
    both = {**body, "invoiceNumber": "C-11", "creditNoteRef": reference.lower()}
    assert own_shop.certify(both, path="credit-note").status_code == 409
    fits = {**both, "items": invoice("", 4000)["items"], "payments": invoice("", 4000)["payments"]}
    assert own_shop.certify(fits, path="credit-note", dry_run="true").is_success
    assert own_shop.certify(fits, path="credit-note").is_success


def test_the_same_number_at_two_machines_needs_the_reference(pair: Shop) -> None:
    """Both sales are named; with the reference beside it the one is meant; the sandbox's numbers are its own."""
    first = pair.certify(invoice("TWICE", 900)).json()
    pair.certify(invoice("TWICE", 900), nim=LOCAL)
    body = {**credit("TWICE-C", "", 400), "creditNoteRef": None, "originalInvoiceNumber": "TWICE"}
    answer = pair.certify(body, path="credit-note")
    assert answer.status_code == 422
    assert NIM in answer.text
    assert LOCAL in answer.text
    named = {**body, "creditNoteRef": f"{NIM}-{first['fvc']}"}
    assert pair.certify(named, path="credit-note", nim=LOCAL).is_success
    assert pair.certify(body, path="credit-note", mode="test").status_code == 422


def test_of_exports_with_one_counter_the_named_one_is_credited(pair: Shop) -> None:
    """The second machine counts exports in TC alone, so both have the FVC of the sale before. `originalInvoiceNumber`
    says which one is meant: it is credited up to its own total, and the other one stays as it is."""
    counter = pair.certify(invoice("LOCAL-1", 500), nim=LOCAL).json()["fvc"]
    for number, price in (("EXPORT-1", 10_000), ("EXPORT-2", 20_000)):
        assert pair.certify(invoice(number, price, invoiceType="EV"), nim=LOCAL).is_success

    def credited(number: str, amount: int, of: str, **changes: Any) -> int:
        body = {**invoice(number, amount, invoiceType="EA", creditNoteNature="RAM"), "originalInvoiceNumber": of}
        body |= changes
        path = f"/v1/mcf/{LOCAL}/credit-note"
        tried = pair.http.post(f"{path}?dry_run=true", json=body, headers=pair.headers(nim=LOCAL))
        done = pair.certify(body, nim=LOCAL, path="credit-note")
        assert tried.status_code == done.status_code
        return done.status_code

    def left() -> list[int]:
        page = pair.get("certifications", nim=LOCAL).json()["certifications"]
        found = {each["invoiceNumber"]: each.get("remainingTtc") for each in page}
        return [found["EXPORT-1"], found["EXPORT-2"]]

    assert credited("E-1", 5_000, "EXPORT-2") == 200
    assert left() == [10_000, 15_000]
    by_counter = {**invoice("E-0", 1, invoiceType="EA", creditNoteNature="RAM"), "creditNoteRef": f"{LOCAL}-{counter}"}
    (warning,) = pair.certify(by_counter, nim=LOCAL, path="credit-note").json()["warnings"]
    assert (warning["code"], warning["field"]) == ("ORIGINAL_GUESSED", "creditNoteRef")
    assert "EXPORT-1" in warning["message"]
    assert left() == [9_999, 15_000]
    assert credited("E-2", 9_999, "export-1") == 200
    assert credited("E-3", 10_000, "EXPORT-1") == 409
    assert credited("E-4", 500, "LOCAL-1") == 422
    assert credited("A-1", 500, "EXPORT-2", invoiceType="FA") == 422  # not booked on nothing, nor on the local sale
    faults = invalid(
        pair.certify(
            {**invoice("A-1", 500, invoiceType="FA"), "originalInvoiceNumber": "EXPORT-2"},
            nim=LOCAL,
            path="credit-note",
        )
    )
    assert faults == {"originalInvoiceNumber": "is a EV; FA credits FV, FT only"}
    assert credited("E-5", 15_000, "EXPORT-2") == 200
    assert left() == [0, 0]
    pair.verify()
