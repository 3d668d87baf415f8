"""A shop of one test; its ledger is sound at the end."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.memory_shop import MemoryShop, in_service

from daemon.store.maintenance.verify import verify


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[MemoryShop]:
    async with in_service(tmp_path / "ledger") as shop:
        yield shop
    assert verify(tmp_path / "ledger").clean
