"""A person at the shop's page in a real browser that has no network but this box."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from support.box.package import CACHE
from support.shop import PLAIN, Shop, running_shop
from support.tools import need

from common import passwords
from common.language import Language, Speaker
from common.passwords import hash_password
from daemon.core.people import Role
from daemon.operations import CreateUser

CHROMIUM = next(
    filter(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")), "chromium"
)
"""The one without windows, where it is there: the same pages in a third of the processor's time."""
SHORT = "--js-flags=--single-threaded --min-semi-space-size=32"
"""Pages that live for a second: nothing is compiled beside them, and little is collected. A tenth less for axe-core."""
PATIENCE_MS = 30_000
expect.set_options(
    timeout=PATIENCE_MS
)  # of themselves they wait for 5 s, in which a busy machine may not load a screen
PASSWORD = "orange-bleu-42"  # noqa: S105  of people in tests
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1440, "height": 900}


AXE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "reporter": "no-passes"}
"""What passes is 200 KB of each screen, which takes as long to tell as to find."""


class View(NamedTuple):
    """How somebody looks: in which language, on what, by day or by night."""

    language: Language
    size: dict[str, int]
    scheme: str = "light"
    is_touched: bool = False

    @property
    def say(self) -> Speaker:
        """What the page says in that language."""
        return Speaker(self.language)

    @property
    def locale(self) -> str:
        return "fr-FR" if self.language == "fr" else "en-GB"


FRENCH_PHONE, FRENCH_DESKTOP = View("fr", PHONE, is_touched=True), View("fr", DESKTOP)
ENGLISH_DESKTOP = View("en", DESKTOP, "dark")
BOTH_VIEWS = (
    pytest.param(FRENCH_PHONE, id="fr-phone"),
    pytest.param(ENGLISH_DESKTOP, id="en-desktop", marks=pytest.mark.long),
)
"""Each language, each size and each scheme once: what is said depends on the language alone, what fits on the size. French is the longer,
so it has the phone."""


@contextmanager
def chromium() -> Iterator[Browser]:
    need(CHROMIUM)
    os.environ["NODE_COMPILE_CACHE"] = str(CACHE / "node")  # of Playwright's driver: half a second of compiling
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which(CHROMIUM), args=[*sandbox, "--disable-dev-shm-usage", "--disable-gpu", SHORT]
        )
        yield browser
        browser.close()


def create_user(shop: Shop, name: str, role: Role) -> None:
    """Somebody whose password costs a login what it means to."""
    _create(shop, {name: role}, hash_password(PASSWORD))


def create_users(shop: Shop, roles: Sequence[Role]) -> None:
    """One of each role, called as the role is, all with the one password, which costs a login next to nothing."""
    _create(shop, {role: role for role in roles}, _hashed())


@contextmanager
def staffed_shop(folder: Path, *roles: Role, **options: Any) -> Iterator[Shop]:
    """A shop that runs, with one person of each of these roles; `options` are those of Shop."""
    with running_shop(folder, **options) as shop:
        create_users(shop, roles)
        yield shop


def _create(shop: Shop, roles: Mapping[str, Role], hashed: str) -> None:
    for name, role in roles.items():
        shop.change(CreateUser(name, role, hashed))


@cache
def _hashed() -> str:
    """What a hash costs is a fact of its own (test_core_passwords.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_N", 2)
        patch.setattr(passwords, "_P", 1)
        return hash_password(PASSWORD)


def create_in_passing(shop: Shop, name: str, role: Role) -> None:
    """Somebody whose login costs next to nothing."""
    _create(shop, {name: role}, _hashed())


def session_of(shop: Shop, name: str) -> dict[str, str]:
    """The cookies of somebody who has logged in."""
    base = f"http://127.0.0.1:{shop.port}"
    with httpx.Client(base_url=base, timeout=60, trust_env=False, verify=PLAIN) as client:
        answer = client.post("/ui/login", data={"name": name, "password": PASSWORD}, headers={"Origin": base})
        assert answer.status_code == 303, answer.text
        return dict(client.cookies)


class Visitor(httpx.Client):
    """Somebody at the page without a browser; logged in, where it is one with a name."""

    def __init__(self, shop: Shop, name: str = "", language: Language = "fr", **more: Any) -> None:
        base = f"http://127.0.0.1:{shop.port}"
        headers = {"Accept-Language": language, "Origin": base}
        cookies = session_of(shop, name) if name else {}
        super().__init__(base_url=base, headers=headers, cookies=cookies, timeout=60, verify=PLAIN, **more)

    def look(self, path: str) -> str:
        """The screen there, or where it leads to."""
        answer = self.get(path, follow_redirects=True)
        assert answer.status_code == 200, answer.text
        return answer.text

    def submit(self, path: str, **form: str) -> httpx.Response:
        return self.post(path, data=form)


FINGER = """() => [...document.querySelectorAll("a, button, input:not([type=hidden], [type=checkbox], [type=radio]), select, summary, .choice")]
  .filter((each) => matchMedia("(pointer: coarse)").matches && each.checkVisibility() && !each.matches(".skip"))
  .map((each) => [each.getBoundingClientRect(), each])
  .filter(([box]) => box.height < 44 || box.width < 24)
  .map(([box, each]) => `${each.tagName} ${each.innerText || each.name}: ${box.width} x ${box.height}`)"""
"""What a finger has to touch and is too small for it: below 44 px high, or 24 wide. A box to tick has its words beside it."""


HEADLESS = """() => [...document.querySelectorAll("table")]
  .filter((each) => !each.querySelector("th") || [...each.querySelectorAll("th")].some((head) => !head.textContent.trim()))
  .map((each) => each.className)"""
"""Tables of which a screen reader has no heads to read."""


def usable(page: Page, *, with_colours: bool = True) -> None:
    """WCAG 2.2 AA by axe-core without a violation, nothing is wider than the screen, nothing too small for a finger where fingers are, and
    tables have heads."""
    small = page.evaluate(FINGER)
    assert not small, (page.url, small)
    assert page.evaluate(HEADLESS) == [], page.url
    found = Axe().run(page, options=AXE | {"rules": {"color-contrast": {"enabled": with_colours}}})
    assert found.violations_count == 0, (page.url, found.generate_report())
    fits(page)


def fits(page: Page) -> None:
    """Nothing is wider than the screen; a wide table scrolls by itself."""
    element = page.evaluate_handle("document.documentElement")
    assert element.evaluate("e => e.scrollWidth - e.clientWidth") <= 0, page.url


class Person:
    """One browser of their own. `complaints` are console errors, failed requests, and requests to anybody else. `session`: the cookies of
    somebody who is logged in already."""

    def __init__(
        self, browser: Browser, shop: Shop, view: View = FRENCH_DESKTOP, session: dict[str, str] | None = None
    ) -> None:
        self.base = f"http://127.0.0.1:{shop.port}"
        self.view = view
        self.context: BrowserContext = browser.new_context(
            locale=view.locale,
            viewport=view.size,
            color_scheme=view.scheme,
            has_touch=view.is_touched,
        )
        self.context.set_default_timeout(PATIENCE_MS)
        if session:
            self.context.add_cookies([{"name": k, "value": v, "url": self.base} for k, v in session.items()])
        self.complaints: list[str] = []
        self.page = self.watched(self.context.new_page())

    def watched(self, page: Page) -> Page:
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._note(request.url))
        return page

    def _note(self, url: str) -> None:
        if not url.startswith((self.base, "data:")):
            self.complaints.append(f"asked elsewhere: {url}")

    def go(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def log_in(self, name: str, password: str = PASSWORD) -> None:
        self.go("/ui/login")
        self.fill_in_login(name, password)

    def fill_in_login(self, name: str, password: str = PASSWORD) -> None:
        """On the login that is shown."""
        page = self.page
        page.fill("[name=name]", name)
        page.fill("[name=password]", password)
        page.click("main button")
        page.wait_for_load_state()

    def sees(self, testid: str) -> None:
        expect(self.page.get_by_test_id(testid).first).to_be_visible()

    def press(self, english: str, **values: object) -> None:
        """The button of that name, in this person's language."""
        self.page.get_by_role("button", name=self.view.say(english, **values), exact=True).click()

    def follow(self, english: str) -> None:
        self.page.get_by_role("link", name=self.view.say(english), exact=True).first.click()

    def sees_message(self, english: str, **values: object) -> None:
        expect(self.page.get_by_role("status").first).to_contain_text(
            self.view.say(english, **values), timeout=PATIENCE_MS
        )

    def text(self, testid: str) -> str:
        return self.page.get_by_test_id(testid).first.inner_text()
