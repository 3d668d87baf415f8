"""First start in the page: from a box with nothing on it to a certified test invoice, in real Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect
from support.browser import BOTH_VIEWS, PASSWORD, Person, View, Visitor, usable
from support.empty_box import EmptyBox
from support.shop import NIM, invoice, wait_for


@pytest.fixture
def empty_box(tmp_path: Path) -> Iterator[EmptyBox]:
    with EmptyBox(tmp_path) as box:
        box.set_up_in_page()
        yield box


@pytest.mark.long
@pytest.mark.parametrize("view", BOTH_VIEWS)
def test_from_an_empty_box_to_a_certified_test_invoice(browser: Browser, empty_box: EmptyBox, view: View) -> None:
    """The code, the machine that was found, a close look at it, the key, the daemon, a test invoice; a wrong password first is
    told in the person's language and loses nothing. The key that was shown certifies, and every step passes axe-core."""
    tech = Person(browser, empty_box, view)
    page = tech.go("/ui/setup/code")
    usable(tech.page)
    page.goto(empty_box.link)
    expect(page.get_by_text(NIM, exact=True)).to_be_visible()
    assert "code=" not in page.url
    usable(tech.page)
    page.get_by_text(view.say("It is not in the list?")).click()
    page.fill("[name=place]", "tcp://127.0.0.1:9")
    tech.press("Look again")
    expect(page.get_by_text(view.say("Other ports ({count})", count=1))).to_be_visible()
    with tech.context.expect_page() as opened:
        tech.follow("Look at it closely")
    expect(opened.value.get_by_test_id("probe-row").first).to_contain_text(re.compile("."), timeout=60_000)
    opened.value.close()
    page.fill("[name=name]", "issa")
    page.fill("[name=password]", "aaaaaaaaaaaa")
    tech.press("Set up")
    expect(page.get_by_role("alert")).to_contain_text(view.say("is too easy to guess"))
    tech.complaints.clear()  # Chromium notes the 422 of the password
    page.fill("[name=password]", PASSWORD)
    tech.press("Set up")
    key = tech.text("new-key").strip()
    usable(tech.page)
    tech.press("I have noted it: start mcfd")
    page.wait_for_url("**/ui/welcome", timeout=60_000)
    tech.complaints.clear()  # and the moment when the one server was gone and the other not yet there
    expect(page.locator("h1")).to_have_text(view.say("Welcome"))
    usable(tech.page)
    tech.press("Certify a test invoice")
    expect(page.get_by_text("TESTFACT", exact=False).first).to_be_visible()
    assert tech.complaints == []
    tech.context.close()
    till = {"Authorization": f"Bearer {key}"}
    wait_for(lambda: empty_box.http.get("/health/ready").is_success, "a ready daemon")
    assert empty_box.http.post(f"/v1/mcf/{NIM}/certify", json=invoice("F-1"), headers=till).status_code == 200
    assert empty_box.stop_daemon() == 0


def test_of_two_who_set_up_at_once_the_second_reads_who_was_first(empty_box: EmptyBox) -> None:
    """One box is set up once; whose name and password count stands beside the key, on both screens."""
    with Visitor(empty_box, follow_redirects=True) as client:
        client.get(empty_box.link)
        client.get("/ui/setup?look=1")
        wish = {f"nim.{NIM}": "1", "network": "local", "till": "Caisse 1", "isf": "1", "password": PASSWORD}
        screens = [client.post("/ui/setup", data={**wish, "name": name}).text for name in ("issa", "awa")]
    for screen in screens:
        assert "La première personne est issa, avec le mot de passe saisi." in screen
        assert "awa" not in screen


def test_who_has_not_the_code_sets_nothing_up(empty_box: EmptyBox) -> None:
    """Without the code every step leads to the question for it; five wrong ones a minute are all that are taken; another site's form
    is refused; nothing was written. Who has it sees the machines without a script too; nothing comes from elsewhere; an address
    that is not there yet is a page too."""
    with Visitor(empty_box) as client:
        assert client.get(empty_box.link).headers["location"] == "/ui/setup"
        read = client.get("/ui/setup?look=1")
        assert NIM in read.text
        assert "script-src 'self'" in read.headers["content-security-policy"]
        assert "unsafe" not in read.headers["content-security-policy"]
        nowhere = client.get("/ui/journal", headers={"Accept": "text/html"})
        assert (nowhere.status_code, "Introuvable</h1>" in nowhere.text) == (404, True)
        client.cookies.clear()
        for path in ("", "/machines", "/probe?nim=x", "/done", "/authority.pem"):
            assert client.get(f"/ui/setup{path}").headers["location"] == "/ui/setup/code", path
        assert client.submit("/ui/setup", name="issa").headers["location"] == "/ui/setup/code"
        assert client.get("/v1/me").status_code == 404
        good, evil = {"code": httpx.URL(empty_box.link).params["code"]}, {"Origin": "http://evil.example"}
        assert client.post("/ui/setup/code", data=good, headers=evil).status_code == 403
        wrong = [client.submit("/ui/setup/code", code="AAAA-AAAA").status_code for _ in range(6)]
        assert wrong == [401, 401, 401, 401, 401, 429]
        assert client.submit("/ui/setup/code", **good).status_code == 429
    assert not empty_box.config_file.exists()
    assert not empty_box.ledger.exists()
