from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser
from support.browser import FRENCH_DESKTOP, Person, View, chromium, session_of, staffed_shop
from support.shop import Shop, invoice

from daemon.core.people import ROLES


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed with its file: Playwright's loop runs in this thread, and a test with a loop of its own cannot run beside it."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Running, with some sales, and with a user of each role, called as the role is."""
    with staffed_shop(tmp_path_factory.mktemp("shop"), *ROLES) as shop:
        for number in range(4):
            assert shop.certify(invoice(f"P-{number}", 1500 + number)).status_code == 200
        yield shop


@pytest.fixture(scope="module")
def sessions() -> dict[str, dict[str, str]]:
    """Of each who has logged in, the cookies: the way in is one test's matter."""
    return {}


@pytest.fixture
def person(browser: Browser, shop: Shop, sessions: dict[str, dict[str, str]]) -> Iterator[Callable[..., Person]]:
    """Opens a browser of somebody's own, logged in if named; at the end none of them had anything to complain of."""
    opened: list[Person] = []

    def make(name: str = "", view: View = FRENCH_DESKTOP) -> Person:
        if name and name not in sessions:
            sessions[name] = session_of(shop, name)
        opened.append(Person(browser, shop, view, sessions.get(name)))
        return opened[-1]

    yield make
    complaints = [complaint for each in opened for complaint in each.complaints]
    for each in opened:
        each.context.close()
    assert complaints == []
