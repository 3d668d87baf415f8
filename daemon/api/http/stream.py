"""An answer that goes on: sent in pieces as fast as the client reads them, over when it goes away or the daemon stops.

A client that takes no piece for WRITE_SECONDS is cut; nothing piles up here meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final

import structlog
from litestar.types import Receive, Scope, Send

from daemon.api.http.answers import Header, Reply
from daemon.core.errors import StorageError

log = structlog.get_logger(__name__)

WRITE_SECONDS: Final = 30.0


class NoLongerWelcomeError(Exception):
    """The key or the session that opened it has ended since; half of an answer must not pass for the whole."""


class Stream(Reply):
    """`endless` ones are ended properly at the stop; any other is broken off, so that half of it cannot pass for the whole."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        media_type: bytes,
        place: contextlib.AbstractContextManager[None],
        stopping: asyncio.Event,
        headers: tuple[Header, ...] = (),
        endless: bool = False,
        is_welcome: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_welcome = is_welcome
        self._pieces = pieces
        self._headers: list[Header] = [(b"content-type", media_type), *headers]
        self._place = place
        self._stopping = stopping
        self._endless = endless

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  the shape of ASGI
        async with contextlib.aclosing(self._pieces) as pieces:
            with self._place:
                first = await anext(pieces, b"")  # what goes wrong up to here is still a problem answer
                await send({"type": "http.response.start", "status": 200, "headers": self._headers})
                pumping = self._pump(first, pieces, send)
                try:
                    complete = await while_waited_for(pumping, _gone(receive), self._stopping.wait())
                except NoLongerWelcomeError:
                    log.info("stream.access_ended")
                    return
                except TimeoutError:
                    log.info("stream.not_read")
                    return
                except StorageError as error:
                    log.error("stream.broken_off", reason=str(error))  # noqa: TRY400  no trace needed
                    return
        if complete or self._endless:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, first: bytes, pieces: AsyncGenerator[bytes, None], send: Send) -> None:
        await _write(send, first)
        async for piece in pieces:
            if not self._is_welcome():
                raise NoLongerWelcomeError
            await _write(send, piece)


async def _write(send: Send, piece: bytes) -> None:
    """TimeoutError when the client does not read."""
    async with asyncio.timeout(WRITE_SECONDS):
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def while_waited_for(work: Coroutine[Any, Any, Any], *ends: Coroutine[Any, Any, Any]) -> bool:
    """Runs `work` until it or one of `ends` is over; whether it came to its own end."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    tasks = [task, *(loop.create_task(end) for end in ends)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if task.cancelled():
        return False
    task.result()
    return True


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
