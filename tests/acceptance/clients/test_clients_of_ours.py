"""The clients that are published, `clients/python` and `clients/js`: they have the loop of repeats, so that a till needs none."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import avepay_mcf
import pytest
from avepay_mcf import Mcf, McfError
from support.http_answers import Answer, Request, answering, json_answer, passed_on
from support.rehearsals import rehearsed_cases
from support.relay_site import RelaySite, mistyped
from support.shop import NIM, Machine, Shop, invoice
from support.tools import need

from common.wire.keys import private_line
from daemon.api.access.rehearsal import CASES

pytestmark = pytest.mark.long

CLIENTS = Path(__file__).parents[3] / "clients"
OTHER = "EL02000016-1"
PAGE_CASES = rehearsed_cases()
ERRORS = {"MACHINE_REFUSED": "MachineRefused", "MACHINE_ATTENTION": "NeedsAPerson"}

JS = """
import * as avepay from "%s";
const { url, key, nim, cases, test } = JSON.parse(process.argv[1]);
const till = (more) => new avepay.Mcf({ url, key, nim, till: "js", ...more });
const sale = (invoiceNumber, more) => ({ invoiceNumber, invoiceType: "FV", ...more,
  items: [{ name: "Riz", taxGroup: "B", unitPrice: 15000, quantity: 1 }], payments: [{ method: "E", amount: 15000 }] });
const outcome = async (work) => {
  try { return (await work()).codeSecef; } catch (error) { return [error.constructor.name, error.code ?? error.key ?? String(error)]; }
};
const found = {};
%s
console.log(JSON.stringify(found));
"""


def in_node(script: str, url: str, key: str, nim: str, cases: dict[str, str]) -> dict[str, Any]:
    need("node")
    settings = json.dumps({"url": url, "key": key, "nim": nim, "cases": cases})
    text = JS % ((CLIENTS / "js/index.mjs").as_uri(), script)
    command = ["node", "--input-type=module", "-e", text, settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def in_python(url: str, key: str, nim: str, cases: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for case, value in cases.items():
        with Mcf(url, key, nim, till="py", test=value) as mcf:
            try:
                found[case] = mcf.certify(invoice(f"PY-{case}")).code_secef
            except avepay_mcf.Answered as error:
                found[case] = [type(error).__name__, error.code]
    return found


def test_each_case_of_the_page_with_each_client(tmp_path: Path) -> None:
    """What a wait solves is certified, once and without a word; what needs a person is an error of its own."""
    cases = {case: f"{case}:1" if expected.most else case for case, expected in CASES.items() if case != "late"}
    script = """for (const [name, test] of Object.entries(cases))
        found[name] = await outcome(() => till({ test }).certify(sale(`JS-${name}`)));"""
    machines = (Machine(tmp_path), Machine(tmp_path, OTHER))  # never started: the sandbox needs none
    with Shop(tmp_path, machines=machines) as shop, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{shop.port}"
        keys = shop.key("test"), shop.key("test", OTHER)
        shop.start_daemon(ready=False)
        by_python = pool.submit(in_python, url, keys[0], NIM, cases)
        by_node = pool.submit(in_node, script, url, keys[1], OTHER, cases)
        for found in (by_python.result(), by_node.result()):
            for case in cases:
                if CASES[case].always:
                    code = PAGE_CASES[case].code
                    assert found[case] == [ERRORS[code], code]
                else:
                    assert found[case].startswith("TESTFACT"), (case, found)


@contextmanager
def losing(shop: Shop) -> Iterator[tuple[str, list[str]]]:
    """What stands between: the answer to the first POST of each invoice is lost, or becomes a gateway's own page. Its URL, and what came by."""
    seen: list[str] = []

    def between(request: Request) -> Answer | None:
        found = passed_on(request, str(shop.http.base_url))
        line = f"{request.method} {request.path.rpartition('/')[2]}"
        seen.append(line)
        if request.method == "POST" and seen.count(line) == 1:
            return Answer(504, b"<html>Gateway Time-out</html>") if b"GATEWAY" in request.body else None
        return found

    with answering(between) as url:
        yield url, seen


@pytest.mark.parametrize("number", ["LOST", "GATEWAY"])
def test_an_answer_that_is_lost_is_looked_up(shop: Shop, number: str) -> None:
    """After a lost connection or a gateway's 504 the client asks what became of the request, and has the receipt of the one certification."""
    with losing(shop) as (url, seen):
        with Mcf(url, shop.key(), NIM, till="py") as mcf:
            receipt = mcf.certify(invoice(f"PY-{number}"))
        assert seen == ["POST certify", f"GET py-certify-PY-{number}"]
        assert shop.get(f"certifications/{receipt.code_secef}").json()["invoiceNumber"] == f"PY-{number}"
    with losing(shop) as (url, seen):
        script = f'found.code = await outcome(() => till().certify(sale("JS-{number}")));'
        code = in_node(script, url, shop.key(), NIM, {})["code"]
        assert seen == ["POST certify", f"GET js-certify-JS-{number}"]
        assert shop.get(f"certifications/{code}").json()["invoiceNumber"] == f"JS-{number}"


RECEIPT = {
    "codeSecef": "CODE", "invoiceNumber": "L-1", "invoiceType": "FV", "totalTtc": 15000, "nim": NIM, "ifu": "00000000X",
    "dateTime": "20260101120000", "qrContent": "QR", "tc": 1, "fvc": 1, "frc": 0, "certifiedAt": "2026-01-01T12:00:00.000Z",
}  # fmt: skip


def restarting(between: int) -> Callable[[Request], Answer | None]:
    """A box that accepts a sale for later, and is then restarted behind its proxy, which answers `between`, before it certifies."""
    readings = iter([None, Answer(between, b"<html>no server is available</html>")])

    def box(request: Request) -> Answer | None:
        if request.method == "POST":
            return json_answer(202, {"status": "waiting"})
        return next(readings, json_answer(200, {"status": "certified", "receipt": RECEIPT}))

    return box


@pytest.mark.parametrize("status", [503, 504])
def test_a_request_is_followed_through_a_restart_of_the_box(status: int) -> None:
    """Of a sale that is accepted for later, and by a look-up: neither a lost connection nor a proxy's answer is an error, and least of all one for which
    somebody has to look."""
    script = """found.code = await outcome(() => till().certify(sale("L-1")));"""
    look = 'found.status = (await till().findRequest("js-certify-L-1")).status;'
    waited: list[float] = []
    with answering(restarting(status)) as url, Mcf(url, "key", NIM, till="py", sleep=waited.append) as mcf:
        assert mcf.certify(invoice("L-1")).code_secef == "CODE"
    with answering(restarting(status)) as url, Mcf(url, "key", NIM, till="py", sleep=waited.append) as mcf:
        assert mcf.find_request("py-certify-L-1").status == "certified"
    assert len(waited) == 4
    with answering(restarting(status)) as url:
        assert in_node(script, url, "key", NIM, {}) == {"code": "CODE"}
    with answering(restarting(status)) as url:
        assert in_node(look, url, "key", NIM, {}) == {"status": "certified"}


def saying(status: int, found: dict[str, Any], seen: list[str]) -> Callable[[Request], Answer]:
    """A box that answers each POST and each GET alike; what was sent goes to `seen`."""

    def box(request: Request) -> Answer:
        seen.append(request.method)
        return json_answer(status if request.method == "POST" else 200, found)

    return box


@pytest.mark.parametrize("code", ["MACHINE_ATTENTION", "PAIR_NOT_COMPARED", "LEDGER_DAMAGED", "BOX_AMBIGUOUS"])
def test_what_no_wait_ends_is_said_at_once(code: str) -> None:
    """A 503 for which somebody has to look: an error after one request."""
    seen: list[str] = []
    with answering(saying(503, {"code": code, "status": 503, "detail": "look"}, seen)) as url:
        with Mcf(url, "key", NIM, till="py") as mcf, pytest.raises(avepay_mcf.NeedsAPerson) as error:
            mcf.certify(invoice("P-1"))
        found = in_node('found.error = await outcome(() => till().certify(sale("P-1")));', url, "key", NIM, {})
    assert (error.value.code, found) == (code, {"error": ["NeedsAPerson", code]})
    assert seen == ["POST", "POST"]


def test_the_end_of_patience_says_why() -> None:
    """In the words of the last answer: of a client whose clock is behind each signed request is 410, with both times."""
    words = "Mcfd-Not-After 10:00: it is 10:02 here"
    problem = {"code": "REQUEST_EXPIRED", "status": 410, "detail": words}
    with answering(saying(410, problem, [])) as url:
        with Mcf(url, "key", NIM, till="py", patience=1) as mcf, pytest.raises(avepay_mcf.NoAnswer, match=words):
            mcf.certify(invoice("P-1"))
        script = 'await till({ patience: 1 }).certify(sale("P-1")).catch((error) => { found.words = error.message; });'
        assert words in in_node(script, url, "key", NIM, {})["words"]


def test_a_sale_that_somebody_took_back_is_not_sent_again() -> None:
    """It was accepted for later, and taken back on the page: with the same key it would be certified after all."""
    seen: list[str] = []
    with answering(saying(202, {"status": "abandoned", "invoiceNumber": "B-1"}, seen)) as url:
        with Mcf(url, "key", NIM, till="py") as mcf, pytest.raises(avepay_mcf.Refused) as error:
            mcf.certify(invoice("B-1"))
        found = in_node('found.error = await outcome(() => till().certify(sale("B-1")));', url, "key", NIM, {})
    assert (error.value.code, found) == ("TAKEN_BACK", {"error": ["Refused", "TAKEN_BACK"]})
    assert seen == ["POST", "GET"] * 2


def test_errors_say_what_to_do(shop: Shop) -> None:
    """Each kind is a class, with what its problem holds; nothing listens: the error has the key to go on with later."""
    with Mcf(f"{shop.http.base_url}", shop.key(), NIM, till="py") as mcf:
        sale = invoice("PY-1", 1000)
        receipt = mcf.certify(sale)
        assert mcf.certify(sale) == receipt
        assert mcf.preview({**sale, "invoiceNumber": "PY-2"}).total_ttc == 1000
        with pytest.raises(avepay_mcf.DuplicateInvoice) as duplicate:
            mcf.certify(sale, key="another")
        assert duplicate.value.certification == receipt
        with pytest.raises(avepay_mcf.InvalidRequest) as invalid:
            mcf.certify({**sale, "invoiceNumber": "PY-3", "payments": []})
        assert [fault.field for fault in invalid.value.errors] == ["payments"]
        credit = {**invoice("PY-4", 1001), "invoiceType": "FA", "originalInvoiceNumber": "PY-1"}
        with pytest.raises(avepay_mcf.CreditExceedsOriginal) as exceeds:
            mcf.credit_note(credit)
        assert exceeds.value.problem.original_ttc == 1000
        assert mcf.find_request("py-certify-PY-1").receipt == receipt
        assert mcf.find_request("never") is None
        assert mcf.close_period(key="1") == mcf.close_period(key="1")
        assert "PY-1" in mcf.ticket(receipt.code_secef)
        assert mcf.get("info")["nim"] == NIM
    with Mcf(f"{shop.http.base_url}", "ak_live_wrong", NIM, till="py") as mcf, pytest.raises(avepay_mcf.NotAllowed):
        mcf.certify(invoice("PY-5"))
    with (
        Mcf("http://127.0.0.1:1", shop.key(), NIM, till="py", patience=1) as mcf,
        pytest.raises(avepay_mcf.NoAnswer) as none,
    ):
        mcf.certify(invoice("PY-6"))
    assert none.value.key == "py-certify-PY-6"
    assert issubclass(avepay_mcf.NoAnswer, McfError)
    script = """
      found.ok = await outcome(() => till().certify(sale("JS-1")));
      found.again = await outcome(() => till().certify(sale("JS-1")));
      found.duplicate = await outcome(() => till().certify(sale("JS-1"), "another"));
      found.invalid = await outcome(() => till().certify({ ...sale("JS-3"), payments: [] }));
      found.exceeds = await outcome(() => till().creditNote({ ...sale("JS-4"), invoiceType: "FA", originalInvoiceNumber: "PY-1" }));
      found.wrong = await outcome(() => till({ key: "ak_live_wrong" }).certify(sale("JS-5")));
      found.none = await outcome(() => till({ url: "http://127.0.0.1:1", patience: 1 }).certify(sale("JS-6")));
      found.ticket = (await till().ticket(found.ok)).includes("JS-1");
      found.status = (await till().findRequest("js-certify-JS-1")).status;
      found.z = (await till().closePeriod("1")).kind;
      found.preview = (await till().preview(sale("JS-7"))).totalTtc;
    """
    found = in_node(script, f"{shop.http.base_url}", shop.key(), NIM, {})
    assert found.pop("ok") == found.pop("again")
    assert found == {
        "duplicate": ["DuplicateInvoice", "DUPLICATE_INVOICE"],
        "invalid": ["InvalidRequest", "INVALID_REQUEST"],
        "exceeds": ["CreditExceedsOriginal", "CREDIT_EXCEEDS_ORIGINAL"],
        "wrong": ["NotAllowed", "UNAUTHENTICATED"],
        "none": ["NoAnswer", "js-certify-JS-6"],
        "ticket": True,
        "status": "certified",
        "z": "Z",
        "preview": 15000,
    }


@pytest.mark.parametrize("signed", [False, True])
def test_javascript_through_the_relay(tmp_path: Path, signed: bool) -> None:
    """It previews, certifies, reads and closes, by a key that is sent and by one that signs; a key that signs and is of no box is refused."""
    site = RelaySite(tmp_path)
    try:
        asyncio.run(site.up())
        key = site.key(signed=signed)
        stranger = private_line(b"\1" * 32) if signed else mistyped(key)
        script = f"""
          const sales = await till().get("certifications");
          found.before = sales.count;
          found.preview = (await till().preview(sale("JS-1"))).totalTtc;
          found.ok = await outcome(() => till().certify(sale("JS-1")));
          found.again = await outcome(() => till().certify(sale("JS-1")));
          found.found = (await till().get("certifications", {{ invoiceNumber: "JS-1" }})).count;
          found.status = (await till().findRequest("js-certify-JS-1")).status;
          found.none = await till().findRequest("js certify/é?");
          found.ticket = (await till().ticket(found.ok)).includes("JS-1");
          found.cash = (await till().moveCash("deposit", 5000, "fond de caisse", "1")).amount;
          found.z = (await till().closePeriod("1")).certs_count;
          found.stranger = await outcome(() => till({{ key: {json.dumps(stranger)} }}).certify(sale("JS-2")));
        """
        found = in_node(script, site.relays[0].base, key, NIM, {})
        (certified,) = site.shop.machines[0].certified()
    finally:
        site.down()
    assert found.pop("ok") == found.pop("again") == certified["code"]
    assert found == {
        "before": 0,
        "preview": 15000,
        "found": 1,
        "status": "certified",
        "none": None,
        "ticket": True,
        "cash": 5000,
        "z": 1,
        "stranger": ["NotAllowed", "UNAUTHENTICATED"],
    }
