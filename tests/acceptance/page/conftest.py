from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser
from support.browser import Person, chromium, create_user
from support.shop import Shop, invoice

from daemon.core.roles import ROLES


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Running, with some sales, and with a user of each role, called as the role is."""
    with Shop(tmp_path_factory.mktemp("shop")) as shop:
        shop.start()
        for role in ROLES:
            create_user(shop, role, role)
        for number in range(4):
            assert shop.certify(invoice(f"P-{number}", 1500 + number)).status_code == 200
        yield shop


@pytest.fixture
def person(browser: Browser, shop: Shop) -> Iterator[Callable[..., Person]]:
    """Opens a browser of somebody's own; at the end none of them had anything to complain of."""
    opened: list[Person] = []

    def make(**options: object) -> Person:
        opened.append(Person(browser, shop, **options))
        return opened[-1]

    yield make
    complaints = [complaint for each in opened for complaint in each.complaints]
    for each in opened:
        each.context.close()
    assert complaints == []
