"""People who click through the shop's page, in a process of their own: `python -m bench.shop.clicker PORT COOKIE PEOPLE`.

Each looks at a screen a second: the journal, older pages of it, one invoice, a search, Today, the calendar. The lines of stdin, by turns, are
when they begin and when they stop; whoever is waiting for a screen then still sees it, and how many were seen and refused is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import cycle

from bench.shop.processor import behind_all

A_CLICK = 1.0
"""Seconds; a person reads in between."""
SCREENS = (
    "/ui/journal",
    "/ui/journal?before=900000",
    "/ui/journal/500000",
    "/ui/journal?q=0077",
    "/ui/",
    "/ui/journal?before=400000",
    "/ui/closures",
    "/ui/journal/123456",
)


async def main(port: int, cookie: str, people: int) -> None:
    # Their browsers are other devices: here they get what mcfd, the machines and the tills leave of its cores.
    behind_all()
    persons = [cycle(SCREENS[at:] + SCREENS[:at]) for at in range(people)]
    while await asyncio.to_thread(sys.stdin.readline):
        seen: Counter[bool] = Counter()
        stop = asyncio.Event()
        clicking = [
            asyncio.create_task(_click(port, cookie, screens, seen, stop, after=at * A_CLICK / people))
            for at, screens in enumerate(persons)
        ]
        await asyncio.to_thread(sys.stdin.readline)
        stop.set()
        await asyncio.gather(*clicking)
        print(seen[True], seen[False], flush=True)


async def _click(
    port: int, cookie: str, screens: Iterator[str], seen: Counter[bool], stop: asyncio.Event, *, after: float
) -> None:
    while not await _is_set_within(after, stop):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = f"GET {next(screens)} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        answer = await reader.read(-1)
        writer.close()
        seen[answer.startswith(b"HTTP/1.1 200")] += 1
        after = A_CLICK


async def _is_set_within(seconds: float, stop: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
