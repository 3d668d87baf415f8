"""An attempt whose request has expired (decision 46): at its turn nothing is sent, before 38h the open invoice is cancelled."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.memory_shop import LAST, MemoryShop, in_service, quick
from support.shop import invoice

from daemon.core.errors import RequestExpired
from daemon.core.ledger.attempt import Record
from daemon.usecases.certification.certify import certify
from daemon.usecases.certification.idempotency import Answered

pytestmark = pytest.mark.quick_timers
SOON = 0.3
"""Seconds: enough for what is before 38h."""


async def test_expired_at_its_turn(tmp_path: Path) -> None:
    """It waits behind another one until its time is over: nothing of it reaches the machine, and its key and number are free again."""
    async with in_service(tmp_path / "ledger", timers=quick(20)) as shop:
        first = asyncio.ensure_future(shop.certify("A", key="a"))
        await shop.stop_at(LAST)
        late, is_over = expiring(shop, "B")
        await shop.intents(2)
        await shop.until(is_over, "the end of its time")
        frames = shop.session.frames_in
        shop.resume()
        await first
        with pytest.raises(RequestExpired):
            await late
        assert shop.session.frames_in == frames
        assert [entry.number for entry in shop.on_machine] == ["A"]
        await shop.certify("B", key="b")
        assert [entry.number for entry in shop.on_machine] == ["A", "B"]


async def test_expired_before_38h(tmp_path: Path) -> None:
    """Its time is over while it is being entered: it is cancelled on the machine, and the next one is certified."""
    async with in_service(tmp_path / "ledger", timers=quick(20)) as shop:
        late, is_over = expiring(shop, "A")
        await shop.stop_at(LAST - 1)
        await shop.until(is_over, "the end of its time")
        shop.resume()
        with pytest.raises(RequestExpired):
            await late
        assert shop.on_machine == []
        await shop.certify("A", key="b")
        assert len(shop.on_machine) == 1


def expiring(shop: MemoryShop, number: str) -> tuple[asyncio.Future[Answered[Record]], Callable[[], bool]]:
    """The attempt, and whether its time is over."""
    body, clock = invoice(number), asyncio.get_running_loop().time
    call = msgspec.structs.replace(shop.call(body, "b"), expires=clock() + SOON)
    return asyncio.ensure_future(certify(shop.worker, body, call)), lambda: clock() > call.expires
