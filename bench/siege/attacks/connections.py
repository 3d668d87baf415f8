"""Attacks without a key: bytes that cost more to read than to send, connections that are held, and connections and requests as fast as
they can be made."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import secrets
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from itertools import chain, cycle, repeat
from typing import Any

from support.key_updates import shaken

from bench.siege.target import BODY_TYPE, MEGABIT, Pace, Streams, Target, connected, reset_on_close, sale, source, swarm

BLANK = b"\r\n\r\n" * 16_384
CHUNK = b"10000\r\n" + BLANK + b"\r\n"
LARGE_RECORD = b"\x16\x03\x01\x40\x00\x01"
"""The beginning of a TLS handshake's first record, of 16 KiB."""
TINY = b"1\r\n{\r\n" * 4_096

MEGABYTE = 1024 * 1024
HELLO = b"\x16\x03\x01\x02\x00\x01"
"""How a TLS handshake begins, and no more of it."""


async def blank_lines(target: Target) -> None:
    """4 connections, 10 Mbit/s together."""
    await _chunks(target, CHUNK, connections=4)


async def tiny_chunks(target: Target) -> None:
    await _chunks(target, TINY, connections=4)


async def _chunks(target: Target, chunk: bytes, *, connections: int) -> None:
    pace = Pace(10 * MEGABIT)
    head = target.head("POST", target.certify_path, BODY_TYPE, b"Transfer-Encoding: chunked\r\n") + b"\r\n"

    async def one(number: int) -> None:
        async with connected(target, source(number, 4)) as (_, writer):
            writer.write(head)
            for piece in cycle((chunk,)):
                await pace.send(writer, piece)

    await swarm(connections, one)


async def drops(target: Target) -> None:
    """250 connections, a blank line of each as often as it goes: each is an event of its own, in TLS a record of its own, or, on half of
    them, a byte of one record."""

    async def one(number: int) -> None:
        in_crumbs = target.tls and number % 2 == 1
        async with connected(target, source(number, 8), shake=not in_crumbs) as (_, writer):
            for piece in chain((LARGE_RECORD,), repeat(b"\0")) if in_crumbs else cycle((b"\r", b"\n")):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)

    await swarm(250, one)


async def header_bombs(target: Target) -> None:
    """Heads just below and far above what a head may have, 10 Mbit/s."""
    fits = b"".join(b"x-%d: y\r\n" % number for number in range(1_400))
    heads = [target.head("GET", "/health/live", lines) + b"\r\n" for lines in (fits, fits * 20)]
    await _heads(target, lambda number: heads[:1] if number % 2 else heads, connections=16, addresses=8)


async def costly_heads(target: Target) -> None:
    """Heads that are read quickly and looked at slowly: cookies, languages, paths and keys of 15 kB, without a key."""
    size = 15_000
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
    await _heads(target, lambda number: heads[number % len(heads) :] + heads, connections=40, addresses=20)


async def _heads(
    target: Target, heads_of: Callable[[int], Sequence[bytes]], *, connections: int, addresses: int
) -> None:
    """10 Mbit/s of heads; the answers are read."""
    pace = Pace(10 * MEGABIT)

    async def one(number: int) -> None:
        async with connected(target, source(number, addresses)) as (reader, writer):
            reading = asyncio.ensure_future(_drain(reader))
            try:
                for head in cycle(heads_of(number)):
                    await pace.send(writer, head)
            finally:
                reading.cancel()

    await swarm(connections, one)


async def key_updates(target: Target) -> None:
    """TLS alone: records that hold nothing but the wish for new keys, each answered, 100 Mbit/s; without TLS `drops`."""
    if not target.tls:
        await drops(target)
        return
    pace = Pace(100 * MEGABIT)

    async def one(number: int) -> None:
        async with connected(target, source(number, 8), shake=False) as streams:
            sender = await shaken(streams)
            while True:
                await pace.send(streams[1], b"".join(sender.update(answered=True) for _ in range(200)))

    await swarm(20, one)


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


async def half_handshakes(target: Target) -> None:
    """1 050 connections that never say more than the first bytes, from five addresses."""

    async def one(number: int) -> None:
        async with connected(target, source(number, 5), shake=False) as (reader, writer):
            writer.write(HELLO if target.tls else b"G")
            await reader.read()

    await swarm(1_050, one)


async def idle(target: Target) -> None:
    """800 from four addresses; each says nothing once it is there."""

    async def one(number: int) -> None:
        async with connected(target, source(number, 4)) as (reader, _):
            await reader.read()

    await swarm(800, one)


async def slow_headers(target: Target) -> None:
    head = target.head("GET", "/health/live")
    await _drop_by_drop(target, head, b"x: y\r\n", connections=400)


async def slow_bodies(target: Target) -> None:
    """With a key of the sandbox: without one no body is waited for."""
    head = target.head("POST", target.certify_path, BODY_TYPE, b"Content-Length: 1000000\r\n", key=target.sandbox_key)
    await _drop_by_drop(target, head + b"\r\n", b" ", connections=400)


async def large_logins(target: Target) -> None:
    """A megabyte each to where people log in, who have no key yet, 100 Mbit/s together, and never the last byte of it."""
    pace = Pace(100 * MEGABIT)
    form = b"Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n"
    head = target.head("POST", "/ui/login", form, b"Content-Length: 1040000\r\n") + b"\r\nname=a&password="

    async def one(number: int) -> None:
        async with connected(target, source(number, 8)) as (reader, writer):
            writer.write(head)
            for piece in [b"%41" * 20_000] * 17:
                await pace.send(writer, piece)
            await reader.read()

    await swarm(250, one)


async def _drop_by_drop(target: Target, head: bytes, drop: bytes, *, connections: int) -> None:
    async def one(number: int) -> None:
        async with connected(target, source(number, 8)) as (reader, writer):
            writer.write(head)
            ended = asyncio.ensure_future(reader.read())
            try:
                for piece in cycle((drop,)):
                    writer.write(piece)
                    await writer.drain()
                    if (await asyncio.wait([ended], timeout=1))[0]:
                        return
            finally:
                ended.cancel()

    await swarm(connections, one)


async def slow_readers(target: Target) -> None:
    """Large answers, requested again and again and never read."""
    request = (target.head("GET", "/schema/openapi.json") + b"\r\n") * 50

    async def one(number: int) -> None:
        async with connected(target, source(number, 8)) as (reader, writer):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001  # the only way not to read
            writer.write(request)
            await asyncio.sleep(20)

    await swarm(200, one)


async def event_streams(target: Target) -> None:
    """Streams of events as many as one gets, never read."""
    head = target.head("GET", f"/v1/mcf/{target.nim}/events", key=target.sandbox_key) + b"\r\n"

    async def one(number: int) -> None:
        async with connected(target, source(number, 8)) as (reader, writer):
            writer.write(head)
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(20)

    await swarm(300, one)


async def resets(target: Target) -> None:
    """Half a request, then RST."""
    half = target.head("POST", target.certify_path, BODY_TYPE, b"Content-Length: 500\r\n") + b"\r\n{"

    async def one(number: int) -> None:
        async with connected(target, source(number, 8), shake=False) as (_, writer):
            reset_on_close(writer)
            writer.write(b"\x16\x03\x01" if target.tls else half)
            await writer.drain()

    await swarm(40, one, pause=0.001)


async def reconnects(target: Target) -> None:
    """Whole connections, handshake and all, that ask nothing."""

    async def one(number: int) -> None:
        async with connected(target, source(number, 8)):
            pass

    await swarm(40, one, pause=0.001)


async def eight_addresses(target: Target) -> None:
    """300 connections a second from eight addresses, handshake and all, each with one request without a key."""
    every = 8 / 300

    async def one(number: int) -> None:
        async with asyncio.timeout(2), connected(target, source(number, 8)) as (reader, writer):
            writer.write(target.head("GET", "/v1/me") + b"\r\n")
            await reader.read(1)

    async def address(number: int) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(quietly(one(number)))
                await asyncio.sleep(every)

    await swarm(8, address)


async def quietly(work: Coroutine[Any, Any, None]) -> None:
    with suppress(OSError, EOFError):
        await work


async def wrong_keys(target: Target) -> None:
    """Keys that are well made and not ours, from twenty addresses."""
    from daemon.core.keys import generate  # noqa: PLC0415  only this attacker knows how keys are made

    async def one(number: int) -> None:
        async with connected(target, source(number, 20)) as (reader, writer):
            for _ in range(100):
                writer.write(target.post(secrets.token_hex(100).encode(), key=generate("live")))
                await reader.readuntil(b"\r\n\r\n")

    await swarm(40, one, pause=0.001)


async def objects(target: Target) -> None:
    """As many empty objects as a body holds."""
    await _posts(target, itertools.cycle([_filled(b'{"a":[', b"{},", b"{}]}")]))


async def json_bombs(target: Target) -> None:
    """Nesting, digits, keys, escapes: each as much as a body holds."""
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
    await _posts(target, itertools.cycle(bombs))


async def sales(target: Target) -> None:
    """Test invoices of one item without end."""
    await _posts(target, _invoices(1), connections=16)


async def pages(target: Target) -> None:
    """Invoices of a thousand items, and the journal of them a thousand at a time."""
    numbers = _invoices(1_000)
    page = target.head("GET", f"/v1/mcf/{target.nim}/certifications?limit=1000", key=target.sandbox_key) + b"\r\n"

    async def one(number: int) -> None:
        async with connected(target, source(number, 4)) as streams:
            while True:
                await _ask(streams, page if number % 2 else target.post(next(numbers), key=target.sandbox_key))

    await swarm(8, one)


async def _posts(target: Target, bodies: Iterator[bytes], *, connections: int = 4) -> None:
    async def one(number: int) -> None:
        async with connected(target, source(number, 4)) as streams:
            while True:
                await _ask(streams, target.post(next(bodies), key=target.sandbox_key))

    await swarm(connections, one)


async def _ask(streams: Streams, request: bytes) -> None:
    """One request and the whole of its answer; EOFError when the connection is at its end."""
    reader, writer = streams
    writer.write(request)
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


def _filled(start: bytes, unit: bytes, end: bytes) -> bytes:
    return start + unit * ((MEGABYTE - len(start) - len(end)) // len(unit)) + end


def _invoices(items: int) -> Iterator[bytes]:
    for number in itertools.count():
        yield json.dumps(sale(f"S{os.getpid()}-{number}", items, 100)).encode()
