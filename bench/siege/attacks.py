"""Every attack by its name. Without a key: bytes that cost more to read than to send, idle or slow connections, and
connections and requests at the highest rate; with a key of the sandbox: whatever it allows.

One attack is a process: `python -m bench.siege.attacks NAME SECONDS TARGET`, where TARGET is JSON. It prints `ready` and
begins at a line on stdin: its start is no attack. A real attacker has its own processor; here it must not take the
daemon's, so it runs only when a processor is idle (`--idle`), or with low priority."""

import asyncio
import itertools
import json
import os
import resource
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain, cycle, repeat
from typing import NamedTuple

import msgspec
from support.key_updates import shaken

from bench.siege.target import BODY_TYPE, MEGABIT, Pace, Target, connected, reset_on_close, sale, source, swarm

BLANK = b"\r\n\r\n" * 16_384
CHUNK = b"10000\r\n" + BLANK + b"\r\n"
LARGE_RECORD = b"\x16\x03\x01\x40\x00\x01"
"""Beginning of the first record of a TLS handshake, of 16 KiB."""
TINY = b"1\r\n{\r\n" * 4_096

MEGABYTE = 1024 * 1024
HELLO = b"\x16\x03\x01\x02\x00\x01"
"""The first bytes of a TLS handshake."""
LARGE_HEAD = 15_000


class AttackConnection(NamedTuple):
    """A connection of attacker `number`; all connections share `pace`."""

    target: Target
    number: int
    pace: Pace
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


@dataclass(frozen=True)
class Swarm:
    """So many connections from so many addresses, each repeated; `rate` in bytes per second of all together.
    Connections for which `shake` is False stay plain TCP also with TLS."""

    work: Callable[[AttackConnection], Awaitable[None]]
    connections: int
    addresses: int = 8
    rate: float = 10 * MEGABIT
    shake: Callable[[int], bool] = lambda _: True
    pause: float = 0.05

    async def __call__(self, target: Target) -> None:
        pace = Pace(self.rate)

        async def one(number: int) -> None:
            async with connected(target, source(number, self.addresses), shake=self.shake(number)) as streams:
                await self.work(AttackConnection(target, number, pace, *streams))

        await swarm(self.connections, one, pause=self.pause)


def chunks(chunk: bytes) -> Callable[[AttackConnection], Awaitable[None]]:
    async def work(mine: AttackConnection) -> None:
        target = mine.target
        mine.writer.write(
            target.head("POST", target.certify_path, BODY_TYPE, b"Transfer-Encoding: chunked\r\n") + b"\r\n"
        )
        while True:
            await mine.pace.send(mine.writer, chunk)

    return work


async def drops(mine: AttackConnection) -> None:
    """A blank line as often as possible: each is an event, in TLS a record of its own or, on half of the connections, a
    byte of one record."""
    in_crumbs = mine.target.tls and not _is_even(mine.number)
    for piece in chain((LARGE_RECORD,), repeat(b"\0")) if in_crumbs else cycle((b"\r", b"\n")):
        await mine.send(piece)
        await asyncio.sleep(0)


def _is_even(number: int) -> bool:
    return number % 2 == 0


async def header_bombs(mine: AttackConnection) -> None:
    """Heads just below and far above the size limit."""
    fits = b"".join(b"x-%d: y\r\n" % number for number in range(1_400))
    heads = [mine.target.head("GET", "/health/live", lines) + b"\r\n" for lines in (fits, fits * 20)]
    await _heads(mine, heads if _is_even(mine.number) else heads[:1])


async def costly_heads(mine: AttackConnection) -> None:
    """Heads cheap to parse and costly to process: cookies, languages, paths and keys of 15 kB, without a valid key."""
    size, target = LARGE_HEAD, mine.target
    lines = (
        b'Cookie: mcfd_session="' + b"\\" * size + b'"\r\n',
        b"Cookie: " + b";".join(b"a%d=b" % number for number in range(1_700)) + b"\r\n",
        b"Accept-Language: " + b"," * size + b"\r\n",
        b"Authorization: Bearer ak_live_" + b"a" * size + b"\r\n",
        b"Accept: " + b"a/b," * (size // 4) + b"\r\n",
    )
    heads = [
        target.head(*request, line) + b"\r\n" for line in lines for request in (("GET", "/ui/login"), ("GET", "/v1/x"))
    ]
    heads += [target.head("GET", path) + b"\r\n" for path in ("/a" * (size // 2), "/v1?" + "a=b&" * (size // 4))]
    await _heads(mine, heads[mine.number % len(heads) :] + heads)


async def _heads(mine: AttackConnection, heads: Sequence[bytes]) -> None:
    """Sends the heads in turn and reads the answers."""
    reading = asyncio.ensure_future(_drain(mine.reader))
    try:
        for head in cycle(heads):
            await mine.pace.send(mine.writer, head)
    finally:
        reading.cancel()


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


async def key_updates(target: Target) -> None:
    """TLS only: records that only request new keys, each answered; without TLS `drops`."""
    await ATTACKS["drops"](target) if not target.tls else await KEY_UPDATES(target)


async def _updates(mine: AttackConnection) -> None:
    sender = await shaken((mine.reader, mine.writer))
    while True:
        await mine.pace.send(mine.writer, b"".join(sender.update(answered=True) for _ in range(200)))


async def half_handshakes(mine: AttackConnection) -> None:
    """Connections that never send more than the first bytes."""
    mine.writer.write(HELLO if mine.target.tls else b"G")
    await mine.reader.read()


async def idle(mine: AttackConnection) -> None:
    """Connections that send nothing."""
    await mine.reader.read()


async def slow_headers(mine: AttackConnection) -> None:
    await _drop_by_drop(mine, mine.target.head("GET", "/health/live"), b"x: y\r\n")


async def slow_bodies(mine: AttackConnection) -> None:
    """With a key of the sandbox: without one the daemon waits for no body."""
    target, length = mine.target, b"Content-Length: 1000000\r\n"
    head = target.head("POST", target.certify_path, BODY_TYPE, length, key=target.sandbox_key)
    await _drop_by_drop(mine, head + b"\r\n", b" ")


async def _drop_by_drop(mine: AttackConnection, head: bytes, drop: bytes) -> None:
    mine.writer.write(head)
    ended = asyncio.ensure_future(mine.reader.read())
    try:
        while not ended.done():
            await mine.send(drop)
            await asyncio.wait([ended], timeout=1)
    finally:
        ended.cancel()


async def large_logins(mine: AttackConnection) -> None:
    """A megabyte to the login, which needs no key, without its last byte."""
    form = b"Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n"
    head = mine.target.head("POST", "/ui/login", form, b"Content-Length: 1040000\r\n")
    mine.writer.write(head + b"\r\nname=a&password=")
    for _ in range(17):
        await mine.pace.send(mine.writer, b"%41" * 20_000)
    await mine.reader.read()


async def slow_readers(mine: AttackConnection) -> None:
    """Repeated requests for large answers that are never read."""
    mine.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    mine.reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001  # the only way not to read
    mine.writer.write((mine.target.head("GET", "/schema/openapi.json") + b"\r\n") * 50)
    await asyncio.sleep(20)


async def event_streams(mine: AttackConnection) -> None:
    """As many event streams as possible, never read."""
    target = mine.target
    mine.writer.write(target.head("GET", f"/v1/mcf/{target.nim}/events", key=target.sandbox_key) + b"\r\n")
    await mine.reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(20)


async def resets(mine: AttackConnection) -> None:
    """Half a request, then RST."""
    target = mine.target
    half = target.head("POST", target.certify_path, BODY_TYPE, b"Content-Length: 500\r\n") + b"\r\n{"
    reset_on_close(mine.writer)
    await mine.send(b"\x16\x03\x01" if target.tls else half)


async def reconnects(_: AttackConnection) -> None:
    """Complete connections, with handshake, without a request."""


async def eight_addresses(target: Target) -> None:
    """300 connections per second from eight addresses, with handshake, each with one request without a key."""
    every = 8 / 300

    async def one(number: int) -> None:
        with suppress(OSError, EOFError):
            async with asyncio.timeout(2), connected(target, source(number, 8)) as (reader, writer):
                writer.write(target.head("GET", "/v1/me") + b"\r\n")
                await reader.read(1)

    async def address(number: int) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(one(number))
                await asyncio.sleep(every)

    await swarm(8, address)


async def wrong_keys(mine: AttackConnection) -> None:
    """Well-formed keys that are not ours."""
    from daemon.core.keys import generate  # noqa: PLC0415  only this attack needs it

    for _ in range(100):
        mine.writer.write(mine.target.post(secrets.token_hex(100).encode(), key=generate("live")))
        await mine.reader.readuntil(b"\r\n\r\n")


def posts(bodies: Callable[[], Iterator[bytes]]) -> Callable[[AttackConnection], Awaitable[None]]:
    """All connections share `bodies`; each body is used once."""

    async def work(mine: AttackConnection) -> None:
        while True:
            await _ask(mine, mine.target.post(next(bodies()), key=mine.target.sandbox_key))

    return work


@cache
def objects() -> Iterator[bytes]:
    """As many empty objects as fit into a body."""
    return cycle([_filled(b'{"a":[', b"{},", b"{}]}")])


@cache
def json_bombs() -> Iterator[bytes]:
    """Nesting, digits, keys, escapes: each as many as fit into a body."""
    deep = MEGABYTE // 2 - 50
    bombs = (
        b'{"a":' + b"[" * deep + b"]" * deep + b"}",
        b'{"a":' + b"9" * (MEGABYTE - 10) + b"}",
        _filled(b'{"a":[', b"1.5,", b"1]}"),
        _filled(b'{"a":[', b"1e999999999,", b"1]}"),
        b"{" + b",".join(b'"%x":1' % number for number in range(90_000)) + b"}",
        b'{"a":"' + b"\\u00e9" * (MEGABYTE // 6 - 5) + b'"}',
        _filled(b'{"a":[', b'"",', b'""]}'),
    )
    return cycle(bombs)


def _filled(start: bytes, unit: bytes, end: bytes) -> bytes:
    return start + unit * ((MEGABYTE - len(start) - len(end)) // len(unit)) + end


@cache
def invoices(items: int = 1) -> Iterator[bytes]:
    """Endless invoices of the sandbox."""
    return (json.dumps(sale(f"S{os.getpid()}-{number}", items, 100)).encode() for number in itertools.count())


async def pages(mine: AttackConnection) -> None:
    """Invoices of a thousand items, and pages of a thousand of them from the journal."""
    target = mine.target
    page = target.head("GET", f"/v1/mcf/{target.nim}/certifications?limit=1000", key=target.sandbox_key) + b"\r\n"
    while True:
        is_reader = not _is_even(mine.number)
        await _ask(mine, page if is_reader else target.post(next(invoices(1_000)), key=target.sandbox_key))


async def _ask(mine: AttackConnection, request: bytes) -> None:
    """Sends one request and reads its complete answer. Raises EOFError at the end of the connection."""
    reader = mine.reader
    mine.writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, found, rest = head.partition(b"content-length: ")
    if not found:
        while await reader.readuntil(b"\r\n") != b"0\r\n":
            pass
        await reader.readexactly(2)
        return
    await reader.readexactly(int(rest.partition(b"\r\n")[0]))
    if b"connection: close" in head:
        raise EOFError
    await asyncio.sleep(0)


def _never(_: int) -> bool:
    return False


KEY_UPDATES = Swarm(_updates, 20, rate=100 * MEGABIT, shake=_never)
ATTACKS: dict[str, Callable[[Target], Awaitable[None]]] = {
    "blank-lines": Swarm(chunks(CHUNK), 4, addresses=4),
    "tiny-chunks": Swarm(chunks(TINY), 4, addresses=4),
    "drops": Swarm(drops, 250, shake=_is_even),
    "header-bombs": Swarm(header_bombs, 16),
    "costly-heads": Swarm(costly_heads, 40, addresses=20),
    "key-updates": key_updates,
    "half-handshakes": Swarm(half_handshakes, 1_050, addresses=5, shake=_never),
    "idle": Swarm(idle, 800, addresses=4),
    "slow-headers": Swarm(slow_headers, 400),
    "slow-bodies": Swarm(slow_bodies, 400),
    "large-logins": Swarm(large_logins, 250, rate=100 * MEGABIT),
    "slow-readers": Swarm(slow_readers, 200),
    "event-streams": Swarm(event_streams, 300),
    "resets": Swarm(resets, 40, shake=_never, pause=0.001),
    "reconnects": Swarm(reconnects, 40, pause=0.001),
    "eight-addresses": eight_addresses,
    "wrong-keys": Swarm(wrong_keys, 40, addresses=20, pause=0.001),
    "sandbox-objects": Swarm(posts(objects), 4, addresses=4),
    "sandbox-json": Swarm(posts(json_bombs), 4, addresses=4),
    "sandbox-pages": Swarm(pages, 8, addresses=4),
    "sandbox-sales": Swarm(posts(invoices), 16, addresses=4),
}
"""Each runs until it is cancelled."""


async def attack(name: str, seconds: float, target: Target) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # connections ended by the daemon are expected
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ATTACKS[name](target)


def main() -> None:
    name, seconds, target_json, *idle = sys.argv[1:]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    if idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.nice(15)
    target = msgspec.json.decode(target_json, type=Target)
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(attack(name, float(seconds), target))


if __name__ == "__main__":
    main()
