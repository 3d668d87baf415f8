"""The shop's page when something is wrong: a machine that needs a decision, or is switched off, a closure that was refused."""

import asyncio
import html
import os
import shutil
import signal
import ssl
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from playwright.sync_api import Browser, expect
from support.browser import (
    BOTH_VIEWS,
    FRENCH_PHONE,
    PASSWORD,
    PATIENCE_MS,
    Person,
    View,
    Visitor,
    create_users,
    session_of,
    staffed_shop,
    usable,
)
from support.hurried import HURRIED
from support.ledgers.ledger import tamper
from support.receivers.authority import Authority
from support.receivers.headquarters import HttpHeadquarters
from support.shop import NIM, Shop, invoice, wait_for

from daemon.operations import CreateKey
from daemon.store.tables.audit import newest_entries

pytestmark = pytest.mark.long

People = Callable[..., Person]
T = TypeVar("T")
DELAYED_FETCH = """const ask = window.fetch;
window.fetch = async (...asked) => {
  while (!window.goOn) await new Promise((done) => setTimeout(done, 50));
  return ask(...asked);
};"""
"""A screen that opens another by itself waits as long as it is looked at. A route of the browser would do it too, but without its cache."""
NO_ANSWER = (
    "The box has not answered, and may have done it all the same. What was typed is still here: press the button again once the box is back, "
    "it is done only once."
)
CHANGED = "the case is not the one that was shown any more: look at it again"
WENT_DOWN = "The machine has counted less than the ledger knows: it is another machine, or it was reset."


@pytest.fixture(scope="module")
def headquarters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpHeadquarters]:
    found = HttpHeadquarters(tmp_path_factory.mktemp("headquarters"))
    apart(found.up())
    yield found
    found.kill()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, headquarters: HttpHeadquarters) -> Iterator[Shop]:
    upstream = {"kind": "https", "url": headquarters.url, "secret_file": str(headquarters.keys.file)}
    with staffed_shop(
        tmp_path_factory.mktemp("shop"), "technician", config={"upstream": upstream}, first=HURRIED
    ) as shop:
        assert shop.certify(invoice("T-1")).status_code == 200
        yield shop


def apart(work: Coroutine[Any, Any, T]) -> T:
    """Playwright has a loop in this thread: the work is done in another."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def audited(shop: Shop, action: str) -> list[tuple[str, str]]:
    """Who did it, to what."""
    entries = shop.with_store(lambda store: store.ledger.read(newest_entries, limit=100))
    return [(entry.actor, entry.subject) for entry in entries if entry.action == action]


@pytest.mark.parametrize("view", BOTH_VIEWS)
def test_a_machine_that_needs_a_decision_is_decided_in_the_page(person: People, shop: Shop, view: View) -> None:
    """What was found stands in plain words beside the ledger's own counters; without a reason nothing is decided, with one the shop
    certifies again, and ledger and audit log have who decided what. What has no answer, or was refused, stays in its form."""
    shop.machines[0].order("counters", tc=0, fvc=0)
    wait_for(lambda: shop.http.get("/health/ready").json()["machines"][0]["attention"], "attention")
    before = audited(shop, "attempt.settled")
    tech = person("technician", view)
    expect(tech.go("/ui/").get_by_test_id("machine-state").first).to_have_attribute("data-state", "attention")
    tech.page.get_by_role("link", name=view.say("To decide")).click()
    expect(tech.page.locator("main")).to_contain_text("TC 0, FVC 0, FRC 0")
    expect(tech.page.locator(".case .problem")).to_contain_text(view.say(WENT_DOWN))
    usable(tech.page)
    tech.page.locator("[value=adopt]").check()
    tech.press("Decide")
    assert "done=" not in tech.page.url  # the browser itself asks for the reason
    tech.page.locator("[name=reason]").fill("machine remplacée par le réparateur")
    tech.page.locator("[name=case]").evaluate("shown => shown.value = 'another'")
    tech.press("Decide")
    expect(tech.page.locator("body")).to_contain_text(
        view.say(CHANGED)
    )  # it was decided by somebody else meanwhile, or looks different by now
    assert audited(shop, "attempt.settled") == before
    tech.complaints.clear()  # Chromium notes what was refused
    expect(tech.page.locator("[name=reason]")).to_have_value("machine remplacée par le réparateur")
    expect(tech.page.locator("[value=adopt]")).to_be_checked()
    tech.go("/ui/attention").locator("[value=adopt]").check()
    tech.page.locator("[name=reason]").fill("machine remplacée par le réparateur")
    tech.context.set_offline(True)
    tech.press("Decide")
    expect(tech.page.get_by_role("alert").filter(has_text=view.say(NO_ANSWER))).to_be_focused()
    expect(tech.page.locator("[name=reason]")).to_have_value("machine remplacée par le réparateur")
    usable(tech.page)
    tech.context.set_offline(False)
    tech.complaints.clear()  # Chromium notes what was not answered
    tech.press("Decide")
    tech.sees_message("Decided. The machine goes on within seconds.")
    number = f"T-{view.language}-{view.size['width']}"
    wait_for(lambda: shop.certify(invoice(number)).status_code == 200, "a certification after the decision")
    after = audited(shop, "attempt.settled")
    assert [actor for actor, _ in after[: len(after) - len(before)]] == ["user:technician"]


def test_a_sale_without_an_answer_stays_in_its_form_and_is_certified_once(person: People, shop: Shop) -> None:
    """The browser showed its own error, and back at the form it was empty, with another key: what was certified already was typed and certified again.
    Without a connection, and where the box dies after the machine has certified, the form stays as it is, and is sent again under its key. While
    the box is gone the screen says so, and no more once it is back."""
    awa = person("technician", FRENCH_PHONE)
    form = awa.go("/ui/sale").locator("#sale")
    for name, value in {"name1": "Natte", "price1": "1250"}.items():
        form.locator(f"[name={name}]").fill(value)
    form.locator("[name=group1]").select_option("A")
    form.locator("[name=client]").select_option("CC")
    before = len(shop.machines[0].certified())
    note = awa.page.get_by_text(awa.view.say(NO_ANSWER))
    awa.context.set_offline(True)
    awa.press("Certify")
    expect(note).to_be_visible()
    expect(awa.page.get_by_test_id("box-silent")).to_be_visible()
    usable(awa.page)
    awa.context.set_offline(False)
    shop.machines[0].order("pause-at", next=6, when="after", direction="in")
    awa.press("Certify")
    expect(note).to_be_hidden()
    wait_for(shop.machines[0].is_stopped, "38h")
    shop.kill_daemon()
    expect(note).to_be_visible()
    silent = awa.page.get_by_test_id("box-silent")
    expect(silent).to_contain_text("Plus de nouvelles du boîtier")
    shop.machines[0].order("resume")
    shop.start_daemon()
    expect(silent).to_be_hidden(timeout=2 * PATIENCE_MS)
    awa.press("Certify")
    awa.page.wait_for_url("**/ui/journal/*")
    expect(awa.page.locator("main")).to_contain_text("1\N{NARROW NO-BREAK SPACE}250")
    assert len(shop.machines[0].certified()) == before + 1
    awa.complaints.clear()  # Chromium notes what was not answered


def test_what_is_refused_is_shown_in_its_form_with_its_total(person: People) -> None:
    """The answer takes the place of the screen: the fault stands above it, the fields are as they were typed, and the total is made as before."""
    awa = person("technician")
    page = awa.go("/ui/sale")
    page.fill("[name=name1]", "Natte")
    page.fill("[name=price1]", "0")
    page.locator("[name=client]").select_option("CC")
    awa.press("Certify")
    expect(page.get_by_role("alert").first).to_be_focused()
    page.fill("[name=price1]", "1 250")
    expect(page.locator("#total")).to_contain_text("250")
    awa.complaints.clear()  # Chromium notes what was refused


@pytest.mark.parametrize("path", ["/ui/", "/ui/journal"])
def test_a_box_whose_bytes_do_not_come_is_seen(person: People, shop: Shop, path: str) -> None:
    """A process that hangs, or a cable that swallows every byte: connections stay open and nothing is heard. The screen says
    so, live or not, and shows no machine as ready; it is right again by itself."""
    tech = person("technician", FRENCH_PHONE)
    silent = tech.go(path).get_by_test_id("box-silent")
    states = tech.page.get_by_test_id("machine-state")
    expect(silent).to_be_hidden()
    os.kill(shop.pid, signal.SIGSTOP)
    try:
        expect(silent).to_be_visible()
        for state in states.all():
            expect(state).to_be_hidden()
    finally:
        os.kill(shop.pid, signal.SIGCONT)
    expect(silent).to_be_hidden()
    for state in states.all():
        expect(state).to_be_visible()
    tech.complaints.clear()  # Chromium notes what was not answered


def test_a_machine_that_is_switched_off_can_be_looked_at_closely(browser: Browser, tmp_path: Path) -> None:
    """Its line is free: the box's screen offers the probe, and shows what came of each assumption. One that is in use is left
    alone, by hand too."""
    with Shop(tmp_path, per_machine={"enabled": False}) as off:
        off.start(ready=False)
        create_users(off, ["technician"])
        tech = Person(browser, off, session=session_of(off, "technician"))
        tech.go("/ui/box").get_by_role("link", name="L'examiner de près").click()
        expect(tech.page.get_by_test_id("probe-row").first).to_contain_text("confirmé", timeout=60_000)
        usable(tech.page)
        assert tech.complaints == []
        tech.context.close()


def test_a_machine_in_use_is_not_probed(person: People) -> None:
    """The line of a running machine is never shared: an ordinary refusal, and no fault of the box."""
    tech = person("technician")
    expect(tech.go("/ui/box").get_by_role("link", name="L'examiner de près")).to_have_count(0)
    answer = tech.context.request.get(f"{tech.base}/ui/box/probe")
    assert (answer.status, "est en service" in answer.text()) == (409, True)


def test_what_was_refused_is_sent_again_and_noted_once(
    person: People, shop: Shop, headquarters: HttpHeadquarters
) -> None:
    """A closure that headquarters refused waits as refused; one press sends it again, and the audit log has one entry of it."""
    assert shop.close_period().status_code == 201
    wait_for(lambda: shop.http.get("/health/ready").json()["upstream"][0]["waiting"] == 0, "an empty outbox")
    arrived = len(apart(headquarters.events()))
    apart(headquarters.script({"status": 400}))
    assert shop.certify(invoice("T-3")).status_code == 200
    number = shop.close_period().json()["z_number"]
    wait_for(lambda: shop.http.get("/health/ready").json()["upstream"][0]["parked"] == 1, "the refusal")
    tech = person("technician")
    expect(tech.go("/ui/").get_by_test_id("state")).to_have_attribute("data-level", "amber")
    expect(tech.page.get_by_test_id("state")).to_contain_text("le siège a refusé 1 clôture")
    for screen in ("/ui/closures", f"/ui/closures/{number}"):
        expect(tech.go(screen).locator("main")).to_contain_text("Refusé par le siège\N{NO-BREAK SPACE}: ")
    expect(tech.go("/ui/closures/1").locator("main")).not_to_contain_text("Refusé")
    tech.go("/ui/box")
    tech.page.get_by_role("button", name="Renvoyer ce qui a été refusé").click()
    expect(tech.page.get_by_role("status")).to_contain_text("renvoyé")
    wait_for(lambda: len(apart(headquarters.events())) == arrived + 1, "the closure")
    assert apart(headquarters.events())[-1]["subject"] == str(number)
    assert audited(shop, "outbox.replayed") == [("user:technician", "upstream")]
    expect(tech.go("/ui/box").get_by_role("button", name="Renvoyer ce qui a été refusé")).to_have_count(0)


@pytest.mark.parametrize(("share", "banner"), [(2, "presque plein"), (0.5, "Ventes arrêtées")])
def test_a_disk_is_seen_before_it_is_full(tmp_path: Path, share: float, banner: str) -> None:
    """Amber while sales go on; red once they stop, and what was counted for a Z that cannot be stored stays in its form."""
    reserve = int(shutil.disk_usage(tmp_path).free / share) >> 20
    with Shop(tmp_path, config={"storage": {"reserve_mb": reserve}}) as full:
        full.start(ready=share > 1)
        create_users(full, ["manager"])
        with Visitor(full, "manager") as manager:
            wait_for(lambda: banner in manager.get("/ui/state").text, "the banner")
            closed = manager.post("/ui/z", data={"key": "full", "n500": "7"})
            expected = (303, False) if share > 1 else (507, True)
            assert (closed.status_code, 'value="7"' in closed.text) == expected


def test_another_machine_on_the_line_is_named_in_the_banner(tmp_path: Path) -> None:
    """The banner said that the machine does not answer, and to look at its power; what is wrong is the cable or the configuration."""
    with staffed_shop(tmp_path, "seller") as shop:
        shop.machines[0].order("reboot", seconds=0.1, nim="EL09000009-1")
        with Visitor(shop, "seller") as seller:
            wait_for(lambda: "Ventes arrêtées" in seller.look("/ui/state"), "the banner")
            wait_for(lambda: "EL09000009-1" in seller.look("/ui/"), "the other machine on Today")
            state = seller.look("/ui/state")
            assert "la machine sur cette ligne est EL09000009-1" in state, state
            assert "alimentation" not in state


def test_another_taxpayer_leaves_the_tills_without_a_key(tmp_path: Path) -> None:
    """Keys of the taxpayer before are refused (decision 33): the banner was green while no till could sell. It is red, and says who is to be called, until
    a till has a new key; the list of keys says which are the former taxpayer's."""
    with staffed_shop(tmp_path, "technician", "seller", first=HURRIED) as shop:
        assert shop.certify(invoice("R-1")).status_code == 200
        shop.machines[0].order("options", ifu="00099999Z")
        shop.machines[0].order("reboot", seconds=0.1)
        with Visitor(shop, "seller") as seller, Visitor(shop, "technician") as technician:
            wait_for(lambda: "Les caisses sont refusées" in seller.look("/ui/state"), "the banner")
            assert shop.certify(invoice("R-2")).status_code == 401
            state = html.unescape(seller.look("/ui/state"))
            assert 'data-level="bad"' in state
            assert (
                "chaque caisse a besoin d'une nouvelle clé\N{NO-BREAK SPACE}; appelez la personne qui s'occupe du boîtier."
                in state
            )
            assert 'href="/ui/box/keys"' in technician.look("/ui/state")
            assert "d'un autre contribuable" in html.unescape(technician.look("/ui/box/keys"))
            shop.use_key(shop.change(CreateKey(NIM, "live", "till")))
            assert shop.certify(invoice("R-2")).status_code == 200
            assert 'data-level="good"' in seller.look("/ui/state")


@pytest.mark.parametrize(("is_over", "banner"), [(False, "se termine le"), (True, "Les caisses sont refusées")])
def test_the_end_of_a_certificate_is_seen_before_the_tills_refuse_it(
    tmp_path: Path, *, is_over: bool, banner: str
) -> None:
    """A certificate of the shop's own, which only doctor looked at: amber two weeks before its end, and red after it."""
    pair = str(Authority(tmp_path).issue(expired=is_over))
    with Shop(tmp_path, config={"server": {"tls_cert": pair, "tls_key": pair}}) as shop:
        shop.http.close()
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        shop.http = httpx.Client(base_url=f"https://127.0.0.1:{shop.port}", timeout=60, verify=trust)
        shop.start()
        create_users(shop, ["seller"])
        shop.http.headers["Origin"] = f"https://127.0.0.1:{shop.port}"
        form = {"name": "seller", "password": PASSWORD}
        assert shop.http.post("/ui/login", data=form).status_code == 303
        wait_for(lambda: banner in html.unescape(shop.http.get("/ui/state").text), "the banner")


def test_a_ledger_that_does_not_know_its_last_z_is_no_green_banner(tmp_path: Path) -> None:
    """After a restore onto a new disk no day can be closed before the last Z is entered (decision 30): the banner and the screen that closes say so
    before anybody counts, and what was counted stays in its form. Nobody reads a command: a technician enters the number in the page, twice."""
    with staffed_shop(tmp_path, "manager", "technician") as shop:
        assert shop.certify(invoice("R-1")).status_code == 200
        shop.closed()
        shop.mcfd("backup", "--into", str(tmp_path / "stick"), check=True)
        shop.stop_daemon()
        for file in tmp_path.glob("mcfd.sqlite3*"):
            file.unlink()
        (copy,) = (tmp_path / "stick").glob("*.sqlite3")
        shop.mcfd("restore", str(copy), "--yes", check=True)
        shop.start_daemon()
        with Visitor(shop, "manager") as manager, Visitor(shop, "technician") as technician:
            remedy = f"le dernier Z de {NIM} n&#39;est pas connu"
            state = manager.look("/ui/state")
            assert 'data-level="amber"' in state, state
            assert (remedy in state, "appelez" in state, "mcfd machine" in state) == (True, True, False)
            assert remedy in manager.look("/ui/z").partition("<main")[2]
            closed = manager.post("/ui/z", data={"key": "asks", "n500": "7"})
            assert (closed.status_code, 'value="7"' in closed.text) == (409, True)
            assert '<a href="/ui/attention">' in technician.look("/ui/state")
            assert 'text-red-fg">1<' in technician.look("/ui/attention")
            by_enter = '<input type="hidden" name="decision" value="last-z"><button disabled hidden>'
            assert by_enter in technician.look("/ui/attention")  # the default button: Enter enters nothing
            form = {"m": NIM, "decision": "last-z"}
            for last_z, again in (("12", "21"), ("", ""), ("douze", "douze"), ("0", "0")):
                wrong = technician.submit("/ui/attention", **form, last_z=last_z, again=again)
                assert (wrong.status_code, f'value="{last_z}"' in wrong.text) == (422, True), last_z
            assert manager.submit("/ui/attention", **form, last_z="12", again="12").status_code == 403
            entered = technician.submit("/ui/attention", **form, last_z=" 1 012", again="1012")
            assert "Numéro saisi" in technician.look(entered.headers["location"])
            assert 'data-level="good"' in manager.look("/ui/state")
            assert technician.submit("/ui/attention", **form, last_z="9", again="9").status_code == 422
            assert audited(shop, "z_number.said") == [("user:technician", f"{NIM} live")]
            assert shop.close_period().json()["z_number"] == 1013


def test_a_copy_is_put_back_in_the_page(browser: Browser, tmp_path: Path) -> None:
    """What was certified since is said first, and nothing happens without a yes; then the daemon starts again with a ledger mended by the copy, which
    says who put it there, keeps the other beside it, and has what was certified since. No session is left: a login leads back to the box."""
    view = FRENCH_PHONE
    with staffed_shop(tmp_path, "technician") as shop:
        assert shop.certify(invoice("R-1")).status_code == 200
        tech = Person(browser, shop, view, session_of(shop, "technician"))
        shop.mcfd("backup", "--into", str(shop.ledger.parent / "backups"), check=True)
        assert shop.certify(invoice("R-2")).status_code == 200
        shop.x_with(2)
        tamper(shop.ledger, "UPDATE certification SET payload = x'00' WHERE number = 'R-1'")
        tech.go("/ui/box/backups")
        tech.page.get_by_text(view.say("Put back …")).click()
        expect(tech.page.locator("main")).to_contain_text("certifications depuis\N{NO-BREAK SPACE}: 1")
        usable(tech.page)
        tech.press("Put it back now")
        expect(tech.page.locator("h1")).to_have_text(view.say("Put a copy back"))  # the browser itself asks for the yes
        tech.page.locator("[name=sure]").check()
        tech.page.add_init_script(DELAYED_FETCH)
        tech.press("Put it back now")
        expect(tech.page.locator("h1")).to_have_text(view.say("The copy is put back"))
        usable(tech.page)
        tech.page.evaluate("window.goOn = true")
        tech.page.wait_for_url("**/ui/login", timeout=60_000)
        tech.fill_in_login("technician")
        expect(tech.page.locator("h1")).to_have_text(view.say("Health"))
        expect(tech.go("/ui/").locator(".period")).to_contain_text("2 factures, ")
        expect(tech.go("/ui/x").locator(".figures li").first).to_have_text("2factures")
        tech.context.close()
        wait_for(shop.is_ready, "service")
        shop.verify()
        assert audited(shop, "ledger.restored") == [("user:technician", str(shop.ledger))]
        assert len(list(shop.ledger.parent.glob("*.replaced-*[0-9Z]"))) == 1
        assert not (shop.ledger.parent / "restore.json").exists()
