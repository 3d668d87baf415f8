"""What a developer's key can do: it is valid, for the sandbox only."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterator

from bench.siege.target import Streams, Target, connected, sale, source, swarm

MEGABYTE = 1024 * 1024


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
