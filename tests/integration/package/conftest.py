from collections.abc import Iterator

import pytest
from support.box.shop import Shop, open_shop


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as shop:
        yield shop
