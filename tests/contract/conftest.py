"""The ledger of one test: a real file, open, and the till of its only book."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.ledgers.ledger import Till, opened

from daemon.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with opened(path) as store:
        yield store


@pytest.fixture
async def till(store: Store) -> Till:
    return await Till.of(store)
