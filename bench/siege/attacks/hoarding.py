"""Connections that are held: half-shaken, idle, slow in one direction or the other."""

from __future__ import annotations

import asyncio
import socket
from itertools import cycle

from bench.siege.target import BODY_TYPE, MEGABIT, Pace, Target, connected, source, swarm

HELLO = b"\x16\x03\x01\x02\x00\x01"
"""How a TLS handshake begins, and no more of it."""


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
    """Large answers that are asked for again and again, and never read."""
    asked = (target.head("GET", "/schema/openapi.json") + b"\r\n") * 50

    async def one(number: int) -> None:
        async with connected(target, source(number, 8)) as (reader, writer):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001  # the only way not to read
            writer.write(asked)
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
