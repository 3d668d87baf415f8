"""A region's boxes in a process of their own: closures chained and signed as boxes make them, each by its own processor in its own evening, so
before the clock starts; then sent until the stream has them.

`python -m bench.fleet.boxes TASK`: the task is JSON; says "ready", sends when it is told to, and says what it has sent and by how much work."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
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


class Ready(msgspec.Struct, frozen=True, array_like=True):
    nim: str
    headers: dict[str, str]
    body: bytes


class Region:
    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task
        self._boxes = {number: PaperBox(nim_of(number)) for number in range(task["first"], task["end"])}
        self._days: list[tuple[int, int]] = []
        self._file = Path(task["spool"])

    def prepare(self) -> None:
        """Into a file: a month of ten thousand boxes is more than a process should hold."""
        with self._file.open("wb") as file:
            for day in range(1, self._task["days"] + 1):
                found = [self._close(number, day) for number in self._boxes]
                written = file.write(msgspec.msgpack.encode([ready for ready in found if ready is not None]))
                self._days.append((file.tell() - written, written))

    def _close(self, number: int, day: int) -> Ready | None:
        task, box = self._task, self._boxes[number]
        closure = box.close(sales=1 + (number + day) % 9)
        box.closures = [closure]
        if day in left_out(task["seed"], number, task["days"], task["permille"]):
            return None
        headers, body = box.sent(closure)
        return Ready(box.nim, {**headers, "Nats-Msg-Id": closure.report_id}, body)

    async def run(self) -> int:
        """How many closures were acknowledged."""
        site: Any = NatsSite.__new__(NatsSite)  # of another process: only where its files are
        site.directory = Path(self._task["site"])
        site.authority = Trusted(Path(self._task["ca"]))
        options = {"allow_reconnect": True, "max_reconnect_attempts": -1, "reconnect_time_wait": 0.2}
        client = await site.connect(self._task["urls"], Path(self._task["key"]), **options)
        limit = asyncio.Semaphore(AT_ONCE)
        sent = 0
        with self._file.open("rb") as file:
            for start, size in self._days:
                file.seek(start)
                closures = msgspec.msgpack.decode(file.read(size), type=list[Ready])
                await asyncio.gather(*(self._deliver(client, closure, limit) for closure in closures))
                sent += len(closures)
        await client.close()
        return sent

    async def _deliver(self, client: Any, closure: Ready, limit: asyncio.Semaphore) -> None:
        async with limit:
            await self._send(client, f"mcf.{closure.nim}.closure", closure.body, closure.headers)

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


def main() -> None:
    task = json.loads(sys.argv[1])
    if task["cores"]:
        os.sched_setaffinity(0, task["cores"])
    region = Region(task)
    region.prepare()
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    sent = asyncio.run(region.run())
    print(json.dumps({"sent": sent, "cpu": time.process_time() - before}))


if __name__ == "__main__":
    main()
