"""The page of a box without a configuration, until the person is done with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import uvloop

from daemon import notify
from daemon.api.http.server import HttpServer, ServerConfig
from daemon.api.page.faults import BoxFailed, BoxRefused
from daemon.api.page.first_start import FirstStart, FoundPort, Made, Probed, Wish
from daemon.api.page.screens.first_start import link
from daemon.api.service import create_first_start

__all__ = ["BoxFailed", "BoxRefused", "FirstStart", "FoundPort", "Made", "Probed", "Wish", "link", "serve_first_start"]

LAST_ANSWER = 5.0
"""Seconds left to the answer that says that mcfd is starting."""


LOOK_SECONDS = 0.5


def serve_first_start(
    first: FirstStart,
    host: str,
    port: int,
    left: asyncio.Event,
    *,
    listening: Callable[[], None],
    is_over: Callable[[], bool] | None = None,
) -> None:
    """Until `left` is set, or `is_over` says that the box was set up in another way; `listening` is called when the page is there. OSError
    when the address cannot be had."""
    uvloop.run(_serve(first, host, port, left, listening, is_over))


async def _serve(  # noqa: PLR0917  as above
    first: FirstStart,
    host: str,
    port: int,
    left: asyncio.Event,
    listening: Callable[[], None],
    is_over: Callable[[], bool] | None,
) -> None:
    server = HttpServer(create_first_start(first), ServerConfig(host=host, port=port, grace=LAST_ANSWER))
    await server.start()
    try:
        listening()
        notify.ready()
        while is_over is None or not is_over():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if is_over is None else LOOK_SECONDS):
                    await left.wait()
                    break
    finally:
        await server.stop()
