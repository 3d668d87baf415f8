"""HTTP as bytes, for what no client library would send."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from support.api import INVOICE, LIVE_KEY, NIM, Served

REQUEST = f"POST /v1/mcf/{NIM}/certify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {LIVE_KEY}\r\nContent-Type: application/json\r\n".encode()
BODY = json.dumps(INVOICE).encode()
WHOLE = REQUEST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY

LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = WHOLE.replace(b"Host", b"Connection: close\r\nHost")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connections(served: Served, count: int) -> AsyncIterator[list[Streams]]:
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            stack.callback(writer.close)
            opened.append((reader, writer))
        yield opened


def statuses(raw: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]+)", raw)]
