"""Twenty-five boxes and one mistake at headquarters, on a real receiver, with an hour that passes in seconds."""

from __future__ import annotations

import asyncio
import random

import pytest
from support.ledgers.outbox import START, MemoryOutbox
from support.receivers.headquarters import HttpHeadquarters, started, until

from daemon.core.delivery import Delivered
from daemon.upstream.options import compose, open_receiver
from daemon.usecases.delivery.replicate import Backoff, Replicator

pytestmark = pytest.mark.long

SEED = 401
BOXES, CLOSURES = 25, 3
HOUR = 3600.0
RETRY_MAX = 300.0


class Box:
    """A real sender with its real backoff, an outbox in memory, and a clock of its own: a wait takes no time and is only counted, up
    to the hour at which headquarters is put right."""

    def __init__(self, number, receiver, put_right):
        self.nim = f"EL{number:08d}-1"
        self.outbox = MemoryOutbox()
        self.outbox.add(self.nim, CLOSURES)
        self.now = 0.0
        self.tries = 0
        self.arrived = []
        self.waits_for_headquarters = asyncio.Event()
        self._put_right = put_right
        self._receiver = receiver
        self.replicator = Replicator(
            self.outbox,
            self,
            compose,
            clock=lambda: START + round(self.now * 1000),
            backoff=Backoff(most=RETRY_MAX, dice=random.Random(SEED + number).random),
            sleep=self.sleep,
        )

    async def sleep(self, seconds):
        self.now += seconds
        if self.now >= HOUR:
            self.waits_for_headquarters.set()
            await self._put_right.wait()

    async def deliver(self, event, **names):
        self.tries += 1
        outcome = await self._receiver.deliver(event, **names)
        if outcome == Delivered():
            self.arrived.append(self.now)
        return outcome


@pytest.fixture
async def headquarters(tmp_path):
    async with started(HttpHeadquarters(tmp_path, "v1a", timeout=30.0)) as server:
        yield server


async def test_a_wrong_key_for_an_hour(headquarters):
    """Headquarters has a wrong key and answers 401 to everybody for an hour; then somebody puts it right there. Nothing was parked,
    everything arrives by itself, in order, each once, and the boxes come back spread over the five minutes of their longest wait."""
    right = headquarters.keys.public
    headquarters.keys.public = "whpk_" + "A" * 43 + "="
    headquarters.kill()
    await headquarters.up()
    receiver = open_receiver("https", headquarters.options)
    put_right = asyncio.Event()
    boxes = [Box(number, receiver, put_right) for number in range(BOXES)]
    tasks = [asyncio.create_task(box.replicator.run()) for box in boxes]
    try:
        async with asyncio.timeout(120):
            await asyncio.gather(*(box.waits_for_headquarters.wait() for box in boxes))
        assert {row.state for box in boxes for row in box.outbox.rows.values()} == {"waiting"}
        assert [a["status"] for a in headquarters.attempts()] == [401] * sum(box.tries for box in boxes)
        headquarters.keys.public = right
        headquarters.kill()
        await headquarters.up()
        put_right.set()
        await until(lambda: all(len(box.arrived) == CLOSURES for box in boxes), deadline=60)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await receiver.aclose()
    events = await headquarters.events()
    assert len(events) == BOXES * CLOSURES
    for box in boxes:
        assert [int(e["subject"]) for e in events if e["data"]["nim"] == box.nim] == [1, 2, 3]
    first = sorted(box.arrived[0] for box in boxes)
    assert first[0] >= HOUR
    assert first[-1] <= HOUR + RETRY_MAX
    assert first[-1] - first[0] > RETRY_MAX / 2
    crowd = max(sum(at <= other < at + 10 for other in first) for at in first)
    assert crowd <= BOXES // 5, (crowd, SEED)
