"""The spare in the page: a technician lets it take over, the banner says so, a day is closed in both books."""

import io
import re
from collections.abc import Iterator
from html import unescape

import pypdf
import pytest
from playwright.sync_api import Browser, expect
from support.browser import FRENCH_PHONE, Person, Visitor, create_users
from support.pair_shop import SPARE, PairShop, both
from support.shop import NIM, Shop, invoice, wait_for
from support.till import certified, fresh

MENU_COUNT = re.compile(r'badge bg-red text-red-fg">(\d+)<')
"""Of what there is to decide."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairShop]:
    with both(tmp_path_factory.mktemp("shop")) as shop:
        create_users(shop, ("technician", "seller"))
        yield shop


def test_a_technician_decides_and_the_day_is_closed_in_both_books(shop: PairShop) -> None:
    code = certified(shop.certify(invoice(fresh(), 1000)))["codeSecef"]
    shop.x_with(1)
    with Visitor(shop, "technician") as technician:
        _replaced_for_a_day(shop, technician, code)


def _replaced_for_a_day(shop: Shop, technician: Visitor, code: str) -> None:
    shop.machines[0].kill()
    wait_for(lambda: "sa machine de secours peut prendre la relève" in technician.look("/ui/state"), "the banner")
    page = technician.look("/ui/spare")
    assert "Mettre la machine de secours en service" in page
    for reason in ("no", "ne démarre\nplus", "x" * 201):
        assert technician.submit("/ui/spare", m=NIM, decision="take-over", reason=reason).status_code == 422
    assert technician.submit("/ui/spare", m=NIM, reason="ne démarre plus").status_code == 422
    assert (
        technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus").headers["location"]
        == "/ui/spare"
    )
    again = technician.submit("/ui/spare", m=NIM, decision="take-over", reason="encore une fois")
    assert again.status_code == 409
    assert f"Cette décision ne convient plus ({SPARE} remplace déjà {NIM})." in again.text
    assert "est réparée" in again.text  # what can be decided now
    page = technician.look("/ui/spare")
    assert "ne démarre plus" in page
    assert f"la machine de secours {SPARE} certifie à la place de {NIM}" in technician.look("/ui/state")
    receipt = certified(shop.certify(invoice(fresh(), 500)))
    assert receipt["nim"] == SPARE
    for query in (f"q={code}", f"q={code}&m={SPARE}", f"q={code}&m={NIM}", f"q={code.lower()}&state=certified"):
        assert f'href="/ui/journal/1?m={NIM}"' in technician.look(f"/ui/journal?{query}"), query
    for query in (f"q={receipt['codeSecef']}", f"q={receipt['codeSecef']}&m={NIM}"):
        assert f'href="/ui/journal/1?m={SPARE}"' in technician.look(f"/ui/journal?{query}"), query
    assert 'data-testid="journal-row"' not in technician.look(f"/ui/journal?q={code}&state=refused")
    shop.x_with(1)
    for nim, other in ((NIM, SPARE), (SPARE, NIM)):  # Today has both, each X its own
        assert f"{other} a aussi certifié" in technician.look(f"/ui/x?m={nim}")
    assert technician.look("/ui/box")
    dialogue = technician.look("/ui/z")
    assert f"la période de {NIM} est clôturée en même temps" in dialogue
    found = re.search(r'name="key" value="([^"]+)"', dialogue)
    assert found is not None
    for _ in range(2):  # pressed twice, it is one Z in each book
        closed = technician.submit("/ui/z", key=found[1], m=SPARE)
        assert closed.headers["location"].startswith("/ui/closures/1")
    (of_spare,) = shop.get("reports").json()["reports"]
    assert (of_spare["certs_count"], of_spare["total_ttc"]) == (1, 500)
    shop.machines[0].start()
    assert technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée").status_code == 303
    (of_first,) = shop.get("reports").json()["reports"]
    assert (of_first["certs_count"], of_first["total_ttc"]) == (1, 1000)
    assert "without_machine" in shop.get("reports/z/1").json()
    _closed_by_a_form_that_is_sent_again(shop, technician)
    shop.verify()


def test_sales_that_wait_are_named_where_the_day_is_closed(shop: PairShop) -> None:
    """While the spare stands in they are its own: the dialogue names them whichever of the two machines it was opened for."""
    with Visitor(shop, "technician") as technician:
        wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine")
        technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus")
        shop.spare.kill()
        wait_for(lambda: "ne répond pas" in technician.look("/ui/state"), "the spare away")
        later = {"Prefer": "respond-async"}
        assert shop.certify(invoice(fresh(), 700), key="later-1", headers=later).status_code == 202
        dialogues = [technician.look(f"/ui/z?m={nim}").replace("\N{NO-BREAK SPACE}", " ") for nim in (NIM, SPARE)]
        assert ["1 vente attend sa certification" in dialogue for dialogue in dialogues] == [True, True]
        shop.spare.start()
        wait_for(lambda: shop.get("requests/later-1").json()["status"] == "certified", "its certification")
        technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée")


def test_a_sale_of_the_spare_is_credited_once_the_machine_is_taken_back(shop: PairShop) -> None:
    """By the machine that is in use; the page offered it, and said that the spare has not taken over. So is an invoice by hand."""
    with Visitor(shop, "technician") as technician, Visitor(shop, "seller") as seller:
        wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine")
        technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus")
        sold = certified(shop.certify(invoice(fresh(), 900)))
        assert technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée").status_code == 303
        wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine")
        found = re.search(r"(/ui/journal/[0-9]+)[?]", seller.look(f"/ui/journal?q={sold['codeSecef']}"))
        assert found is not None
        credited = seller.submit(f"{found[1]}/credit", m=SPARE, key="of the spare", line0="1", nature="RAM")
        assert f"m={NIM}" in credited.headers["location"], credited.text
        last = shop.machines[0].certified()[-1]
        assert (last["type"], last["total"], last["opening"]["reference"]) == ("FA", 900, f"{SPARE}-{sold['fvc']}")
        line = {"name1": "Natte", "price1": "1250", "group1": "A", "client": "CC", "method": "E"}
        answer = seller.submit("/ui/sale", m=SPARE, key="by hand", **line)
        assert f"m={NIM}" in answer.headers["location"], answer.text


def test_cash_and_vat_of_both_books_are_not_forgotten_once_the_machine_is_taken_back(
    shop: PairShop,
) -> None:
    """There is one drawer, and one taxpayer: what was put in while the spare stood in is counted in the evening, and its VAT is declared too."""
    with Visitor(shop, "technician") as technician:
        wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine")
        technician.submit("/ui/z", key=fresh(), m=NIM)
        technician.submit("/ui/z", key=fresh(), m=SPARE)
        technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus")
        deposit = {"kind": "deposit", "amount": 20000, "reason": "Fond de caisse"}
        moved = shop.certify(deposit, path="cash")
        assert (moved.status_code, moved.json()["nim"]) == (201, SPARE)
        technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée")
        certified(shop.certify(invoice(fresh(), 1000)))
        shop.x_with(1)
        for path in (f"/ui/?m={NIM}", f"/ui/?m={SPARE}", f"/ui/cash?m={NIM}"):
            assert re.search(r'cash-expected">21.000.F', technician.look(path)), path
        assert "Fond de caisse" in technician.look(f"/ui/cash?m={NIM}")
        dialogue = technician.look(f"/ui/z?m={NIM}")
        assert f"la période de {SPARE} est clôturée en même temps" in dialogue
        assert 'data-expected="21000"' in dialogue
        done = technician.submit("/ui/z", key=fresh(), m=NIM, counted="21000")
        assert re.search(rf"Clôturé.: Z \d+\. Clôturé.: Z \d+ \({SPARE}\)\.", technician.look(done.headers["location"]))
        assert 'name="counted"' not in technician.look(f"/ui/z?m={NIM}")  # nothing was sold since
        number = done.headers["location"].partition("/ui/closures/")[2].partition("?")[0]
        assert shop.get(f"reports/z/{number}").json()["cash_count"] == {"counted": 1000, "difference": 0}
        sold = _sold(technician.look(f"/ui/?m={NIM}"))
        note = f"{SPARE} a aussi certifié pendant cette période"
        technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus")
        number = fresh()
        certified(shop.certify(invoice(number, 1000)))
        assert _sold(technician.look("/ui/")) == sold + 1
        shop.x_with(1)
        technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée")
        page = technician.look("/ui/")
        assert _sold(page) == sold + 1
        link = re.search(rf'href="([^"]+)">{number}<', page)
        assert number in technician.look(unescape(link[1]))
        for screen in ("vat", "a", "closures"):
            assert note in technician.look(f"/ui/{screen}?m={NIM}"), screen
        assert note not in technician.look(f"/ui/vat?m={NIM}&month=2025-01")
        content = technician.get("/ui/vat/pdf", params={"m": NIM}).content
        assert note in pypdf.PdfReader(io.BytesIO(content)).pages[0].extract_text()
    assert shop.spare.is_running


def _sold(today: str) -> int:
    """How many sales that screen counts, of both machines."""
    found = re.search(r'sales-count">(\d+)<', today)
    return int(found[1])


def _closed_by_a_form_that_is_sent_again(shop: Shop, technician: Visitor) -> None:
    """Both books are to be closed, with what was counted in the one drawer. While the machine is away nothing is closed; when it goes at its own Z, the
    spare's is made, and the form that is sent again makes the other one."""
    wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine's return")
    technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus")
    assert certified(shop.certify(invoice(fresh(), 200)))["nim"] == SPARE
    technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée")
    assert certified(shop.certify(invoice(fresh(), 300)))["nim"] == NIM
    shop.machines[0].kill()
    wait_for(lambda: "Ventes arrêtées" in technician.look("/ui/state"), "the banner")
    note = f"la période de {SPARE} est clôturée en même temps"
    wait_for(lambda: note in technician.look(f"/ui/z?m={NIM}"), "the spare's sale in its totals")
    form = {"key": "both", "m": NIM, "counted": "500"}
    assert technician.submit("/ui/z", **form).status_code == 503
    assert technician.get(f"/ui/closures/2?m={SPARE}").status_code == 404
    shop.machines[0].start()
    wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine's return")
    shop.machines[0].order("fault", spec="unplug:inf@C1h#1")
    assert technician.submit("/ui/z", **form).status_code == 503
    assert technician.get(f"/ui/closures/2?m={SPARE}").status_code == 200
    shop.machines[0].order("plug")
    wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine's return")
    assert technician.submit("/ui/z", **form).headers["location"].startswith("/ui/closures/2")
    assert shop.get("reports/z/2").json()["cash_count"] == {"counted": 300, "difference": 0}


@pytest.mark.long
def test_a_page_that_is_open_at_a_take_over_goes_on_with_the_spare(shop: PairShop, browser: Browser) -> None:
    """Without a reload: the banner and the sales are those of the spare; its register of outages is still that of the machine."""
    seller = Person(browser, shop, FRENCH_PHONE)
    seller.log_in("seller")
    page = seller.go("/ui/")
    banner, sold = page.get_by_test_id("state"), fresh()
    shop.machines[0].kill()
    expect(banner).to_contain_text(f"{NIM} ne répond pas")
    expect(page).to_have_title(re.compile("^⛔ Aujourd'hui"))
    pattern = (
        rf"Ventes arrêtées depuis \d\d:\d\d\xa0: {NIM} ne répond pas\xa0; vérifiez son câble et son alimentation\xa0; "
        r"appelez la personne qui s'occupe du boîtier\."
    )
    assert re.fullmatch(pattern, banner.inner_text())
    assert shop.certify(invoice(fresh())).status_code == 503
    with Visitor(shop, "technician") as technician:
        technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus")
        try:
            expect(banner).to_contain_text(f": la machine de secours {SPARE} certifie à la place de {NIM}")
            assert certified(shop.certify(invoice(sold)))["nim"] == SPARE
            expect(page.locator("#details")).to_contain_text(sold)
            expect(page).to_have_title(re.compile("^⚠ Aujourd'hui"))
            register = technician.look("/ui/outages")
            assert f"<dd>{NIM}</dd>" in register
            form, *_ = re.findall(r'action="(/ui/outages/\d+[^"]*)"', register)
            noted = technician.submit(unescape(form), who="distributor", reference="DGI-9")
            assert noted.headers["location"].startswith("/ui/outages")
            assert "DGI-9" in technician.look("/ui/outages")
        finally:
            shop.machines[0].start()
            technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée")
    seller.context.close()


def test_an_invoice_whose_answer_was_lost_is_seen_as_in_doubt(shop: PairShop) -> None:
    """A search finds it, and says not to make it anew; once the machine is there again it is certified."""
    machine, number = shop.machines[0], fresh()
    with Visitor(shop, "seller") as seller:
        wait_for(lambda: "La caisse peut vendre" in seller.look("/ui/state"), "the machine")
        machine.order("fault", spec="unplug:inf@38h#1")
        assert shop.certify(invoice(number)).status_code == 503
        wait_for(lambda: "À ne pas refaire" in seller.look("/ui/"), "the warning")
        for query in ("", f"?q={number}", f"?q={number}&m={SPARE}", "?state=disputed"):
            row = seller.look(f"/ui/journal{query}").partition(number)[2].partition("</tr>")[0]
            assert "en doute" in row, query
        assert number not in seller.look("/ui/journal?state=refused")
        machine.order("plug")
        wait_for(lambda: "À ne pas refaire" not in seller.look("/ui/"), "the machine's word")
        assert "certifiée" in seller.look(f"/ui/journal?q={number}")


def test_a_doubt_of_a_spare_that_has_gone_is_decided(shop: PairShop) -> None:
    """Both machines of a pair have died in a sale, and the first one is repaired: each screen knows of the doubt and of the outage of the spare, and what
    can be decided at each moment."""
    first, number = shop.machines[0], fresh()
    with Visitor(shop, "technician") as technician:
        wait_for(lambda: "La caisse peut vendre" in technician.look("/ui/state"), "the machine")
        first.order("unplug")
        wait_for(lambda: f"{NIM} ne répond pas" in technician.look("/ui/state"), "the banner")
        technician.submit("/ui/spare", m=NIM, decision="take-over", reason="ne démarre plus")
        shop.spare.order("fault", spec="unplug:inf@38h#1")
        assert shop.certify(invoice(number)).status_code == 503
        wait_for(lambda: f"{SPARE} ne répond pas" in technician.look("/ui/state"), "the banner")
        assert "être reprise" not in technician.look("/ui/state")
        first.order("plug")
        wait_for(lambda: f"{NIM} est revenue et peut être reprise" in technician.look("/ui/state"), "the machine")
        assert MENU_COUNT.search(technician.look("/ui/")) is None
        technician.submit("/ui/spare", m=NIM, decision="take-back", reason="réparée")
        page = technician.look("/ui/spare")
        assert re.search(rf"si {SPARE} a certifié {number} \(15.000.F.CFA\)\. À ne pas refaire", page), page
        assert 'href="/ui/attention"' in page.partition("<main")[2]
        found = MENU_COUNT.search(page)
        assert found[1] == "1"
        assert number in technician.look("/ui/attention")
        assert f"<dd>{SPARE}</dd>" in technician.look(f"/ui/outages?m={NIM}")
        assert "/ui/box/probe" not in technician.look("/ui/box")  # its line is in use
        shop.spare.order("plug")
        wait_for(lambda: MENU_COUNT.search(technician.look("/ui/")) is None, "the spare's word")
    shop.verify()
