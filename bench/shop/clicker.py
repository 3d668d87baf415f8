"""People who click through the shop's page, in a process of their own: `python -m bench.shop.clicker PORT COOKIE PEOPLE`.

Each looks at a screen a second: the journal, older pages of it, one invoice, a search, Today, the calendar. Ends with its stdin, and then
tells how many screens were seen and how many were refused.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

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
    seen: Counter[bool] = Counter()
    clicking = [asyncio.create_task(_click(port, cookie, at, people, seen)) for at in range(people)]
    await asyncio.to_thread(sys.stdin.read)
    for task in clicking:
        task.cancel()
    await asyncio.gather(*clicking, return_exceptions=True)
    print(seen[True], seen[False], flush=True)


async def _click(port: int, cookie: str, person: int, people: int, seen: Counter[bool]) -> None:
    await asyncio.sleep(person * A_CLICK / people)
    at = person
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = f"GET {SCREENS[at % len(SCREENS)]} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        answer = await reader.read(-1)
        writer.close()
        seen[answer.startswith(b"HTTP/1.1 200")] += 1
        at += 1
        await asyncio.sleep(A_CLICK)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
