"""Connections and requests as fast as they can be made; no key."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from bench.siege.target import BODY_TYPE, Target, connected, reset_on_close, source, swarm


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
