"""The documentation page in a real browser that has no network but this box."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from support.browser import Person, chromium
from support.shop import Shop

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def watched(shop: Shop) -> Iterator[Person]:
    """One for all: to draw every operation takes a browser seconds, and what a test opens hides nothing of another's."""
    with chromium() as browser:
        person = Person(browser, shop)
        person.go("/schema")
        yield person
        person.context.close()


def operations(shop: Shop) -> list[dict[str, Any]]:
    document = shop.http.get("/schema/openapi.json").json()
    paths = [*document["paths"].values(), *document["webhooks"].values()]
    return [operation for path in paths for operation in path.values()]


def test_every_operation_is_shown(shop: Shop, watched: Person) -> None:
    """Each with its summary; nothing was asked of anybody else, and nothing went wrong."""
    blocks = watched.page.locator(".opblock")
    expected = operations(shop)
    expect(blocks).to_have_count(len(expected))
    summaries = watched.page.locator(".opblock-summary-description").all_inner_texts()
    assert sorted(summaries) == sorted(operation["summary"] for operation in expected)
    assert watched.complaints == []


def test_an_operation_opens(shop: Shop, watched: Person) -> None:
    """With its text, an example to copy, and what each answer looks like."""
    certify = watched.page.locator("#operations-certification-certify_invoice")
    certify.locator(".opblock-summary-control").click()
    expect(certify.locator(".opblock-description")).to_contain_text("power cut")
    expect(certify).to_contain_text("Riz 25 kg")
    expect(certify).to_contain_text("DUPLICATE_INVOICE")
    assert watched.complaints == []


def test_the_page_can_be_used_with_a_key(shop: Shop, watched: Person) -> None:
    """Authorize with a key, try /v1/me, and read the answer: all on this box."""
    page = watched.page
    page.locator("button.authorize").first.click()
    page.locator(".auth-container input").fill(shop.key())
    page.locator(".auth-btn-wrapper button.authorize").click()
    page.locator(".auth-btn-wrapper button.btn-done").click()
    me = page.locator("#operations-key-get_me")
    me.locator(".opblock-summary-control").click()
    me.locator("button.try-out__btn").click()
    me.locator("button.execute").click()
    expect(me.locator(".live-responses-table tbody .response-col_description")).to_contain_text('"mode": "live"')
    assert watched.complaints == []
