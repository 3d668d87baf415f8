"""The journal's search on a ledger of a hundred thousand invoices, in real Chromium."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from support.browser import BOTH_VIEWS, Person, View, create_users
from support.shop import NIM, Shop

from bench.shop.ledger import PER_DAY, make

pytestmark = pytest.mark.long

DAYS = 100
COUNT = DAYS * PER_DAY
PAGE = 50


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with Shop(tmp_path_factory.mktemp("large")) as shop:
        counters = make(shop.ledger, DAYS, NIM)
        (machine,) = shop.machines
        machine.start().order("counters", tc=counters.tc, fvc=counters.fvc)
        shop.start_daemon()
        create_users(shop, ["reader"])
        yield shop


@pytest.mark.parametrize("view", BOTH_VIEWS)
def test_search_among_a_hundred_thousand_invoices(person: Callable[..., Person], view: View) -> None:
    """A number, a part of one that only the oldest have, and one that no invoice has; while it is typed, and by the button; further back by a
    click, an old invoice by its link. How many there are is announced as it changes, also to a screen reader."""
    awa = person("reader", view)
    page = awa.go("/ui/journal")
    rows = page.get_by_test_id("journal-row")
    expect(rows).to_have_count(PAGE)
    awa.follow("Older")
    expect(rows.first).to_contain_text(f"FV-{COUNT - PAGE:08}")
    page.locator("[name=q]").press_sequentially("FV-00027182")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("FV-00027182")
    expect(page).to_have_url(re.compile(r"q=FV-00027182"))
    awa.sees_message("{count} invoice shown", count=1)
    for query, found in (("FV-00031415", "FV-00031415"), (f"00{COUNT // 2 + 7}", f"FV-000{COUNT // 2 + 7}")):
        page.locator("[name=q]").fill(query)
        awa.press("Search")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text(found)
    page.get_by_role("link", name=found).click()
    expect(page.get_by_role("heading", name=found, level=1)).to_be_visible()
    awa.go("/ui/journal?q=nobody-has-this")
    awa.sees_message("Nothing found.")
    expect(rows).to_have_count(0)
