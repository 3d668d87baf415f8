"""The attackers' view of the box and their connections to it, from any loopback address; and the till that must
continue: one invoice a second, each on a new connection from an address that has not used a key yet."""

import asyncio
import http.client
import itertools
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field

from bench.figures import quantile

BODY_TYPE = b"Content-Type: application/json\r\n"
MEGABIT = 125_000
"""Bytes per second."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

EVERY = 1.0
PATIENCE = 20.0
ITEMS = 3


@dataclass(frozen=True)
class Target:
    """`sandbox_key` is the attackers' only key; attacks without a key do not use it."""

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


@asynccontextmanager
async def connected(target: Target, source: str = "127.0.0.2", *, shake: bool = True) -> AsyncIterator[Streams]:
    """A connection that is aborted at the end; without `shake` plain TCP even if the target has TLS."""
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
    """The address of attacker `number` of so many; 127.0.0.1 is the till's."""
    return f"127.0.1.{1 + number % addresses}"


async def swarm(count: int, work: Callable[[int], Awaitable[None]], *, pause: float = 0.05) -> None:
    """Runs `work(n)` so many times in parallel, each repeated; a refused worker pauses for `pause` seconds."""

    async def again(number: int) -> None:
        while True:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError):
                await work(number)
            await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(again(number))


class Pace:
    """Limits bytes per second over all connections that share it."""

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
    """Makes this connection end with a RST."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


@dataclass
class InvoiceTimes:
    """Seconds from the first packet to the complete answer of each invoice; errors instead of times."""

    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Quantile of the times; each error counts as `PATIENCE`."""
        times = [*self.times, *(PATIENCE for _ in self.errors)]
        return quantile(times, share) if times else float("nan")


class SiegeTill:
    def __init__(self, target: Target, key: str) -> None:
        self._target = target
        self._key = key
        self._numbers = itertools.count(1)
        self._addresses = itertools.count()
        self._tls = trusting()

    def work(self, seconds: float) -> InvoiceTimes:
        """Certifies once a second; a slower invoice delays the next one."""
        seen, ends, turn = InvoiceTimes(), time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < ends:
            self.certify(seen)
            turn = max(turn + EVERY, time.monotonic())
            time.sleep(max(0.0, turn - time.monotonic()))
        return seen

    def certify(self, seen: InvoiceTimes) -> float:
        body = json.dumps(sale(f"T-{next(self._numbers)}", ITEMS, 1500))
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        began = time.perf_counter()
        try:
            with closing(self._connect()) as connection:
                connection.request("POST", self._target.certify_path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            seen.errors.append(repr(error))
            return PATIENCE
        took = time.perf_counter() - began
        if answer.status == http.HTTPStatus.OK:
            seen.times.append(took)
        else:
            seen.errors.append(f"{answer.status} {content[:200].decode(errors='replace')}")
        return took

    def _connect(self) -> http.client.HTTPConnection:
        at = next(self._addresses)
        address, port = (f"127.{2 + at // 250 % 250}.0.{1 + at % 250}", 0), self._target.port
        if self._target.tls:
            return http.client.HTTPSConnection(
                "127.0.0.1", port, timeout=PATIENCE, context=self._tls, source_address=address
            )
        return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=address)
