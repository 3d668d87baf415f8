"""The shop in one loop that other tests are made of: whatever becomes of it, another one can take its ledger."""

import asyncio
from pathlib import Path

import pytest
from support.memory_shop import MemoryShop


class CancelledAtTheStart(MemoryShop):
    async def begin(self, store):
        await super().begin(store)
        await self.end()
        raise asyncio.CancelledError


class CancelledAtTheEnd(MemoryShop):
    async def end(self):
        await super().end()
        raise asyncio.CancelledError


@pytest.mark.parametrize("kind", [CancelledAtTheStart, CancelledAtTheEnd])
async def test_a_cancelled_shop_lets_go_of_its_ledger(tmp_path: Path, kind):
    """While it opens or while it closes: the next one opens the same file, and sells."""
    path = tmp_path / "ledger.sqlite3"
    with pytest.raises(asyncio.CancelledError):
        async with kind(path):
            pass
    async with MemoryShop(path) as shop:
        await shop.connected()
        await shop.certify("F-1", 1000)


async def test_a_cancellation_is_not_taken_for_the_lines_own(tmp_path: Path):
    """Who ends a shop and is cancelled meanwhile is cancelled: it does not go on as if nothing had been said."""
    async with MemoryShop(tmp_path / "ledger.sqlite3") as shop:
        ending = asyncio.create_task(shop.end())
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait([ending])
    assert ending.cancelled()
