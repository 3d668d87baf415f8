"""The page in a real Chromium, on a real headquarters with closures in it: both languages, phone and desktop, no script."""

import csv
import io
import shutil
import subprocess
import time

import httpx
import pytest
from playwright.sync_api import expect
from support.browser import chromium, fits, usable
from support.hq.paper_box import DAY, EVENING, PaperBox
from support.hq.running import RunningHq
from support.hq.store import presence_word, received
from support.shop import PLAIN

from headquarters.core.wording import sentence
from headquarters.store.store import HqStore

pytestmark = pytest.mark.long

NIM = "EL02000015-1"
MONTH = "2025-12"
PASSWORD = "un mot de passe"  # noqa: S105  # of a test


@pytest.fixture(scope="module")
def hq(tmp_path_factory):
    directory = tmp_path_factory.mktemp("page")
    hq = RunningHq(directory, f"sqlite:///{directory}/hq.sqlite3")
    store = HqStore(hq.url)
    store.open()
    fill(store)
    hq.start()
    for name, role in (("Awa", "admin"), ("Issa", "accountant"), ("Ali", "reader")):
        hq.cli("users", "create", name, "--role", role, "--password-stdin", stdin=PASSWORD + "\n")
    hq.store = store
    hq.sessions = {}
    yield hq
    store.close()
    assert hq.stop() == 0


def fill(store):
    """Two shops in December 2025; the first lacks Z 3, the second is named like a formula and says how it is."""
    first, second = PaperBox(NIM), PaperBox("EL02000017-1")
    store.register.add(first.nim, first.key.public, now=1, label="Ouaga Centre", region="Centre")
    store.register.add(second.nim, second.key.public, now=1, label="=Bobo", region="Ouest")
    now = time.time_ns() // 1_000_000
    for box in (first, second):
        closures = [box.close(sales=n) for n in range(1, 6)]
        rows = [closure for closure in closures if (box, closure.z_number) != (first, 3)]
        store.closures.store([received(box, closure, store) for closure in rows], now=now)
    presence = second.presence(at=now, tax_days=6)
    store.presences.store([presence_word(second, presence)], now=now)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(hq, browser):
    """A page of somebody who is logged in, by the form if `typed`; at the end: no error on its console, nothing asked of anybody else."""
    opened, trouble = [], []

    def page(name="Issa", locale="fr-BF", *, typed=False, **options):
        context = browser.new_context(locale=locale, base_url=hq.base, accept_downloads=True, **options)
        opened.append(context)
        page = context.new_page()
        page.trouble = trouble
        page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith(hq.base) else trouble.append(request.url))
        if not typed:
            context.add_cookies(
                [{"name": key, "value": text, "url": hq.base} for key, text in session(hq, name).items()]
            )
        page.goto("/")
        if typed:
            page.fill("input[name=name]", name)
            page.fill("input[name=password]", PASSWORD)
            page.click("[data-testid=login]")
        page.wait_for_url("**/ui/")
        return page

    yield page
    for context in opened:
        context.close()
    assert trouble == []


def test_calendar_to_proof(hq, open_page):
    """From the form of names and passwords to the shops' calendar, and on to one closure with its proof, in French."""
    page = open_page(typed=True)
    expect(page.get_by_test_id("open-findings")).to_have_text(str(len(hq.store.findings.listed(is_open=True))))
    page.goto(f"/ui/?month={MONTH}")
    expect(page.locator("h1")).to_have_text("Clôtures – décembre 2025")
    shops = page.get_by_test_id("shop-row")
    expect(shops.filter(has_text="=Bobo")).to_have_count(1)
    assert shops.filter(has_text="Ouaga Centre").locator("td.c a").count() == 4
    one = shops.filter(has_text="Ouaga Centre").locator(".bad")
    expect(one).to_have_text("⚠ 1")
    expect(one).to_have_attribute("title", "constat ouvert")
    page.click("text=Ouaga Centre")
    page.wait_for_url("**/ui/shops/**")
    expect(page.get_by_test_id("closure-row")).to_have_count(4)
    expect(page.get_by_test_id("finding-gap")).to_contain_text("Z 3 manque")
    page.click("text=Z 4")
    expect(page.get_by_test_id("total-ttc")).to_have_text("32\xa0000\xa0F\xa0CFA")
    expect(page.get_by_test_id("proof")).to_have_text("l'empreinte est celle des chiffres")
    expect(page.locator("pre")).to_contain_text('"z_number":4')


def test_english_on_a_phone(open_page):
    """The browser's language, and the person's choice over it; nothing is wider than a phone but what scrolls by itself."""
    page = open_page(locale="en-GB", viewport={"width": 360, "height": 740})
    page.goto(f"/ui/totals?month={MONTH}")
    expect(page.locator("h1")).to_have_text("Totals – December 2025")
    expect(page.get_by_test_id("month-total")).to_have_text("216\xa0000\xa0F\xa0CFA")
    expect(page.get_by_test_id("missing")).to_contain_text("1 closure of this month has not come")
    wide = "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 360 && !e.closest('.table-responsive'))"
    assert page.evaluate(f"{wide}.map(e => e.outerHTML.slice(0, 80))") == []
    page.locator(".account summary").click()
    page.click("text=Français")
    expect(page.locator("h1")).to_have_text("Totaux – décembre 2025")


@pytest.mark.parametrize(("seconds", "time"), [(-119, "119 s"), (121, "2 min"), (-7200, "2 h"), (-849223436, "9828 j")])
def test_a_clock_is_off_by_so_many_days_and_not_by_millions_of_seconds(seconds, time):
    """As a person reads it, whichever clock is ahead."""
    assert sentence("clock", {"what": "box", "seconds": seconds}, "fr") == f"l'horloge du boîtier est décalée de {time}"


def test_the_calendar_opens_on_today_on_a_phone(hq, open_page):
    """The last column is today's, on the screen beside the names; a month before ends with its last day."""
    page = open_page(viewport={"width": 360, "height": 740})
    today = page.get_by_test_id("calendar").locator("thead th").last
    assert f" {int(today.inner_text()):02}/" in page.get_by_test_id("closed-1").locator("..").inner_text()
    expect(today).to_be_in_viewport(ratio=1)
    expect(page.get_by_test_id("shop-row").first.locator("th")).to_be_in_viewport(ratio=1)
    page.goto(f"/ui/?month={MONTH}")
    expect(page.get_by_test_id("calendar").locator("thead th").last).to_have_text("31")
    page.goto("/ui/?month=2099-01")
    expect(page.get_by_test_id("calendar").locator("thead th").last).to_have_text("31")


@pytest.mark.parametrize("width", [360, 1440])
def test_everybody_can_use_it(hq, open_page, width):
    """Each screen, in French on a phone and in English on a desk: WCAG 2.2 AA; the colours, which no width changes, on the desk."""
    is_phone = width == 360
    page = open_page(
        "Awa",
        locale="fr-BF" if is_phone else "en-GB",
        viewport={"width": width, "height": 800},
        has_touch=is_phone,
    )
    closure = hq.store.figures.lines()[0]
    screens = ("", "totals", "findings", "boxes", "join", "exports", "people", "shops/EL02000015")
    for screen in (*screens, f"closures/{closure.machine}/{closure.id}", "no-such-page"):
        page.goto(f"/ui/{screen}?month={MONTH}" if screen in ("", "totals") else f"/ui/{screen}")
        usable(page, with_colours=not is_phone)
    # What is not there is answered with 404, which a browser says on its console too.
    page.trouble.clear()


def test_a_finding_is_seen_and_solved(hq, open_page):
    """An accountant says that it was seen, and what became of it; a reader has no such button."""
    page = open_page("Ali")
    page.goto("/ui/findings")
    expect(page.get_by_test_id("finding-tax-server")).to_contain_text("6 jours")
    expect(page.get_by_test_id("solve")).to_have_count(0)
    page = open_page("Issa")
    page.goto("/ui/findings")
    row = page.get_by_test_id("finding-tax-server")
    row.get_by_test_id("see").click()
    expect(row).to_contain_text("Issa")
    row.locator("input[name=note]").fill("réseau en panne")
    row.get_by_test_id("solve").click()
    expect(page.get_by_test_id("finding-tax-server")).to_have_count(0)
    page.click("text=Avec les résolus")
    expect(page.get_by_test_id("finding-tax-server")).to_contain_text("réseau en panne")


def test_a_lost_ledger_is_accepted(hq, open_page):
    """By an admin alone, and only the ledger that she has seen; then the finding is solved in her name."""
    lost = PaperBox("EL02000019-1")
    hq.store.register.add(lost.nim, lost.key.public, now=1, label="Koudougou")
    hq.store.closures.store([received(lost, lost.close(at=EVENING + 60 * DAY), hq.store)], now=2)
    new = PaperBox(lost.nim, key=lost.key, seed="after the loss")
    presence = new.presence()
    hq.store.presences.store([presence_word(new, presence)], now=time.time_ns() // 1_000_000)
    with logged_in(hq, "Issa") as client:
        assert client.get("/ui/shops/EL02000019-1/ledger").status_code == 403
        own = {"sec-fetch-site": "same-origin"}
        assert client.post("/ui/shops/EL02000019-1/ledger", headers=own, data={"ledger": new.ledger}).status_code == 403
    with logged_in(hq, "Awa") as client:
        assert (
            client.post("/ui/shops/EL02000019-1/ledger", headers=own, data={"ledger": lost.ledger}).status_code == 409
        )
        assert client.get("/ui/shops/EL99999999-1/ledger").status_code == 404
    assert hq.store.register.ledgers("EL02000019") == []
    page = open_page("Awa")
    page.goto("/ui/findings")
    row = page.get_by_test_id("finding-fork")
    expect(row).to_contain_text("Koudougou")
    expect(row).to_contain_text("EL02000019-1")
    row.get_by_test_id("to-ledger").click()
    expect(page.locator("main")).to_contain_text(new.ledger)
    usable(page)
    page.get_by_test_id("accept-ledger").click()
    page.wait_for_url("**/ui/shops/EL02000019-1")
    expect(page.get_by_test_id("ledger")).to_contain_text("Awa")
    page.goto("/ui/findings")
    expect(page.get_by_test_id("finding-fork")).to_have_count(0)
    page.goto("/ui/shops/EL02000019-1/ledger")
    expect(page.get_by_test_id("no-ledger")).to_contain_text("déjà")


def test_a_code_is_made_on_the_smallest_phone(open_page):
    """The list of unused codes scrolls by itself, the screen does not."""
    page = open_page("Awa", viewport={"width": 320, "height": 640})
    page.goto("/ui/join")
    page.fill("input[name=nims]", "EL02000040-1 EL02000041-1")
    page.fill("input[name=label]", "Établissements Ouédraogo et Frères")
    page.click("[data-testid=make-code]")
    expect(page.get_by_test_id("codes")).to_contain_text("EL02000041-1")
    fits(page)


def test_a_box_that_says_nothing_more_is_not_shown_as_connected(hq, open_page):
    """An hour after its last word its state is unknown, in the list of all boxes as at its shop."""
    box, hour = PaperBox("EL02000021-1"), 3_600_000
    then = time.time_ns() // 1_000_000 - hour
    hq.store.register.add(box.nim, box.key.public, now=1, label="Kaya", region="Centre")
    hq.store.presences.store([presence_word(box, box.presence(at=then))], now=then)
    page = open_page()
    page.goto("/ui/boxes")
    for text in ("Ouaga Centre", "connectée", "jamais"):
        expect(page.get_by_test_id("boxes")).to_contain_text(text)
    row = page.get_by_test_id("box-row").filter(has_text="Kaya")
    expect(row).to_contain_text("sans nouvelles")
    expect(row).not_to_contain_text("connectée")
    row.get_by_role("link").click()
    expect(page.locator("main > p").first).to_contain_text("sans nouvelles")
    expect(page.locator("main")).not_to_contain_text("connectée")


def test_people(hq, open_page):
    """An admin adds somebody, who can log in, and disables him, who is out at once."""
    page = open_page("Awa")
    page.goto("/ui/people")
    page.fill("main input[name=name]", "Fatou")
    page.fill("main input[name=password]", PASSWORD)
    page.select_option("select[name=role]", "reader")
    page.click("[data-testid=add-person]")
    expect(page.get_by_test_id("people")).to_contain_text("Fatou")
    fatou = open_page("Fatou", typed=True)
    page.locator("tr", has_text="Fatou").get_by_role("button").click()
    expect(page.locator("tr", has_text="Fatou")).to_contain_text("désactivé")
    fatou.goto("/ui/totals")
    expect(fatou.locator("h1")).to_have_text("Se connecter")


def download(page):
    page.goto("/ui/exports")
    with page.expect_download() as waiting:
        page.evaluate(f"location.href = '/ui/exports/closures.csv?month={MONTH}'")
    return waiting.value.path()


def test_export_in_libreoffice(open_page, tmp_path):
    """LibreOffice reads the file with French settings and gives the same numbers back."""
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("needs Debian's package libreoffice-calc-nogui")
    source = tmp_path / "clotures.csv"
    source.write_bytes(download(open_page()).read_bytes())
    command = [office, "--headless", f"-env:UserInstallation=file://{tmp_path}/profile", "--infilter=CSV:59,34,76,1"]
    command += [
        "--convert-to",
        "csv:Text - txt - csv (StarCalc):44,34,76",
        "--outdir",
        str(tmp_path / "out"),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "clotures.csv").read_text("utf-8-sig"))))
    assert sum(int(row["Total TTC"]) for row in rows) == 216_000


def client_of(hq, cookies=None):
    return httpx.Client(base_url=hq.base, trust_env=False, timeout=30, verify=PLAIN, cookies=cookies)


def log_in(client, name):
    assert client.post("/ui/login", data={"name": name, "password": PASSWORD}).status_code == 303


def session(hq, name):
    """The cookie of somebody who has logged in once: a password costs a tenth of a second of a processor, and means to."""
    if name not in hq.sessions:
        with client_of(hq) as client:
            log_in(client, name)
            hq.sessions[name] = dict(client.cookies)
    return hq.sessions[name]


def logged_in(hq, name):
    return client_of(hq, session(hq, name))


@pytest.mark.parametrize(
    ("name", "path", "status"),
    [
        ("Ali", "/ui/exports/closures.csv", 403),
        ("Ali", "/ui/people", 403),
        ("Issa", "/ui/people", 403),
        ("Issa", "/ui/exports/closures.csv", 200),
        ("Awa", "/ui/people", 200),
        ("Issa", "/ui/join", 403),
        ("Ali", "/ui/shops/EL99999999-1", 404),
        ("Ali", "/ui/?month=2025-13", 404),
        ("Ali", "/ui/closures/EL02000015/x", 404),
    ],
)
def test_who_may_see_what(hq, name, path, status):
    """Each role sees what it may; what is not there is a page of ours."""
    with logged_in(hq, name) as client:
        answer = client.get(path)
        assert answer.status_code == status
        assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_a_code_that_is_shown_once_is_not_lost_to_another_language(hq):
    """The screen that shows it has no way to another language, which would ask for the screen again."""
    with logged_in(hq, "Awa") as client:
        assert "/ui/language/" in client.get("/ui/join").text
        answer = client.post("/ui/join", data={"nims": "EL02000099-1"}, headers={"origin": hq.base})
        assert ("join-code" in answer.text, "/ui/language/" in answer.text) == (True, False)


def test_an_administrator_cannot_disable_themselves(hq):
    """The last administrator would be locked out."""
    with logged_in(hq, "Awa") as client:
        assert 'name="name" value="Awa"' not in client.get("/ui/people").text
        answer = client.post("/ui/people/disable", data={"name": "Awa"}, headers={"origin": hq.base})
        assert answer.status_code == 422
        assert client.get("/ui/people").status_code == 200


@pytest.mark.parametrize(
    ("path", "form", "visible"),
    [
        ("/ui/join", {"nims": "EL02", "label": "Dédougou", "region": "Mouhoun"}, ("EL02", "Dédougou", "Mouhoun")),
        ("/ui/people", {"name": "Fatou", "role": "accountant", "password": "court"}, ("Fatou",)),
    ],
)
def test_a_form_that_is_refused_comes_once_more(hq, path, form, visible):
    """With what was typed but for a password."""
    with logged_in(hq, "Awa") as client:
        answer = client.post(path, data=form, headers={"origin": hq.base})
        assert answer.status_code == 422
        assert all(f'value="{text}"' in answer.text for text in visible)
        assert 'value="court"' not in answer.text
        assert ('value="accountant" selected' in answer.text) == (path == "/ui/people")


def test_a_login_leads_to_what_was_asked_for(hq):
    """To the screen, as it was asked for, if the role may see it; nowhere else, whatever the browser's cookie says; and once."""
    query = "/ui/totals?month=2026-10"
    with client_of(hq) as client:
        for path in (query, "/ui/people", "/ui/exports/closures.csv"):
            assert client.get(path).headers["location"] == "/ui/login"
            answer = client.post("/ui/login", data={"name": "Ali", "password": PASSWORD})
            assert answer.headers["location"] == (path if path == query else "/ui/")
            assert (client.get(query).status_code, "hq_asked" in client.cookies) == (200, False)
            client.cookies.delete("hq_session")
        client.cookies.set("hq_asked", "//evil.example", path="/ui/login")
        assert client.post("/ui/login", data={"name": "Ali", "password": PASSWORD}).headers["location"] == "/ui/"
