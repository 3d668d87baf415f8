"""Invoices and reports on paper: asked for over HTTP, printed on a printer that is there or is not."""

import html
import re
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from support.browser import Visitor, chromium, create_users, session_of, staffed_shop
from support.paper.escpos import printed
from support.paper.png import png
from support.receivers.receipt_printer import FINE, NO_PAPER, ReceiptPrinter
from support.shop import NIM, PLAIN, Shop, invoice, wait_for
from support.sse import Screen
from support.tools import need

COMPANY = {
    "cadastral": "12340560078",
    "regime": "RNI",
    "tax_office": "DME Centre I",
    "accounts": ["BF074 01001"],
    "logo": "logo.png",
}
LOGO = png([[255 * ((x // 8 + y // 8) % 2) for x in range(160)] for y in range(64)])


@pytest.fixture(scope="module")
def printer() -> Iterator[ReceiptPrinter]:
    with ReceiptPrinter() as printer:
        yield printer


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, printer: ReceiptPrinter) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "logo.png").write_bytes(LOGO)
    config = {"company": COMPANY, "printer": {"address": printer.address, "width": 32, "z": True, "timeout": 30.0}}
    with Shop(folder, config=config) as shop:
        yield shop.start()


@pytest.fixture(autouse=True)
def _fresh(printer: ReceiptPrinter) -> None:
    printer.reset()


def sold(shop: Shop, number: str) -> dict[str, str]:
    answer = shop.certify(invoice(number))
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_every_document_in_every_form(shop: Shop) -> None:
    """Each document comes as text, HTML and ESC/POS, by `format` and by `Accept`, in French and English, narrow and wide."""
    code = sold(shop, "T-2")["codeSecef"]
    shop.close_period()
    paths = [f"certifications/{code}", "reports/x", "reports/z/1", "reports/a", "reports/articles"]
    for path in paths:
        for width, language in ((32, "fr"), (48, "en")):
            text = shop.get(f"{path}/ticket", format="text", width=width, lang=language)
            assert text.status_code == 200, text.text
            assert max(map(len, text.text.splitlines())) <= width
            escpos = shop.get(f"{path}/ticket", format="escpos", width=width, lang=language)
            assert printed(escpos.content).cut
            page = shop.get(f"{path}/ticket", format="html", width=width, lang=language)
            assert f'<html lang="{language}">' in page.text
            assert "img-src data:; style-src 'unsafe-inline'; sandbox" in page.headers["content-security-policy"]
        for accepted in ("text/html, */*", "application/pdf;q=0.4, text/html;q=0.9", "application/pdf;q=0, text/html"):
            headers = {**shop.headers(), "Accept": accepted}
            assert "text/html" in shop.http.get(f"/v1/mcf/{NIM}/{path}/ticket", headers=headers).headers["content-type"]


def test_the_answer_of_certify_has_the_paper_where_it_is_wanted(shop: Shop) -> None:
    """In each form, and under the same key with it or without; a form that there is not certifies nothing, and a dry run has no paper."""

    def certify(number: str, path: str = "certify", **query: str) -> httpx.Response:
        return shop.certify(invoice(number), key=number, path=path, **query)

    first = certify("T-D", document="text").json()
    ticket = shop.get(f"certifications/{first['codeSecef']}/ticket")
    paper = first.pop("document")
    assert (b64decode(paper["content"]).decode(), paper["mediaType"]) == (ticket.text, "text/plain; charset=utf-8")
    again = certify("T-D")
    assert (again.headers["Idempotency-Replayed"], again.json()) == ("true", first)
    for form, start in (("pdf", b"%PDF-"), ("html", b"<!doctype html>"), ("escpos", b"\x1b@")):
        assert b64decode(certify("T-D", document=form).json()["document"]["content"])[:15].startswith(start)
    for query in ({"document": "docx"}, {"document": "pdf", "dry_run": "true"}):
        refused = certify("T-E", **query)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "document")
    assert shop.get("requests/T-E").status_code == 404


@pytest.mark.long
def test_a_scanner_reads_the_code_of_a_ticket(shop: Shop, tmp_path: Path) -> None:
    """The page as a browser prints it shows the logo and carries a QR code that a scanner reads as the receipt's `qrContent`."""
    need("zbarimg")
    receipt = sold(shop, "T-3")
    html = shop.get(f"certifications/{receipt['codeSecef']}/ticket", format="html").text
    with chromium() as browser:
        page = browser.new_page(device_scale_factor=2)
        page.set_content(html)
        page.screenshot(path=tmp_path / "ticket.png", full_page=True)
        assert page.title() == "T-3"
        assert page.locator("img.logo").evaluate("image => image.naturalWidth") == 160
    done = subprocess.run(
        ["zbarimg", "--quiet", "--raw", tmp_path / "ticket.png"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == receipt["qrContent"]


@pytest.mark.parametrize(
    ("query", "field"),
    [({"width": 40}, "width"), ({"format": "docx"}, "format"), ({"lang": "de"}, "lang"), ({"copy": "third"}, "copy")],
)
def test_what_cannot_be_printed_so_is_refused(shop: Shop, query: dict[str, str], field: str) -> None:
    """A width, form, language or copy that there is not is named; nothing is guessed."""
    answer = shop.get("reports/x/ticket", **query)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_a_code_that_is_not_there(shop: Shop) -> None:
    """404 for a certification or a Z that this book does not have, as for their JSON."""
    for path in ("certifications/NONE/ticket", "reports/z/999/ticket", "reports/z/none", "reports/z/999"):
        assert shop.get(path).status_code == 404


def test_a_stored_z_comes_back_as_it_was_answered(shop: Shop) -> None:
    """By its number and by its `report_id`, byte for byte the answer that the till got."""
    closed = shop.close_period()
    body = closed.json()
    for name in (body["z_number"], body["report_id"]):
        again = shop.get(f"reports/z/{name}")
        assert (again.status_code, again.content) == (200, closed.content)
    assert shop.get(f"reports/z/{body['z_number']}", mode="test").status_code == 404


def post(shop: Shop, path: str, **query: str) -> tuple[int, dict[str, str]]:
    answer = shop.certify(None, path=path, **query)
    return answer.status_code, answer.json()


def test_the_box_prints(shop: Shop, printer: ReceiptPrinter) -> None:
    """POST …/print sends the document to the printer of the box, at its width, with the code drawn by the printer and the logo in dots."""
    receipt = sold(shop, "T-5")
    assert post(shop, f"certifications/{receipt['codeSecef']}/print", copy="duplicate") == (200, {"printed": "T-5"})
    out = printer.wait()
    assert [content for content, _, _ in out.codes] == [receipt["qrContent"]]
    assert "DUPLICATA" in out.text
    assert [(len(rows[0]), len(rows)) for rows in out.pictures] == [(160, 64)]
    assert max(len(text) for text, _, _ in out.lines) <= 32


def test_a_field_in_the_body_of_a_print_is_told(shop: Shop, printer: ReceiptPrinter) -> None:
    """How a document is printed stands in the URL: in the body it is named in `warnings`, and refused from a strict till, before paper is used (decision 27)."""
    path, body = "reports/x/print", {"copy": "duplicate"}
    strict = shop.certify(body, path=path, headers={"Mcfd-Strict": "true"})
    assert (strict.status_code, [error["field"] for error in strict.json()["errors"]]) == (422, ["copy"])
    assert printer.jobs == []
    lenient = shop.certify(body, path=path)
    assert (lenient.status_code, [warning["field"] for warning in lenient.json()["warnings"]]) == (200, ["copy"])


def test_a_printer_without_paper_is_told(shop: Shop, printer: ReceiptPrinter) -> None:
    """503 says why nothing came out, the invoice is certified all the same, and with paper it prints."""
    code = sold(shop, "T-6")["codeSecef"]
    printer.offline = NO_PAPER
    status, problem = post(shop, f"certifications/{code}/print")
    assert (status, problem["code"]) == (503, "PRINTER_UNAVAILABLE")
    assert "out of paper" in problem["detail"]
    printer.offline = FINE
    assert post(shop, f"certifications/{code}/print")[0] == 200


def test_a_printer_that_hangs_delays_no_closure(shop: Shop, printer: ReceiptPrinter) -> None:
    """While a till waits for its paper, the report of articles is closed at once."""
    code = shop.certify(invoice("T-9", *range(100, 400))).json()["codeSecef"]
    printer.takes = 10
    with ThreadPoolExecutor(1) as till:
        paper = till.submit(posted, shop, f"certifications/{code}/print")
        assert printer.hangs.wait(60)
        assert posted(shop, "reports/articles").status_code == 201
        assert not paper.done()
        printer.takes = None
        assert paper.result().json()["detail"].endswith("(the connection was cut)")


def posted(shop: Shop, path: str) -> httpx.Response:
    """On a connection of its own."""
    url = f"{shop.http.base_url}/v1/mcf/{NIM}/{path}"
    return httpx.post(url, json={}, headers=shop.headers(), timeout=60, verify=PLAIN)


def test_a_person_prints_from_the_page(shop: Shop, printer: ReceiptPrinter) -> None:
    """A duplicate, X and Z come out of the shop's own printer, and the screen that asked for it says so; who may not see reports prints none,
    and a printer without paper is reported."""
    create_users(shop, ["seller", "reader"])
    code = sold(shop, "T-7")["codeSecef"]
    z = shop.close_period().json()["z_number"]
    printer.wait()  # the Z prints itself
    for role, paper, out in (
        ("seller", f"invoice/{code}", "DUPLICATA"),
        ("reader", f"z/{z}", f"RAPPORT Z N° {z}"),
        ("reader", "x/open", "X"),
    ):
        with Visitor(shop, role) as person:
            answer = person.post(f"/ui/paper/{paper}")
            assert answer.status_code == 303
            assert out in printer.wait().text.replace("\N{NO-BREAK SPACE}", " ")
            place = answer.headers["location"]
            if role == "seller":
                assert person.post(f"/ui/paper/z/{z}").status_code == 403
                continue
            screen = person.get(place).text
            assert ">Imprimé.</p>" in screen
            assert f'action="/ui/paper/{paper}' in screen
    printer.offline = NO_PAPER
    with Visitor(shop, "reader") as person:
        refused = person.post(f"/ui/paper/z/{z}")
    assert refused.status_code == 503
    assert "L'imprimante de tickets n'a pas imprimé" in html.unescape(refused.text)


def test_each_z_prints_itself(shop: Shop, printer: ReceiptPrinter) -> None:
    """With `z = true` a closure comes out of the printer without being asked for, once; one of the sandbox does not."""
    shop.close_period(mode="test")
    number = shop.close_period().json()["z_number"]
    assert f"RAPPORT Z N° {number}" in printer.wait().text.replace("\N{NO-BREAK SPACE}", " ")
    assert len(printer.jobs) == 1


def test_a_z_whose_printing_a_kill_cut_is_announced(tmp_path: Path, printer: ReceiptPrinter) -> None:
    """At the next start, and not printed a second time by itself: an event and the first screen name the Z until its paper is made. One that the printer
    refused is named there as well."""
    config = {"printer": {"address": printer.address, "z": True, "timeout": 30.0}}
    with staffed_shop(tmp_path, "reader", config=config) as shop:
        shop.http.cookies.update(session_of(shop, "reader"))

        def unprinted() -> list[str]:
            page = shop.http.get("/ui/", headers={"Accept": "text/html"}).text
            return re.findall(r'data-testid="unprinted"[^>]*href="[^"]*/ui/closures/(\d+)', page)

        assert shop.close_period().json()["z_number"] == 1
        printer.wait()
        wait_for(lambda: not unprinted(), "the note that Z 1 is printed")
        printer.takes = 10
        assert shop.close_period().json()["z_number"] == 2
        assert printer.hangs.wait(60)
        shop.kill_daemon()
        printer.reset()
        shop.start_daemon()
        with Screen(shop, last=0) as screen:
            (event,) = screen.wait_for("printer.failed")
        assert event.data["reason"].startswith("Z 2: ")
        assert unprinted() == ["2"]
        printer.offline = NO_PAPER
        third = shop.close_period().json()
        assert third["z_number"] == 3
        wait_for(lambda: unprinted() == ["2", "3"], "the notice")
        with Screen(shop, last=0) as screen:
            *_, event = screen.wait_for("printer.failed", 2)
        assert event.data["reason"] == "Z 3: the printer is out of paper"
        assert post(shop, "reports/z/3/print")[0] == 503
        assert unprinted() == ["2", "3"]
        printer.offline = FINE
        for reference in (2, third["report_id"]):
            assert post(shop, f"reports/z/{reference}/print")[0] == 200
        assert unprinted() == []
        assert shop.stop_daemon() == 0
        shop.start_daemon()
        assert unprinted() == []
        assert len(printer.jobs) == 2
        with Screen(shop, last=0) as screen:
            screen.wait_for("mcf.connected", 2)
            assert len(screen.of("printer.failed")) == 2
