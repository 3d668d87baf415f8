"""What a shop would write itself: a blocking pyserial script that writes an invoice's frames and reads each reply. No HTTP, no disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import serial

from bench.shop.invoices import bodies
from bench.shop.wire import tapped
from bridge.frame import Decoder, Reply


class BareScript(Iterator[float]):
    """Sales of `items` items to a walk-in customer, each made when it is requested: its seconds. `count` of them are prepared."""

    def __init__(self, link: Path, items: int, count: int) -> None:
        self._sales = iter(asyncio.run(_frames(items, count)))
        self._port = serial.Serial(str(link), 115_200, timeout=10)

    def __next__(self) -> float:
        frames = next(self._sales)
        began = time.perf_counter()
        for frame in frames:
            self._exchange(frame)
        return time.perf_counter() - began

    def _exchange(self, frame: bytes) -> None:
        replies = Decoder()
        self._port.write(frame)
        while True:
            replies.receive(self._port.read(max(1, self._port.in_waiting)))
            if isinstance(replies.next_event(), Reply):
                return


async def _frames(items: int, count: int) -> list[list[bytes]]:
    requests = islice(bodies(items, series="BARE", walk_in=True), count)
    return [list(tap.written) async for tap in tapped(requests)]
