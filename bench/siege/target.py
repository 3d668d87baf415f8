"""What an attacker knows of the box, and how it connects to it: from any address of the loopback network that it likes."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

BODY_TYPE = b"Content-Type: application/json\r\n"
MEGABIT = 125_000
"""Bytes a second."""


@dataclass(frozen=True)
class Target:
    """`sandbox_key` is the only key an attacker ever has; attacks that are without one leave it alone."""

    port: int
    tls: bool
    nim: str
    sandbox_key: str

    @property
    def certify_path(self) -> str:
        return f"/v1/mcf/{self.nim}/certify"

    def head(self, method: str, path: str, *lines: bytes, key: str = "") -> bytes:
        """A request's head without its blank line; `lines` end in CRLF."""
        start = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n".encode()
        return start + (f"Authorization: Bearer {key}\r\n".encode() if key else b"") + b"".join(lines)

    def post(self, body: bytes, *, key: str = "", path: str = "") -> bytes:
        length = b"Content-Length: %d\r\n" % len(body)
        return self.head("POST", path or self.certify_path, BODY_TYPE, length, key=key) + b"\r\n" + body


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(target: Target, source: str = "127.0.0.2", *, shake: bool = True) -> AsyncIterator[Streams]:
    """A connection that is gone at the end; with `shake` false TCP alone, also where TLS is spoken."""
    context = trusting() if target.tls and shake else None
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(source, 0), ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def sale(number: str, items: int, price: int) -> dict[str, object]:
    lines = [{"name": f"Article {at}", "taxGroup": "B", "unitPrice": price, "quantity": 1} for at in range(items)]
    payments = [{"method": "E", "amount": price * items}]
    return {"invoiceNumber": number, "invoiceType": "FV", "items": lines, "payments": payments}


def source(number: int, addresses: int) -> str:
    """The address of attacker `number` when there are so many; 127.0.0.1 is the till's."""
    return f"127.0.1.{1 + number % addresses}"


async def swarm(count: int, work: Callable[[int], Awaitable[None]], *, pause: float = 0.05) -> None:
    """`work(n)` so many times beside each other, each again and again: whoever is thrown out comes back after `pause` seconds."""

    async def again(number: int) -> None:
        while True:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError):
                await work(number)
            await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(again(number))


class Pace:
    """Bytes that leave at so many a second, however many connections share it."""

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._next = 0.0

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self._next = max(self._next, now - 0.1) + len(data) / self._rate
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(max(0.0, self._next - now))


def reset_on_close(writer: asyncio.StreamWriter) -> None:
    """The end of this connection is a RST."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
