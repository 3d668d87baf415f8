"""What comes one by one is taken together; and each outage of NATS is one line of the log."""

import asyncio
import contextlib
import threading

import pytest
from structlog.testing import capture_logs

from common.turns import ended
from common.wire import nats_pull
from common.wire.errors import NatsError
from headquarters.intake.threads import Gatherer, Threads
from headquarters.store.database import StoreError


@contextlib.asynccontextmanager
async def gathering(every):
    """The gatherer, and what it has taken at a time."""
    taken = []

    async def take(batch):
        taken.append(list(batch))
        return batch

    gatherer = Gatherer(take, every)
    running = asyncio.create_task(gatherer.run())
    try:
        async with asyncio.timeout(60):
            yield gatherer, taken
    finally:
        await ended(running)


async def test_alone_waits_for_nothing():
    """What comes after a quiet time is taken at once, however seldom a transaction begins."""
    async with gathering(every=3600.0) as (gatherer, _):
        assert await gatherer.add("alone") == "alone"


async def test_others_go_together():
    """What comes soon after a transaction waits for the next one, and goes with the others."""
    async with gathering(every=0.5) as (gatherer, taken):
        await gatherer.add("alone")
        assert await asyncio.gather(*map(gatherer.add, "abc")) == ["a", "b", "c"]
        assert taken == [["alone"], ["a", "b", "c"]]


async def test_a_thread_that_does_not_come_back():
    """Who waits for it hears so; what waits behind it never begins; and what it had begun goes on to its end."""
    threads, goes_on, done = Threads(1), threading.Event(), []

    def work(name):
        goes_on.wait(60)
        done.append(name)

    for name in ("first", "second"):
        with pytest.raises(StoreError):
            await threads.run_for(0.01, work, name)
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.to_thread(threads.close)
    assert done == ["first"]


class _Client:
    async def close(self):
        pass


async def _connected():
    return _Client()


@pytest.mark.parametrize(("well_after", "lines"), [(3600.0, 1), (0.0, 3)])
async def test_outages(monkeypatch, well_after, lines):
    """The same words three times: of sessions that end at once, and of sessions that went well in between."""
    monkeypatch.setattr(nats_pull, "AGAIN_SECONDS", 0)
    monkeypatch.setattr(nats_pull, "NEW_TROUBLE_SECONDS", well_after)
    left = [NatsError("the connection is lost")] * 3

    async def session(_):
        if not left:
            raise asyncio.CancelledError
        raise left.pop()

    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await nats_pull.sessions("stream", _connected, session)
    assert [line["event"] for line in logs] == ["nats.lost"] * lines
