"""A till that is a web page of another origin, in real Chromium: let in when it is named, and only to the API."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browser import PATIENCE_MS, create_users, session_of
from support.http_answers import Answer, Request, answering
from support.shop import NIM, Shop, invoice

pytestmark = pytest.mark.long

FETCH = """async ([url, init]) => {
  try {
    const answer = await fetch(url, init);
    const shown = ["X-Request-ID", "Idempotency-Replayed"].map((name) => answer.headers.get(name));
    return { status: answer.status, text: await answer.text(), shown };
  } catch (error) {
    return { refused: error.name };
  }
}"""
FORM = """url => {
  const form = document.body.appendChild(document.createElement("form"));
  [form.method, form.action] = ["post", url];
  form.submit();
}"""
REFUSED = {"refused": "TypeError"}
"""All that a browser tells a page of an answer that is not for it."""


def blank(_: Request) -> Answer:
    """Each page of a site."""
    return Answer(200, b"<!doctype html><title>till</title>", {"Content-Type": "text/html"})


@contextmanager
def opened(browser: Browser, origin: str) -> Iterator[Page]:
    with browser.new_context(locale="en-GB") as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(origin)
        yield page


def fetch(page: Page, url: str, **init: Any) -> Any:
    return page.evaluate(FETCH, [url, init])


def sale(shop: Shop, number: str) -> dict[str, Any]:
    """As a web till sends it: all of its headers make the browser ask first."""
    headers = shop.headers(key=number) | {
        "Content-Type": "application/json",
        "X-Request-ID": f"web {number}",
        "Mcfd-Strict": "true",
        "Accept-Language": "fr",
    }
    return {"method": "POST", "headers": headers, "body": json.dumps(invoice(number))}


@pytest.fixture(scope="module")
def origins() -> Iterator[tuple[str, str]]:
    """One that the configuration names, and one that it does not."""
    with answering(blank) as named, answering(blank) as stranger:
        yield named, stranger


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, origins: tuple[str, str]) -> Iterator[Shop]:
    config = {"server": {"allowed_origins": [origins[0]]}}
    with Shop(tmp_path_factory.mktemp("web"), config=config) as shop:
        yield shop.start()


@pytest.fixture(scope="module")
def session(shop: Shop) -> dict[str, str]:
    """Of a manager who is logged in."""
    create_users(shop, ["manager"])
    return session_of(shop, "manager")


def test_a_page_of_a_named_origin_certifies(browser: Browser, shop: Shop, origins: tuple[str, str]) -> None:
    """It reads the receipt and the headers beside it; sent again it is a replay, and an error can be read as well."""
    certify = f"http://127.0.0.1:{shop.port}/v1/mcf/{NIM}/certify"
    with opened(browser, origins[0]) as page:
        first = fetch(page, certify, **sale(shop, "WEB-1"))
        again = fetch(page, certify, **sale(shop, "WEB-1"))
        wrong = fetch(page, certify, **sale(shop, "WEB-3") | {"body": "{}"})
    assert (first["status"], first["shown"]) == (200, ["web WEB-1", None])
    assert (again["status"], again["shown"]) == (200, ["web WEB-1", "true"])
    assert "codeSecef" in first["text"]
    assert again["text"] == first["text"]
    assert wrong["status"] == 422
    assert "INVALID_REQUEST" in wrong["text"]
    assert [entry["number"] for entry in shop.machines[0].certified()].count("WEB-1") == 1


def test_a_page_of_a_named_origin_sells_for_later(browser: Browser, shop: Shop, origins: tuple[str, str]) -> None:
    """It does not wait for the answer, rehearses a failure with a test key, and takes back what waits."""
    base = f"http://127.0.0.1:{shop.port}/v1/mcf/{NIM}"
    key = f"Bearer {shop.key('test')}"
    more = {
        "Prefer": "respond-async",
        "Mcfd-Test": "late:60",
        "Idempotency-Key": "later",
        "Content-Type": "application/json",
    }
    with opened(browser, origins[0]) as page:
        body = json.dumps(invoice("WEB-9"))
        sold = fetch(page, f"{base}/certify", method="POST", headers={"Authorization": key, **more}, body=body)
        back = fetch(page, f"{base}/requests/later", method="DELETE", headers={"Authorization": key})
    assert (sold["status"], json.loads(sold["text"])["status"]) == (202, "waiting")
    assert (back["status"], json.loads(back["text"])["status"]) == (200, "abandoned")


def test_a_page_of_another_origin_is_refused(browser: Browser, shop: Shop, origins: tuple[str, str]) -> None:
    """Even with a valid key: the browser asks first, gets no permission, and sends nothing."""
    certify = f"http://127.0.0.1:{shop.port}/v1/mcf/{NIM}/certify"
    with opened(browser, origins[1]) as page:
        assert fetch(page, certify, **sale(shop, "WEB-2")) == REFUSED
        assert fetch(page, f"http://127.0.0.1:{shop.port}/health/live") == REFUSED
    assert [entry["number"] for entry in shop.machines[0].certified()].count("WEB-2") == 0


@pytest.mark.parametrize("before", [True, False], ids=["named", "stranger"])
def test_another_site_cannot_make_the_browser_close_a_period(
    browser: Browser, shop: Shop, origins: tuple[str, str], session: dict[str, str], before: bool
) -> None:
    """Neither by a form nor by a request in the background, though the person is logged in and the site, on the same host, gets the cookie
    sent; an origin that the configuration names may call the API, and no more of the page than any other."""
    base = f"http://127.0.0.1:{shop.port}"
    with opened(browser, origins[0] if before else origins[1]) as page:
        page.context.add_cookies([{"name": name, "value": value, "url": base} for name, value in session.items()])
        page.evaluate(
            "url => fetch(url, {method: 'POST', mode: 'no-cors', credentials: 'include', body: new URLSearchParams({key: 'x'})})",
            f"{base}/ui/z",
        )
        page.evaluate(FORM, f"{base}/ui/z")
        page.wait_for_url("**/ui/z")
        expect(page.get_by_role("alert")).to_contain_text("another site")
        page.goto(f"{base}/ui/z")
        expect(page.get_by_test_id("confirm-z")).to_be_visible()
    assert shop.get("reports").json()["count"] == 0
