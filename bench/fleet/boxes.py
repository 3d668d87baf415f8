"""A region's boxes in a process of their own: closures chained and signed as boxes make them, sent until the stream has them.

`python -m bench.fleet.boxes TASK`: the task is JSON."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import nats.errors
from support.hq.paper_box import PaperBox
from support.receivers.nats_server import NatsSite

AT_ONCE = 100
PATIENCE = 120.0


def nim_of(number: int) -> str:
    return f"FL{number:08}-1"


def left_out(seed: int, number: int, days: int, permille: int) -> list[int]:
    """The Z of that box that never reach headquarters; never its last, which nobody could miss."""
    chance = random.Random(f"{seed}/{number}")
    return [z for z in range(1, days) if chance.random() * 1000 < permille]


class Region:
    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task
        self._boxes = {number: PaperBox(nim_of(number)) for number in range(task["first"], task["end"])}
        self._sent = 0

    async def run(self) -> int:
        """How many closures were acknowledged."""
        site: Any = NatsSite.__new__(NatsSite)  # of another process: only where its files are
        site.directory = Path(self._task["site"])
        site.authority = Trusted(Path(self._task["ca"]))
        options = {"allow_reconnect": True, "max_reconnect_attempts": -1, "reconnect_time_wait": 0.2}
        client = await site.connect(self._task["urls"], Path(self._task["key"]), **options)
        limit = asyncio.Semaphore(AT_ONCE)
        for day in range(1, self._task["days"] + 1):
            await asyncio.gather(*(self._close(client, number, day, limit) for number in self._boxes))
        await client.close()
        return self._sent

    async def _close(self, client: Any, number: int, day: int, limit: asyncio.Semaphore) -> None:
        task, box = self._task, self._boxes[number]
        closure = box.close(sales=1 + (number + day) % 9)
        box.closures = [closure]
        if day in left_out(task["seed"], number, task["days"], task["permille"]):
            return
        headers, body = box.sent(closure)
        headers["Nats-Msg-Id"] = closure.report_id
        async with limit:
            await self._send(client, f"mcf.{box.nim}.closure", body, headers)
        self._sent += 1

    async def _send(self, client: Any, subject: str, body: bytes, headers: dict[str, str]) -> None:
        """As an outbox: again and again, under the same id."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                await client.jetstream().publish(subject, body, headers=headers, timeout=5)
            except (nats.errors.Error, OSError):
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
            else:
                return


class Trusted:
    """The path of the certificate that a client trusts."""

    def __init__(self, path: Path) -> None:
        self.path = path


if __name__ == "__main__":
    print(asyncio.run(Region(json.loads(sys.argv[1])).run()))
