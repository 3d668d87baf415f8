"""What people type: it stays in its form, whatever comes between that and the box (no network, a session that has ended), and a long word of it
leaves the amounts in sight."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browser import FRENCH_PHONE, Person, session_of, staffed_shop, usable
from support.receivers.receipt_printer import ReceiptPrinter
from support.shop import NIM, Shop, invoice

pytestmark = pytest.mark.long

People = Callable[..., Person]
HAS_ENDED = "Votre session a pris fin"


def end_session(awa: Person) -> None:
    awa.context.request.post(f"{awa.base}/ui/logout", headers={"Origin": awa.base})


def log_in_elsewhere(awa: Person, shop: Shop) -> None:
    cookies = session_of(shop, "manager")
    awa.context.add_cookies([{"name": name, "value": value, "url": awa.base} for name, value in cookies.items()])


def type_movement(page: Page) -> None:
    page.fill("[name=amount]", "700")
    page.fill("[name=reason]", "taxi")


@pytest.mark.parametrize("is_sent", [True, False], ids=["sent", "typed"])
def test_a_form_stays_where_its_session_has_ended(person: People, shop: Shop, *, is_sent: bool) -> None:
    """Logged out elsewhere, or disabled and let in again: the login took the place of what was typed, with the button pressed and without. After a
    login in another tab it is sent as it stands, once."""
    awa = person(view=FRENCH_PHONE)
    log_in_elsewhere(awa, shop)
    page = awa.go("/ui/cash")
    before = shop.get("cash").json()["count"]
    end_session(awa)
    type_movement(page)
    if is_sent:
        awa.press("Note it")
    note = page.get_by_role("alert").filter(has_text=HAS_ENDED)
    expect(note).to_be_focused()
    expect(note.get_by_role("link")).to_have_attribute("href", "/ui/login")
    expect(page.locator("[name=reason]")).to_have_value("taxi")
    usable(page)
    log_in_elsewhere(awa, shop)
    awa.press("Note it")
    awa.sees_message("Noted.")
    assert shop.get("cash").json()["count"] == before + 1
    awa.complaints.clear()  # Chromium notes the login's answer


def test_a_print_without_an_answer_may_have_come(browser: Browser, tmp_path: Path) -> None:
    """The browser showed its own error, and who went back and pressed again had two papers: a printer cannot be asked what it has printed."""
    with (
        ReceiptPrinter() as printer,
        staffed_shop(tmp_path, "seller", config={"printer": {"address": printer.address}}) as shop,
    ):
        assert shop.certify(invoice("PRINT")).status_code == 200
        awa = Person(browser, shop, FRENCH_PHONE, session_of(shop, "seller"))
        page = awa.go("/ui/journal/1")
        awa.context.set_offline(True)
        awa.press("Duplicate on the receipt printer")
        expect(page.get_by_role("alert").filter(has_text="Regardez l'imprimante")).to_be_focused()
        usable(page)
        awa.context.set_offline(False)
        awa.press("Duplicate on the receipt printer")
        awa.sees_message("Printed.")
        assert len(printer.jobs) == 1
        awa.context.close()


def test_one_line_of_many_is_credited(person: People, shop: Shop) -> None:
    """Every line of a wholesaler's invoice had to be unticked but one, and a quantity that was typed at a line without its tick was left out. The total is
    seen before it is certified."""
    items = [{"name": f"Sac {at}", "taxGroup": "B", "unitPrice": 1000, "quantity": 5} for at in range(12)]
    sold = invoice("MANY", items=items, payments=[{"method": "E", "amount": 60_000}])
    assert shop.certify(sold).status_code == 200
    awa = person("manager", FRENCH_PHONE)
    page = awa.go("/ui/journal?q=MANY")
    page.get_by_role("link", name="MANY").click()
    page.get_by_test_id("to-credit").click()
    expect(page.locator("#credited")).to_contain_text("60\N{NO-BREAK SPACE}000")
    awa.press("Untick all lines")
    page.fill("[name=quantity7]", "2,5")
    expect(page.locator("#credited")).to_contain_text("2\N{NO-BREAK SPACE}500\N{NO-BREAK SPACE}F")
    page.locator("[name=nature]").first.check()
    page.get_by_test_id("certify").click()
    awa.sees_message("Certified.")
    assert shop.machines[0].certified()[-1]["total"] == 2500


def test_the_total_of_the_last_credit_note_is_what_is_left(person: People, shop: Shop) -> None:
    """Three pieces for 1 000 F are credited one by one: twice 333 F, then 334 F, as it is certified."""
    sack = {"name": "Sac", "taxGroup": "B", "amountTtc": 1000, "quantity": 3}
    sold = shop.certify(invoice("THREE", items=[sack], payments=[{"method": "E", "amount": 1000}])).json()
    for number in ("C-1", "C-2"):
        items, payments = [{**sack, "quantity": 1, "amountTtc": 333}], [{"method": "E", "amount": 333}]
        note = invoice(number, invoiceType="FA", items=items, payments=payments, creditNoteRef=f"{NIM}-{sold['fvc']}")
        assert shop.certify(note, path="credit-note").status_code == 200
    awa = person("manager", FRENCH_PHONE)
    page = awa.go("/ui/journal?q=THREE")
    page.get_by_role("link", name="THREE").click()
    page.get_by_test_id("to-credit").click()
    expect(page.locator("#credited")).to_contain_text("334\N{NO-BREAK SPACE}F")
    page.locator("[name=nature]").first.check()
    page.get_by_test_id("certify").click()
    awa.sees_message("Certified.")
    assert shop.machines[0].certified()[-1]["total"] == 334
