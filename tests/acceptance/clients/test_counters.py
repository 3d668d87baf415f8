"""The counters of an invoice, `CPIT/FDOC ITL` (SECeF 2.10.4, decision 35): in the receipt, on every paper, on the page, whatever the machine's habits."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.browser import session_of, staffed_shop
from support.crash.lane import insist
from support.paper.escpos import printed
from support.shop import IFU, NIM, Machine, Shop, invoice

pytestmark = pytest.mark.long

LOCAL, OWN = "EL02000016-2", "EL02000017-1"
LOST = "unplug:0.2@38h#1"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("counters")
    habits = {NIM: (), LOCAL: ("--fvc-local",), OWN: ("--fc-per-type", "--fvc-local")}
    machines = tuple(Machine(folder, nim, IFU, *options) for nim, options in habits.items())
    with staffed_shop(folder, "manager", machines=machines) as shop:
        yield shop
        shop.stop_daemon()
        shop.verify()


def sold(shop: Shop, nim: str, number: str, kind: str, *, is_lost: bool = False) -> dict[str, Any]:
    if is_lost:
        machine = next(each for each in shop.machines if each.nim == nim)
        machine.order("fault", spec=LOST)
    body = invoice(f"{kind}-{number}", 900) | {"invoiceType": kind}
    path = "certify"
    if kind in ("FA", "EA"):
        path, body = "credit-note", body | {"creditNoteRef": "RRR", "creditNoteNature": "RRR"}
    receipt: dict[str, Any] = insist(lambda: shop.certify(body, path=path, nim=nim, key=f"{kind}-{number}"), 200).json()
    again = shop.certify(body, path=path, nim=nim, key=f"{kind}-{number}")
    assert again.json() == receipt
    return receipt


EXPECTED = {
    NIM: ("1/1 FV", "2/2 FT", "3/3 EV", "4/4 ET", "1/5 FA", "2/6 EA", "5/7 FV"),
    LOCAL: ("1/1 FV", "2/2 FT", "2/3 EV", "2/4 ET", "1/5 FA", "2/6 EA", "3/7 FV"),
    OWN: ("1/1 FV", "1/2 FT", "1/3 EV", "1/4 ET", "1/5 FA", "1/6 EA", "2/7 FV"),
}
"""The FC of each machine."""


@pytest.mark.parametrize("nim", EXPECTED)
def test_counters_are_those_that_the_machine_told(shop: Shop, nim: str) -> None:
    """The counter of the type, all transactions, the type; the same on the ticket in each form, with the machine as NIM-ACNT, in the journal, and on the
    page. What is found by C1h after a lost answer has the counter where it is certain: an export never, a sale right after one with a certain counter."""
    receipts = [sold(shop, nim, str(at), kind) for at, kind in enumerate(("FV", "FT", "EV", "ET", "FA", "EA", "FV"))]
    assert [receipt["counters"] for receipt in receipts] == list(EXPECTED[nim])
    lost = [sold(shop, nim, "lost", kind, is_lost=True) for kind in ("FV", "EV", "EA")]
    own = {NIM: 6, LOCAL: 4, OWN: 3}[nim]
    assert [receipt["counters"] for receipt in lost] == [f"{own}/8 FV", "?/9 EV", "?/10 EA"]
    cookie = "; ".join(f"{name}={value}" for name, value in session_of(shop, "manager").items())
    for receipt in (*receipts, *lost):
        certification = f"certifications/{receipt['codeSecef']}"
        assert shop.get(certification, nim=nim).json()["receipt"] == receipt
        paper = f"{certification}/ticket"
        text, page = (shop.get(paper, nim=nim, format=form, copy="duplicate").text for form in ("text", "html"))
        escpos = "".join(printed(shop.get(paper, nim=nim, format="escpos").content).text)
        for document in (text, page, escpos):
            assert receipt["counters"] in document
            assert nim in document
        found = shop.get("certifications", nim=nim, invoiceNumber=receipt["invoiceNumber"]).json()["certifications"]
        screen = shop.http.get(f"/ui/journal/{found[0]['seq']}", params={"m": nim}, headers={"Cookie": cookie})
        assert receipt["counters"] in screen.text
