"""Bytes that cost more to read than to send; no key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain, cycle, repeat

from support.key_updates import shaken

from bench.siege.target import BODY_TYPE, MEGABIT, Pace, Target, connected, source, swarm

BLANK = b"\r\n\r\n" * 16_384
CHUNK = b"10000\r\n" + BLANK + b"\r\n"
LARGE_RECORD = b"\x16\x03\x01\x40\x00\x01"
"""The beginning of a TLS handshake's first record, of 16 KiB."""
TINY = b"1\r\n{\r\n" * 4_096


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
        target.head(*asked, line) + b"\r\n" for line in lines for asked in (("GET", "/ui/login"), ("GET", "/v1/x"))
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
