"""The shop's page in real Chromium: what a person sees and does there, in French and English, on a phone and on a desktop."""

import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pypdf
import pytest
from playwright.sync_api import Browser, Page, expect
from support.browser import (
    BOTH_VIEWS,
    ENGLISH_DESKTOP,
    FRENCH_PHONE,
    PASSWORD,
    PATIENCE_MS,
    Person,
    View,
    create_in_passing,
    fits,
    session_of,
    usable,
)
from support.shop import Shop, invoice, wait_for

from daemon.store.tables.audit import newest_entries

SCREENS = (
    "/ui/",
    "/ui/journal",
    "/ui/journal/1",
    "/ui/journal/1/credit",
    "/ui/sale",
    "/ui/vat",
    "/ui/cash",
    "/ui/waiting",
    "/ui/outages",
    "/ui/spare",
    "/ui/closures",
    "/ui/a",
    "/ui/x",
    "/ui/z",
    "/ui/attention",
    "/ui/box",
    *(f"/ui/box/{each}" for each in ("keys", "people", "backups", "history", "update")),
    "/ui/files",
    "/ui/log",
    "/ui/account",
    "/ui/welcome",
)
People = Callable[..., Person]
in_both_views = pytest.mark.parametrize("view", BOTH_VIEWS)


def named(view: View, what: str) -> str:
    """A number of an invoice that this view alone has."""
    return f"{what}-{view.language}-{view.size['width']}"


@in_both_views
def test_log_in_and_out(person: People, view: View) -> None:
    """One begins to type at once. A wrong password says so and shows nothing; the right one opens today; logged out, nothing is shown any more. Who asked for a screen
    and was shown the login instead is on that screen after it."""
    awa = person(view=view)
    expect(awa.go("/ui/login").locator("[name=name]")).to_be_focused()
    awa.fill_in_login("manager", "something else")
    expect(awa.page.get_by_role("alert")).to_contain_text(view.say("Wrong name or password."))
    expect(awa.page.locator("[name=password]")).to_be_focused()
    awa.complaints.clear()  # Chromium notes the 401 of a wrong password
    awa.log_in("manager")
    expect(awa.page.locator("h1")).to_have_text(view.say("Today"))
    awa.sees("sales-count")
    awa.page.locator(".account summary").click()
    awa.page.get_by_test_id("logout").click()
    awa.go("/ui/journal?q=P-1")
    assert awa.page.url.endswith("/ui/login")
    awa.fill_in_login("manager")
    assert awa.page.url == f"{awa.base}/ui/journal?q=P-1"


@in_both_views
def test_a_certification_arrives_by_itself(person: People, shop: Shop, view: View) -> None:
    """The number of sales and the list of the latest have it, without a reload (`make bench` has how soon), and a person who has gone to a link
    with the keyboard is still at it."""
    awa = person("reader", view)
    awa.go("/ui/")
    awa.sees("sales-count")
    link = awa.page.get_by_role("link", name=awa.page.locator(".latest a").first.inner_text())
    link.focus()
    before = int(awa.text("sales-count"))
    number = named(view, "LIVE")
    assert shop.certify(invoice(number, 7000)).status_code == 200
    expect(awa.page.get_by_text(number)).to_be_visible()
    expect(awa.page.get_by_test_id("sales-count")).to_have_text(str(before + 1))
    expect(link).to_be_focused()


def test_a_session_that_ended_under_an_open_screen(person: People, shop: Shop) -> None:
    """Logged out elsewhere, a screen that renews itself becomes the login, all of it; so does the journal while something is typed."""
    awa = person(view=FRENCH_PHONE)
    for path in ("/ui/", "/ui/journal"):
        awa.log_in("seller")
        page = awa.go(path)
        awa.context.request.post(f"{awa.base}/ui/logout", headers={"Origin": awa.base})
        if path == "/ui/":
            assert shop.certify(invoice("ENDED", 1000)).status_code == 200
        else:
            page.locator("[name=q]").press_sequentially("P-1")
        page.wait_for_url("**/ui/login", timeout=PATIENCE_MS)
        expect(page.locator("h1")).to_have_text("Se connecter")
    awa.complaints.clear()  # Chromium notes the stream that ended


@in_both_views
def test_a_machine_that_is_unplugged_is_seen(person: People, shop: Shop, view: View) -> None:
    """With the hour since when, and plugged in again; the screen says so by itself."""
    awa = person("seller", view)
    state = awa.go("/ui/").get_by_test_id("machine-state")
    for alive, text, words in ((True, "ready", "ready"), (False, "offline", "does not answer"), (True, "ready", "")):
        if not alive:
            shop.machines[0].kill()
        elif not words:
            shop.machines[0].start()
        expect(state).to_have_attribute("data-state", text)
        expect(state).to_contain_text(view.say(words) if words else "")
        if not alive:
            expect(state).to_have_text(re.compile(r"\((since|depuis) .*\d\d:\d\d\)$"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("days", "name", "is_drawn"),
    [
        (91, "Sales by day", True),
        (92, "Sales by month", True),
        (9000, "Sales by year", True),
        (30_000, "Sales by year", False),
    ],
)
def test_totals_of_any_days_have_a_chart(person: People, days: int, name: str, is_drawn: bool) -> None:
    """A bar for each day of up to 92, for each month of up to 120 and for each year of a longer range, together the total beside it; a
    lifetime has none."""
    awa = person("reader", ENGLISH_DESKTOP)
    to = datetime.now(UTC).date()
    start = to - timedelta(days=days)
    years = to.year - start.year + 1
    bars = {"Sales by day": 92, "Sales by month": (years - 1) * 12 + to.month - start.month + 1, "Sales by year": years}
    chart = awa.go(f"/ui/a?from={start}&to={to}").get_by_role("img", name=name)
    expect(chart.locator("rect")).to_have_count(bars[name] if is_drawn else 0)
    sold = awa.page.locator(".figures strong").nth(1).inner_text()
    words = chart.locator("title").all_text_contents()
    assert not is_drawn or sum(_number(each.partition(":")[2]) for each in words) == _number(sold) > 0


def _number(text: str) -> int:
    return int(re.sub(r"\D", "", text))


@pytest.mark.long
@in_both_views
def test_search_and_a_duplicate(person: People, shop: Shop, view: View) -> None:
    """By number, by a part of one, by amount, by customer; the duplicate to print is marked as one."""
    number, price = named(view, "FIND"), 40_321 + view.size["width"] * (2 if view.language == "fr" else 1)
    customer = {"clientType": "PM", "name": f"Boulangerie {number}", "ifu": "00012345A"}
    assert shop.certify(invoice(number, price, customer=customer)).status_code == 200
    awa = person("reader", view)
    for entry in (f"q={number}", f"q={number[1:]}", f"amount={price:,}".replace(",", " "), f"q=boulangerie {number}"):
        page = awa.go(f"/ui/journal?{entry}")
        expect(page.get_by_test_id("journal-row")).to_have_count(1)
    awa.page.get_by_role("link", name=number).click()
    with awa.context.expect_page() as opened:
        awa.follow("Print a duplicate")
    expect(opened.value.get_by_text(re.compile("DUPLICAT"))).to_be_visible()
    awa.go("/ui/journal?q=nobody-has-this")
    awa.sees_message("Nothing found.")


@in_both_views
def test_cash_is_noted_and_shown(person: People, shop: Shop, view: View) -> None:
    """A double click is one movement; an amount that is no whole number is refused, and nothing that was typed is lost; the drawer of today
    and the list have it, with who noted it."""
    before = shop.get("reports/x").json()["cash"]["withdrawals"]
    awa = person("manager", view)
    awa.go("/ui/")
    awa.follow("Note cash in or out")
    awa.page.locator("[name=kind]").select_option("withdrawal")
    awa.page.fill("[name=amount]", "2 500,50")
    awa.page.fill("[name=reason]", named(view, "bank"))
    awa.press("Note it")
    expect(awa.page.get_by_role("alert")).to_contain_text(view.say("Amount"))
    awa.complaints.clear()  # Chromium notes the 422
    assert awa.page.locator("[name=reason]").input_value() == named(view, "bank")
    awa.page.fill("[name=amount]", "2 500")
    awa.page.get_by_role("button", name=view.say("Note it")).dblclick()
    awa.sees_message("Noted.")
    row = awa.page.get_by_test_id("cash-row").filter(has_text=named(view, "bank"))
    expect(row).to_have_count(1)
    expect(row).to_contain_text("manager")
    drawer = shop.get("reports/x").json()["cash"]
    assert drawer["withdrawals"] == before + 2500
    text = awa.go("/ui/").get_by_test_id("cash-expected").inner_text()
    assert re.sub(r"\D", "", text) == str(abs(drawer["expected"]))


@pytest.mark.long
@in_both_views
def test_make_and_revoke_a_key(person: People, shop: Shop, view: View) -> None:
    """The key is shown once and works, strict as it was asked for; revoked in the page, which is asked once more, it works no more, at once."""
    label = named(view, "till")
    tech = person("technician", view)
    tech.go("/ui/box/keys")
    tech.page.locator("form[action*='/ui/box/key'] [name=label]").fill(label)
    tech.page.locator("[name=until]").fill("2099-12-31")
    tech.page.locator("[name=strict]").check()
    tech.press("Make a key")
    key = {"Authorization": f"Bearer {tech.text('new-key').strip()}"}
    usable(tech.page)
    assert shop.http.get("/v1/me", headers=key).json()["label"] == label
    refused = shop.certify(invoice(label, colour="blue"), headers=key)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "colour")
    row = tech.go("/ui/box/keys").locator(".keys tr").filter(has_text=label)
    expect(row).to_contain_text("2100")
    expect(row).to_contain_text(view.say("strict"))
    for_good = tech.page.get_by_role(
        "button", name=view.say("Confirm: revoke the key of {label} for good", label=label)
    )
    expect(for_good).to_be_hidden()
    row.locator("summary").click()
    usable(tech.page)
    fits = "table => table.scrollWidth <= table.parentElement.clientWidth"
    assert tech.page.locator("table.keys").evaluate(fits)
    for_good.click()
    tech.sees_message("The key works no more.")
    assert shop.http.get("/v1/me", headers=key).status_code == 401


@pytest.mark.long
@in_both_views
def test_a_backup_is_made_and_downloaded(person: People, shop: Shop, view: View) -> None:
    """Long work that may be left: the screen says when it is done, the copy is a ledger, and the audit log has who asked for it, once."""
    before = backups_of(shop)
    tech = person("technician", view)
    tech.go("/ui/box/backups")
    tech.press("Make a copy now")
    tech.go("/ui/journal")
    tech.go("/ui/box/backups")
    job = tech.page.get_by_test_id("job").first
    expect(job).to_have_attribute("data-state", "done")
    expect(job).to_contain_text(view.say("A verified copy was made: {name}", name=""))
    with tech.page.expect_download() as download:
        tech.page.locator("#backups a").first.click()
    assert download.value.path().read_bytes().startswith(b"SQLite format 3\0")
    assert backups_of(shop) == [*before, "user:technician"]


def backups_of(shop: Shop) -> list[str]:
    """Who asked for each, by the audit log."""
    entries = shop.with_store(lambda store: store.ledger.read(newest_entries, limit=100))
    return [entry.actor for entry in reversed(entries) if entry.action == "backup.taken"]


@pytest.mark.long
def test_the_ledger_is_verified_from_the_page(person: People) -> None:
    """All records of it, and the screen says so; what doctor finds comes after the rest of the screen."""
    tech = person("technician")
    tech.go("/ui/box")
    expect(tech.page.locator(".finding").first).to_be_visible()
    tech.follow("Backups")
    tech.press("Verify the ledger now")
    expect(tech.page.get_by_text(re.compile("Le registre est en ordre"))).to_be_visible()


@pytest.mark.long
def test_the_log_reads(person: People) -> None:
    """What happened since the start, in the person's language; a wrong password is found among what is serious."""
    tech = person(view=ENGLISH_DESKTOP)
    tech.log_in("technician", "not the password")
    tech.complaints.clear()  # Chromium notes the 401
    tech.log_in("technician")
    page = tech.go("/ui/log?only=serious")
    expect(page.get_by_test_id("log-line").first).to_contain_text("a login failed: wrong name or password")
    expect(tech.go("/ui/log?q=mcfd+started").get_by_test_id("log-line")).to_have_count(1)


@pytest.mark.long
@in_both_views
def test_every_screen_can_be_used_by_everybody(person: People, view: View) -> None:
    """WCAG 2.2 AA by axe-core without a violation, nothing wider than the screen or too small for a finger, the longest menu on one line: in
    both languages, by day and by night. The menu says to which of its items a screen belongs, and the box's tabs are one row in which the
    chosen one is seen."""
    tech = person("technician", view)
    for path in SCREENS:
        usable(tech.go(path))
        expect(tech.page.locator(".shell-menu [aria-current]")).to_have_count(0 if path == "/ui/account" else 1)
        if path.startswith("/ui/box"):
            expect(tech.page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=1)
            tops = tech.page.locator(".tabs li").evaluate_all(
                "all => all.map(each => each.getBoundingClientRect().top)"
            )
            assert len(set(tops)) == 1, (path, tops)
    side = "top" if view.is_touched else "left"  # a bar of tabs under the thumb, a sidebar on a desk
    menu = tech.page.locator(".shell-menu li")
    places = menu.evaluate_all(f"items => items.map(item => item.getBoundingClientRect().{side})")
    assert places == 5 * places[:1]


@pytest.mark.long
def test_the_banner_stays_on_a_long_screen(person: People) -> None:
    """Whether the tills can sell is seen at the end of the screen too."""
    page = person("technician", FRENCH_PHONE).go("/ui/")
    page.evaluate("document.querySelector('main').style.paddingBottom = '3000px'; scrollTo(0, 2500)")
    assert page.get_by_test_id("state").evaluate("banner => banner.getBoundingClientRect().top") == 0


@pytest.mark.long
def test_the_longest_names_fit(person: People, shop: Shop) -> None:
    """On a phone, a person's name, an invoice's number, an article and a reason of as many letters as they may have, without a space, make no screen wider than it is;
    the head keeps its two lines, and the amount of every line is in sight."""
    long = "wendpanga" * 30
    create_in_passing(shop, long[:32], "technician")
    article = {"name": long[:200], "taxGroup": "B", "unitPrice": 999_999_999, "quantity": 1}
    customer = {"clientType": "PP", "name": long[:200], "ifu": "00012345A"}
    paid = [{"method": "E", "amount": 999_999_999}]
    answer = shop.certify(invoice(long[:40], items=[article], payments=paid, customer=customer, operatorName=long[:40]))
    assert answer.status_code == 200, answer.text
    reader = person(long[:32], FRENCH_PHONE)
    for path in ("/ui/", "/ui/journal"):
        fits(reader.go(path))
    tops = reader.page.locator("header > *").evaluate_all("all => all.map(each => each.getBoundingClientRect().top)")
    assert max(tops) - min(tops) < 2 * 44, tops
    reader.follow(long[:40])
    expect(reader.page.locator("h1")).to_have_text(long[:40])
    fits(reader.page)
    amount_in_sight(reader.page, ".lines")
    reader.go("/ui/cash").fill("[name=amount]", "700")
    reader.page.fill("[name=reason]", long[:200])
    reader.press("Note it")
    reader.sees_message("Noted.")
    amount_in_sight(reader.page, ".moves")


def amount_in_sight(page: Page, table: str) -> None:
    box = page.locator(f"{table} tbody tr td.n").last.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= FRENCH_PHONE.size["width"], page.url


@pytest.mark.long
def test_letters_twice_as_large_fit(person: People, shop: Shop) -> None:
    """On a phone whose person has doubled the text (WCAG 1.4.4) no screen is wider than it is, and the menu's words are whole."""
    assert shop.certify(invoice("LARGE", 8_765_400)).status_code == 200
    assert shop.close_period().status_code == 201
    assert shop.certify(invoice("LARGE-2", 8_765_400)).status_code == 200
    tech = person("technician", FRENCH_PHONE)
    page = tech.go("/ui/box/backups")
    tech.press(FRENCH_PHONE.say("Make a copy now"))
    expect(page.locator("#box-jobs li a").first).to_be_visible()
    for path in (*SCREENS, "/ui/closures/1"):
        page.goto(f"http://127.0.0.1:{shop.port}{path}")
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        fits(page)
        cut = "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText)"
        assert page.locator(".shell-menu a > span").evaluate_all(cut) == [], path


@pytest.mark.long
def test_what_is_printed_is_dark_on_white_and_has_no_form(person: People) -> None:
    """Also of who looks by night; as wide as the paper, and with the shop's name and machine. A list begins on the first page, below its title."""
    page = person("technician", ENGLISH_DESKTOP).go("/ui/a")
    page.emulate_media(media="print")
    expect(page.locator("main form")).to_be_hidden()
    expect(page.locator(".brand")).to_contain_text("NIM")
    expect(page.locator(".account")).to_be_hidden()
    widths = "main => [main.getBoundingClientRect().width, document.documentElement.clientWidth]"
    width, whole = page.locator("main").evaluate(widths)
    assert width > 0.9 * whole
    expect(page.locator("main .quiet").first).to_have_css("color", "rgb(75, 85, 99)")
    page.goto(page.url.replace("/ui/a", "/ui/closures?month=2026-11"))
    expect(page.get_by_text("November 2026")).to_be_visible()
    expect(page.locator(".months a").first).to_be_hidden()
    page.goto(page.url.replace("/ui/closures?month=2026-11", "/ui/journal"))
    rows = page.get_by_test_id("journal-row")
    rows.first.evaluate("row => { for (let at = 0; at < 40; at += 1) row.after(row.cloneNode(true)); }")
    first = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4"))).pages[0].extract_text()
    assert "certified" in first


@pytest.mark.long
@in_both_views
def test_reading_needs_no_script(browser: Browser, shop: Shop, view: View) -> None:
    """With JavaScript switched off, log in, and every screen that is for reading reads: the journal is searched by its button, totals have
    their chart."""
    context = browser.new_context(java_script_enabled=False, locale=view.locale, viewport=view.size)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{shop.port}/ui/login")
    page.fill("[name=name]", "reader")
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    for path, words in (
        ("/ui/", "Latest invoices"),
        ("/ui/journal", "Search"),
        ("/ui/journal/1", "Payments"),
        ("/ui/cash", "What was moved"),
        ("/ui/closures", "Closures of this month"),
        ("/ui/a", "By tax group"),
        ("/ui/x", "By tax group"),
        ("/ui/files", "Make the file"),
    ):
        page.goto(f"http://127.0.0.1:{shop.port}{path}")
        expect(page.locator("main")).to_contain_text(view.say(words))
    page.goto(f"http://127.0.0.1:{shop.port}/ui/journal")
    page.fill("[name=q]", "P-2")
    page.click("main form button")
    expect(page.get_by_test_id("journal-row")).to_have_count(1)
    expect(page.get_by_role("status")).to_contain_text(view.say("{count} invoice shown", count=1))
    page.goto(f"http://127.0.0.1:{shop.port}/ui/a?from=2001-01-01")
    expect(page.get_by_role("img", name=view.say("Sales by year"))).to_be_visible()
    context.close()


def test_the_first_load_is_small(browser: Browser, shop: Shop) -> None:
    """All that the first screen needs is at most 90 KB on the wire."""
    awa = Person(browser, shop, session=session_of(shop, "seller"))
    sizes: list[int] = []
    awa.page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    awa.go("/ui/")
    awa.sees("sales-count")
    wait_for(lambda: len(sizes) > 5, "the files")
    assert sum(sizes) <= 90_000
    assert awa.complaints == []
    awa.context.close()


@pytest.mark.long
def test_an_invoice_opens_beside_the_journal_on_a_desk(person: People, shop: Shop) -> None:
    """Also by the keyboard; Escape closes it and one is in the list again. What it offers leads on as on the invoice's own screen. On a phone that is where one goes."""
    number = "BESIDE-1"
    assert shop.certify(invoice(number, 4321)).status_code == 200
    wide = View("fr", {"width": 1366, "height": 768})
    awa = person("technician", wide)
    page = awa.go(f"/ui/journal?q={number}")
    link = page.get_by_role("link", name=number)
    link.focus()
    page.keyboard.press("Enter")
    beside = page.get_by_role("complementary", name=wide.say("The chosen invoice"))
    expect(beside).to_contain_text("4 321")
    expect(beside).to_be_focused()
    assert page.url.endswith(f"/ui/journal?q={number}")
    usable(page)
    fits(page)
    page.keyboard.press("Escape")
    expect(beside).to_be_hidden()
    expect(link).to_be_focused()
    link.click()
    expect(beside).to_be_visible()
    with page.expect_response("**/ui/journal?**"):  # the list is another one now, and the link in it
        page.get_by_role("searchbox").press_sequentially("-")
    expect(page.get_by_test_id("journal-row")).to_have_count(0)
    beside.press("Escape")
    expect(page.get_by_role("searchbox")).to_be_focused()
    awa.go(f"/ui/journal?q={number}")
    link.click()
    beside.get_by_role("link", name=wide.say("Credit note")).click()
    expect(page).to_have_url(re.compile(r"/ui/journal/\d+/credit"))
    phone = person("technician", FRENCH_PHONE)
    phone.go(f"/ui/journal?q={number}").get_by_role("link", name=number).click()
    expect(phone.page).to_have_url(re.compile(r"/ui/journal/\d+(\?|$)"))
