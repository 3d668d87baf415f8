"""The shop's page in real Chromium: what a person sees and does there."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support.browser import DESKTOP, PATIENCE_MS, PHONE, Person
from support.shop import Shop, invoice, wait_for

SCREENS = (
    "/ui/",
    "/ui/journal",
    "/ui/journal/1",
    "/ui/closures",
    "/ui/a",
    "/ui/x",
    "/ui/z",
    "/ui/attention",
    "/ui/box",
    "/ui/files",
    "/ui/log",
    "/ui/welcome",
)
People = Callable[..., Person]


def test_log_in_and_out(person: People) -> None:
    """A wrong password says so and shows nothing; the right one opens today; logged out, nothing is shown any more."""
    awa = person()
    awa.log_in("manager", "something else")
    expect(awa.page.get_by_role("alert")).to_contain_text("Nom ou mot de passe incorrect")
    awa.complaints.clear()  # Chromium notes the 401 of a wrong password
    awa.log_in("manager")
    awa.sees("sales-count")
    awa.page.get_by_test_id("logout").click()
    awa.go("/ui/journal")
    assert awa.page.url.endswith("/ui/login")


def test_a_certification_arrives_by_itself(person: People, shop: Shop) -> None:
    """Within a second of its answer the number of sales and the list of the latest have it, without a reload."""
    awa = person()
    awa.log_in("reader")
    awa.sees("sales-count")
    before = int(awa.text("sales-count"))
    assert shop.certify(invoice("LIVE-1", 7000)).status_code == 200
    expect(awa.page.get_by_text("LIVE-1")).to_be_visible(timeout=PATIENCE_MS)
    assert int(awa.text("sales-count")) == before + 1


def test_a_machine_that_is_unplugged_is_seen(person: People, shop: Shop) -> None:
    """And plugged in again; the screen says so by itself."""
    awa = person()
    awa.log_in("seller")
    state = awa.page.get_by_test_id("machine-state")
    expect(state).to_have_attribute("data-state", "ready")
    shop.machines[0].kill()
    expect(state).to_have_attribute("data-state", "offline", timeout=PATIENCE_MS)
    shop.machines[0].start()
    expect(state).to_have_attribute("data-state", "ready", timeout=PATIENCE_MS)


def test_a_double_click_and_a_lost_answer_make_one_z(person: People, shop: Shop) -> None:
    """The confirmation shows what will be closed; pressed twice, and sent once more by hand, it closes one period."""
    awa = person()
    awa.log_in("manager")
    awa.page.get_by_test_id("close-z").click()
    key = awa.page.locator("[name=key]").get_attribute("value")
    awa.page.get_by_test_id("confirm-z").dblclick()
    awa.sees("z-number")
    number = awa.text("z-number")
    again = awa.context.request.post(
        f"{awa.base}/ui/z", form={"key": key}, headers={"Origin": awa.base}, max_redirects=0
    )
    assert again.headers["location"].startswith(f"/ui/closures/{number}")
    stored = shop.get("/reports").json()["reports"]
    assert [report["z_number"] for report in stored] == [int(number)]


def test_search_and_a_duplicate(person: People, shop: Shop) -> None:
    """By number, by a part of one, by amount, by customer; the duplicate to print is marked as one."""
    customer = {"clientType": "PM", "name": "Boulangerie Wend Panga", "ifu": "00012345A"}
    assert shop.certify(invoice("FIND-77", 4321, customer=customer)).status_code == 200
    awa = person()
    awa.log_in("reader")
    for asked in ("q=FIND-77", "q=IND-7", "amount=4 321", "q=wend panga"):
        page = awa.go(f"/ui/journal?{asked}")
        expect(page.get_by_test_id("journal-row")).to_have_count(1)
    awa.page.get_by_role("link", name="FIND-77").click()
    with awa.context.expect_page() as opened:
        awa.page.get_by_role("link", name="Imprimer un duplicata").click()
    expect(opened.value.get_by_text(re.compile("DUPLICATA"))).to_be_visible()
    expect(awa.go("/ui/journal?q=nobody-has-this").get_by_text("Rien trouvé")).to_be_visible()


def test_make_and_revoke_a_key(person: People, shop: Shop) -> None:
    """The key is shown once and works; revoked in the page it works no more, at once."""
    tech = person()
    tech.log_in("technician")
    tech.go("/ui/box#keys")
    tech.page.locator("form[action*='/ui/box/key'] [name=label]").fill("caisse 9")
    tech.page.locator("[name=until]").fill("2099-12-31")
    tech.page.get_by_role("button", name="Créer une clé").click()
    key = tech.text("new-key").strip()
    assert shop.http.get("/v1/me", headers={"Authorization": f"Bearer {key}"}).json()["label"] == "caisse 9"
    expect(tech.go("/ui/box").locator(".keys")).to_contain_text("jusqu'au 01/01/2100 00:00")
    tech.go("/ui/box")
    tech.page.get_by_role("button", name="Révoquer la clé de caisse 9").click()
    expect(tech.page.get_by_role("status")).to_contain_text("ne fonctionne plus")
    assert shop.http.get("/v1/me", headers={"Authorization": f"Bearer {key}"}).status_code == 401


def test_a_backup_is_made_and_downloaded(person: People, shop: Shop) -> None:
    """Long work that may be left: the screen says when it is done, the copy is a ledger, and the audit log has who asked for it, once."""
    tech = person()
    tech.log_in("technician")
    tech.go("/ui/box")
    tech.page.get_by_role("button", name="Faire une copie maintenant").click()
    tech.go("/ui/journal")
    tech.go("/ui/box")
    expect(tech.page.get_by_role("status")).to_contain_text("copie vérifiée", timeout=PATIENCE_MS)
    with tech.page.expect_download() as download:
        tech.page.locator("#backups a").first.click()
    assert download.value.path().read_bytes().startswith(b"SQLite format 3\0")
    entries = shop.with_store(lambda store: store.audit.newest(limit=100))
    assert [entry.actor for entry in entries if entry.action == "backup.taken"] == ["user:technician"]


def test_the_ledger_is_verified_from_the_page(person: People) -> None:
    """All records of it, and the screen says so."""
    tech = person()
    tech.log_in("technician")
    tech.go("/ui/box")
    tech.page.get_by_role("button", name="Vérifier le registre maintenant").click()
    expect(tech.page.get_by_text(re.compile("Le registre est en ordre"))).to_be_visible(timeout=PATIENCE_MS)


def test_a_years_journal_is_made_and_downloaded(person: People, shop: Shop) -> None:
    """In the background, as the French spreadsheet wants it; closures and totals come as files at once."""
    assert shop.certify(invoice("EXPORT-1", 2222)).status_code == 200
    awa = person()
    awa.log_in("reader")
    awa.go("/ui/closures").get_by_role("link", name="Fichiers pour le comptable").click()
    awa.page.get_by_role("button", name="Créer le fichier").click()
    link = awa.page.get_by_role("link", name=re.compile(r"^journal-.*\.csv$"))
    expect(link).to_be_visible(timeout=PATIENCE_MS)
    with awa.page.expect_download() as download:
        link.click()
    lines = download.value.path().read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("N° d'ordre;État;Facture")
    assert sum(";EXPORT-1;" in line for line in lines) == 1
    totals = awa.context.request.get(f"{awa.base}/ui/files/a/json").json()
    assert (totals["kind"], totals["certs_count"]) == ("A", len(lines) - 1)
    rows = awa.context.request.get(f"{awa.base}/ui/files/closures/csv").text().splitlines()
    assert len(rows) == 1 + len(shop.get("reports").json()["reports"])


def test_the_log_reads(person: People, shop: Shop) -> None:
    """What happened since the start, in the person's language; a wrong password is found among what is serious."""
    tech = person(locale="en-GB")
    tech.log_in("technician", "not the password")
    tech.complaints.clear()  # Chromium notes the 401
    tech.log_in("technician")
    page = tech.go("/ui/log?only=serious")
    expect(page.get_by_test_id("log-line").first).to_contain_text("somebody gave a wrong name or password")
    expect(tech.go("/ui/log?q=mcfd+started").get_by_test_id("log-line")).to_have_count(1)


def test_what_doctor_finds_is_shown(person: People) -> None:
    """After the rest of the screen, in the person's language."""
    tech = person()
    tech.log_in("technician")
    tech.go("/ui/box")
    expect(tech.page.locator(".finding").first).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.parametrize(("locale", "viewport", "word"), [("fr-FR", PHONE, "Aujourd"), ("en-GB", DESKTOP, "Today")])
def test_every_screen_can_be_used_by_everybody(
    person: People, locale: str, viewport: dict[str, int], word: str
) -> None:
    """WCAG 2.2 AA by axe-core without a violation, nothing wider than the screen, in both languages."""
    tech = person(locale=locale, viewport=viewport)
    tech.log_in("technician")
    expect(tech.page.locator("h1")).to_contain_text(word)
    for path in SCREENS:
        page = tech.go(path)
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
        assert found.violations_count == 0, (path, found.generate_report())
        wide = page.evaluate_handle("document.documentElement").evaluate("e => e.scrollWidth - e.clientWidth")
        assert wide <= 0, (path, wide)


def test_reading_needs_no_script(browser, shop: Shop) -> None:
    """With JavaScript switched off, log in, journal, closures and reports read."""
    context = browser.new_context(java_script_enabled=False, locale="fr-FR")
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{shop.port}/ui/login")
    page.fill("[name=name]", "reader")
    page.fill("[name=password]", "orange-bleu-42")
    page.click("main button")
    for path in ("/ui/", "/ui/journal", "/ui/closures", "/ui/x"):
        page.goto(f"http://127.0.0.1:{shop.port}{path}")
        expect(page.locator("h1")).to_be_visible()
    context.close()


def test_the_first_load_is_small(person: People) -> None:
    """All that the first screen needs is below 150 KB on the wire."""
    awa = person()
    sizes: list[int] = []
    awa.page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    awa.log_in("seller")
    awa.sees("sales-count")
    wait_for(lambda: len(sizes) > 5, "the files")
    assert sum(sizes) <= 150_000
