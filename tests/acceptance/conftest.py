"""One shop for all tests of a module: they are written so that none minds what another did."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from avepay.mcf import AsyncAvePay, AvePay
from support.published import Published
from support.shop import Shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with Shop(tmp_path_factory.mktemp("shop")) as shop:
        yield shop.start()


@pytest.fixture
def own_shop(tmp_path: Path) -> Iterator[Shop]:
    """For one test: where nothing was sold, closed or moved before it."""
    with Shop(tmp_path) as shop:
        yield shop.start()


@pytest.fixture(params=[pytest.param(AvePay, id="sync"), pytest.param(AsyncAvePay, id="async", marks=pytest.mark.long)])
def client(request: pytest.FixtureRequest, shop: Shop) -> Published:
    return Published(shop, request.param)
