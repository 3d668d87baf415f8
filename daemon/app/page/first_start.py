"""The page of a box without a configuration, until the person is done with it."""

from __future__ import annotations

import asyncio

import uvloop

from daemon.api.http.server import HttpServer, ServerConfig
from daemon.api.page.faults import BoxFailed
from daemon.api.page.first_start import FirstStart, FoundPort, Made, Probed, Wish
from daemon.api.page.screens.first_start import link
from daemon.api.service import create_first_start

__all__ = ["BoxFailed", "FirstStart", "FoundPort", "Made", "Probed", "Wish", "link", "serve_first_start"]

LAST_ANSWER = 5.0
"""Seconds left to the answer that says that mcfd is starting."""


def serve_first_start(first: FirstStart, host: str, port: int, left: asyncio.Event) -> None:
    """Until `left` is set. OSError when the address cannot be had."""
    uvloop.run(_serve(first, host, port, left))


async def _serve(first: FirstStart, host: str, port: int, left: asyncio.Event) -> None:
    server = HttpServer(create_first_start(first), ServerConfig(host=host, port=port, grace=LAST_ANSWER))
    await server.start()
    try:
        await left.wait()
    finally:
        await server.stop()
