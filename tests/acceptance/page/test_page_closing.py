"""Closing a period in the page, in real Chromium: X, the confirmation, one Z whatever happens on the way, and what the accountant gets."""

import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from playwright.sync_api import expect
from support.browser import (
    BOTH_VIEWS,
    FRENCH_PHONE,
    PATIENCE_MS,
    Person,
    View,
    Visitor,
    session_of,
    staffed_shop,
)
from support.shop import NIM, Machine, Shop, invoice, wait_for

from common.numbers import money
from daemon.operations import CreateKey
from daemon.store.tables.audit import newest_entries

People = Callable[..., Person]
in_both_views = pytest.mark.parametrize("view", BOTH_VIEWS)


def zs(shop: Shop) -> list[int]:
    return [report["z_number"] for report in shop.get("reports").json()["reports"]]


def open_period(shop: Shop) -> dict[str, Any]:
    """X, once it has everything that was certified since the last Z."""
    closed = sum(report["certs_count"] for report in shop.get("reports").json()["reports"])
    return shop.x_with(len(shop.machines[0].certified()) - closed)


@in_both_views
def test_a_double_click_makes_one_z(person: People, shop: Shop, view: View) -> None:
    """The way to it is on the first screen that Today shows, on a phone too. The confirmation shows what will be closed; pressed twice, and
    sent once more by hand, it closes one period."""
    before, count = zs(shop), open_period(shop)["certs_count"]
    awa = person("manager", view)
    expect(awa.go("/ui/").get_by_test_id("close-z")).to_be_in_viewport(ratio=1)
    awa.page.get_by_test_id("close-z").click()
    expect(awa.page.locator(".figures strong").first).to_have_text(str(count))
    key = awa.page.locator("[name=key]").get_attribute("value")
    awa.page.get_by_test_id("confirm-z").dblclick()
    awa.sees("z-number")
    number = awa.text("z-number")
    awa.sees_message("Closed: Z {number}.", number=number)
    assert awa.page.title() == f"Z {number} – mcfd"
    again = awa.context.request.post(
        f"{awa.base}/ui/z", form={"key": key}, headers={"Origin": awa.base}, max_redirects=0
    )
    assert again.headers["location"].startswith(f"/ui/closures/{number}")
    assert zs(shop) == [*before, int(number)]


def test_the_button_that_closes_follows_what_was_sold(person: People, shop: Shop) -> None:
    """By itself, on a screen that is open: nothing to close after a Z made elsewhere, something once a sale was made; who is at it with the
    keyboard stays there."""
    assert shop.certify(invoice("BLUE-1")).status_code == 200
    open_period(shop)
    page = person("manager").go("/ui/")
    button, primary = page.get_by_test_id("close-z"), re.compile("btn-primary")
    expect(button).to_have_class(primary)
    button.focus()
    assert shop.close_period().status_code == 201
    expect(button).not_to_have_class(primary)
    assert shop.certify(invoice("BLUE-2")).status_code == 200
    expect(button).to_have_class(primary)
    expect(button).to_be_focused()


@in_both_views
def test_the_drawer_is_counted_at_the_closing(person: People, shop: Shop, view: View) -> None:
    """By notes and coins or as one sum, without a script too: what was counted and the difference stand on the screen of the Z, in the report, on paper and in the
    audit log. A count that is no number closes nothing; a count is optional."""
    assert shop.certify(invoice(f"COUNT-{view.language}", 7000)).status_code == 200
    open_period(shop)
    expected, before = shop.get("reports/x").json()["cash"]["expected"], zs(shop)
    awa = person("manager", view)
    page = awa.go("/ui/z")
    page.fill("[name=counted]", "sept mille")
    page.get_by_test_id("confirm-z").click()
    expect(page.get_by_role("alert")).to_contain_text(view.say("Counted in the drawer"))
    awa.complaints.clear()  # Chromium notes the 422
    assert zs(shop) == before
    page.fill("[name=counted]", "1.000")
    assert re.sub(r"\D", "", awa.text("difference").partition("F")[0]) == str(abs(1000 - expected))
    page.fill("[name=counted]", str(expected + 12500))
    assert awa.text("difference").endswith("+12\N{NO-BREAK SPACE}500\N{NO-BREAK SPACE}F\N{NO-BREAK SPACE}CFA")
    page.fill("[name=counted]", "")
    page.locator("summary", has_text=view.say("By notes and coins")).click()
    page.fill("[name=n1000]", "3")
    page.fill("[name=c25]", "4")
    assert page.input_value("[name=counted]") == "3100"
    expect(page.get_by_test_id("difference")).to_contain_text(re.compile(r"\d"))
    page.get_by_test_id("confirm-z").click()
    awa.sees("z-number")
    report = shop.get(f"reports/z/{awa.text('z-number')}").json()
    assert report["cash_count"] == {"counted": 3100, "difference": 3100 - expected}
    assert re.sub(r"\D", "", awa.text("difference").partition("F")[0]) == str(abs(3100 - expected))
    ticket = shop.get(f"reports/z/{awa.text('z-number')}/ticket", format="text", lang=view.language).text
    assert view.say("Counted in the drawer") in ticket
    entries = shop.with_store(lambda store: store.ledger.read(newest_entries, limit=20))
    assert next(entry for entry in entries if entry.action == "closure.created").detail["counted"] == "3100"
    assert "cash_count" not in shop.close_period().json()


@in_both_views
def test_a_day_is_closed_once_by_two_people(person: People, shop: Shop, view: View) -> None:
    """Both have the form open. Who sends it second, with another count, reads with which Z the day was closed and which count stands in it."""
    assert shop.certify(invoice(f"TWO-{view.language}", 800)).status_code == 200
    open_period(shop)
    before = zs(shop)
    first, second = person("manager", view), person("technician", view)
    for each, counted in ((first, "2 500"), (second, "900")):
        each.go("/ui/z").fill("[name=counted]", counted)
    for each in (first, second):
        each.page.get_by_test_id("confirm-z").click()
        each.sees("z-number")
    number = first.text("z-number")
    first.sees_message("Closed: Z {number}.", number=number)
    alert = second.page.locator("main").get_by_role("alert")
    expect(alert).to_contain_text(f"Z {number}")
    expect(alert).to_contain_text(money(2500))
    assert zs(shop) == [*before, int(number)]
    assert shop.get(f"reports/z/{number}").json()["cash_count"]["counted"] == 2500


def test_a_till_closes_while_the_form_is_open(person: People, shop: Shop) -> None:
    """The count was of that day, and entered a Z of nothing as its difference, for good. The form says that the day was closed, and shows the period
    that is open now; sent again it closes that one. A till that names the last Z it knows is refused as well."""
    assert shop.certify(invoice("MEANWHILE", 1900)).status_code == 200
    open_period(shop)
    awa = person("manager")
    awa.go("/ui/z").fill("[name=counted]", "1 900")
    assert shop.close_period().status_code == 201
    before = zs(shop)
    late = {"cashCounted": 1900, "afterZ": before[-1] - 1}
    refused = shop.certify(late, path="reports/z")
    assert (refused.status_code, refused.json()["code"]) == (409, "PERIOD_ENDED")
    awa.page.get_by_test_id("confirm-z").click()
    expect(awa.page.get_by_role("alert").last).to_contain_text("clôturée entre-temps")
    awa.complaints.clear()  # Chromium notes the 409
    expect(awa.page.locator(".figures strong").first).to_have_text("0")
    assert zs(shop) == before
    awa.page.get_by_test_id("confirm-z").click()
    awa.sees("z-number")
    assert zs(shop) == [*before, int(awa.text("z-number"))]
    assert "cash_count" not in shop.get(f"reports/z/{awa.text('z-number')}").json()


@pytest.mark.long
def test_a_machine_that_is_unplugged_during_the_confirmation(person: People, shop: Shop) -> None:
    """Nothing is closed and the dialogue stays, saying why; pressed again with the machine back, it closes one period."""
    before = zs(shop)
    awa = person("manager", FRENCH_PHONE)
    page = awa.go("/ui/z")
    expect(page.get_by_test_id("machine-state")).to_have_count(0)
    shop.machines[0].kill()
    wait_for(lambda: shop.http.get("/health/ready").status_code == 503, "the machine is missed")
    page.get_by_test_id("confirm-z").click()
    expect(page.get_by_role("alert")).to_have_text(
        "La machine ne répond pas\N{NO-BREAK SPACE}; rien n'a été fait.", timeout=PATIENCE_MS
    )
    awa.complaints.clear()  # Chromium notes the 503
    expect(page.get_by_test_id("machine-state")).to_contain_text("ne répond pas")
    assert zs(shop) == before
    shop.machines[0].start()
    wait_for(lambda: shop.http.get("/health/ready").status_code == 200, "the machine")
    page.get_by_test_id("confirm-z").click()
    awa.sees("z-number")
    assert zs(shop) == [*before, int(awa.text("z-number"))]


def test_the_shops_name_stays_when_its_machine_is_away(tmp_path: Path) -> None:
    """The first screen has it, also of a box that was started again while the machine is switched off: as on its papers. What waits for a
    headquarters gets no message where there is none."""
    with staffed_shop(tmp_path, "manager") as shop:
        shop.http.cookies.update(session_of(shop, "manager"))

        def screen_text(path: str) -> str:
            return shop.http.get(path, headers={"Accept": "text/html", "Accept-Language": "en"}).text

        assert "<strong>MAISON FASO</strong>" in screen_text("/ui/")
        assert shop.certify(invoice("N-1")).status_code == 200
        shop.closed()
        assert "confirm-z" in screen_text("/ui/z")
        assert "headquarters" not in screen_text("/ui/z")
        assert shop.stop_daemon() == 0
        shop.machines[0].stop()
        shop.start_daemon(ready=False)
        assert "<strong>MAISON FASO</strong>" in screen_text("/ui/")


@pytest.mark.long
def test_a_years_journal_is_made_and_downloaded(person: People, shop: Shop) -> None:
    """In the background, as the French spreadsheet wants it; closures and totals come as files at once."""
    assert shop.certify(invoice("EXPORT-1", 2222)).status_code == 200
    open_period(shop)
    awa = person("reader")
    awa.go("/ui/closures").get_by_role("link", name="Fichiers pour le comptable").click()
    awa.press("Make the file")
    link = awa.page.get_by_role("link", name=re.compile(r"^journal-.*\.csv$"))
    expect(link).to_be_visible()
    with awa.page.expect_download() as download:
        link.click()
    lines = download.value.path().read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("N° d'ordre;État;Facture")
    assert sum(";EXPORT-1;" in line for line in lines) == 1
    totals = awa.context.request.get(f"{awa.base}/ui/files/a/json").json()
    certified = [line for line in lines if ";certifiée;" in line]  # movements of cash are in it too
    assert (totals["kind"], totals["certs_count"]) == ("A", len(certified))
    taxes = awa.context.request.get(f"{awa.base}/ui/vat/csv").text().splitlines()
    assert (taxes[0], taxes[-1]) == (
        "\ufeffGroupe;HT;TVA;TTC",
        f"Total;{totals['total_ht']};{totals['total_tva']};{totals['total_ttc']}",
    )
    rows = awa.context.request.get(f"{awa.base}/ui/files/closures/csv").text().splitlines()
    assert len(rows) == 1 + len(zs(shop))


def test_a_declaration_says_what_it_is_not(person: People, shop: Shop) -> None:
    """The VAT of a month that goes on, or of the test machine, is not taken for one to be handed in: the PDF says it as the screen does."""
    awa = person("reader")

    def declaration(**query: str) -> str:
        content = awa.context.request.get(f"{awa.base}/ui/vat/pdf", params=query).body()
        return pypdf.PdfReader(io.BytesIO(content)).pages[0].extract_text()

    assert "Ce mois n'est pas terminé" in declaration()
    assert "Ce mois" not in declaration(month="2025-01")
    assert "SANS VALEUR FISCALE" in declaration(m=f"{NIM}:test")
    assert "SANS VALEUR FISCALE" not in declaration()


def test_a_machine_that_was_replaced_is_read_and_closed_in_the_page(tmp_path: Path) -> None:
    """Its sales and its open period were nowhere in the page, which was green, while no till had a key for the new machine. The banner says both, one after the
    other; the old machine's invoices are found, and its last day is closed without it."""
    with staffed_shop(tmp_path, "manager") as shop:
        assert shop.certify(invoice("OLD-1", 2500)).status_code == 200
        shop.x_with(1)
        shop.stop_daemon()
        shop.machines[0].kill()
        shop.machines = (Machine(tmp_path, "EL02000088-1").start(),)
        shop.start_daemon()
        with Visitor(shop, "manager") as manager:
            assert "EL02000088-1 remplace une autre machine" in manager.look("/ui/state")
            shop.change(CreateKey("EL02000088-1", "live", "till"))
            state = html.unescape(manager.look("/ui/state"))
            assert f"{NIM} n'est plus dans la configuration, et sa dernière journée n'est pas clôturée" in state
            assert f'href="/ui/z?m={NIM}"' in state
            assert f"/ui/journal/1?m={NIM}" in manager.look("/ui/journal?q=OLD-1")
            dialogue = manager.look(f"/ui/z?m={NIM}")
            assert "2 500" in dialogue.replace("\N{NO-BREAK SPACE}", " ")
            key = re.search(r'name="key" value="([^"]+)"', dialogue)
            assert key is not None
            closed = manager.submit("/ui/z", key=key[1], m=NIM)
            assert closed.headers["location"].startswith("/ui/closures/1")
            assert 'data-level="good"' in manager.look("/ui/state")
        shop.verify()
