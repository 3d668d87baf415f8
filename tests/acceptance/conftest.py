"""One shop for all tests of a module: they are written so that none minds what another did."""

from collections.abc import Iterator

import pytest
from support.shop import Shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with Shop(tmp_path_factory.mktemp("shop")) as shop:
        yield shop.start()
