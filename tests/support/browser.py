"""A person at the shop's page in a real browser that has no network but this box."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from support.shop import BIN, Shop
from support.tools import need

CHROMIUM = next(filter(shutil.which, ("chromium", "chromium-browser", "google-chrome")), "chromium")
PATIENCE_MS = 30_000
PASSWORD = "orange-bleu-42"  # noqa: S105  of people in tests
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1440, "height": 900}


@contextmanager
def chromium() -> Iterator[Browser]:
    need(CHROMIUM)
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which(CHROMIUM), args=[*sandbox, "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


def create_user(shop: Shop, name: str, role: str) -> None:
    command = [str(BIN / "mcfd"), "users", "create", name, "--role", role, "--password-stdin"]
    subprocess.run(
        [*command, "--config", str(shop.config_file)], input=f"{PASSWORD}\n", text=True, check=True, capture_output=True
    )


class Person:
    """One browser of their own. `complaints` are console errors, failed requests, and requests to anybody else."""

    def __init__(
        self, browser: Browser, shop: Shop, *, locale: str = "fr-FR", viewport: dict[str, int] | None = None
    ) -> None:
        self.base = f"http://127.0.0.1:{shop.port}"
        self.context: BrowserContext = browser.new_context(locale=locale, viewport=viewport or DESKTOP)
        self.context.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.bytes = 0
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
        page = self.go("/ui/login")
        page.fill("[name=name]", name)
        page.fill("[name=password]", password)
        page.click("main button")
        page.wait_for_load_state()

    def sees(self, testid: str) -> None:
        expect(self.page.get_by_test_id(testid).first).to_be_visible(timeout=PATIENCE_MS)

    def text(self, testid: str) -> str:
        return self.page.get_by_test_id(testid).first.inner_text()
