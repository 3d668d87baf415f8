"""The HTTP server inside a running event loop: uvicorn by its public parameters, on loopback or behind HAProxy.

HTTP/1.1 without TLS; a network is faced by `common.front`. h11 takes 0.14 ms more per request than httptools, but reads
the body behind an `Upgrade: h2c`, which Java's client sends first, limits heads, and sends no chunks to HTTP/1.0."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import msgspec
import uvicorn

from common.front_config import TRUSTED_HEADER
from common.sockets import bind, bind_unix

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]
App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

KEY_ACCEPTED: Final = "key_shown"
"""In the state of a request with a valid key: HAProxy then gives its address the larger limits."""
IS_HEAD: Final = "is_head"
"""In the state of a HEAD request, which the application gets as GET (RFC 9110, 9.3.2); its answer ends after the
headers."""
IDLE_SECONDS: Final = 75
HEAD_BYTES: Final = 16 * 1024
STARTED_TICK: Final = 0.002
_WHOLE_URL: Final = re.compile(rb"https?://([^/]+)(.*)", re.IGNORECASE)


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`port` 0 takes a free one. `behind` is the Unix socket for HAProxy, which then has host and port. `grace` is the
    time for answers at the stop, in seconds."""

    host: str = "127.0.0.1"
    port: int = 8480
    behind: Path | None = None
    grace: float = 10


class HttpServer:
    """`start` raises OSError if the address cannot be bound."""

    def __init__(self, app: App, config: ServerConfig) -> None:
        self._config = config
        self._sockets: list[socket.socket] = []
        self._server = uvicorn.Server(_uvicorn_config(app, config))
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        if self._config.behind is not None:
            return self._config.port
        port: int = self._sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        behind = self._config.behind
        self._sockets = [bind_unix(behind)] if behind else bind(self._config.host, self._config.port)
        self._task = asyncio.get_running_loop().create_task(self._server.serve(self._sockets), name="http")
        while not self._server.started and not self._task.done():  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(STARTED_TICK)
        if self._task.done():
            self._task.result()

    async def until(self, stop: asyncio.Event) -> None:
        """Returns at the event or when the server ends; raises the server's error, if any."""
        waiting = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({waiting, *((self._task,) if self._task else ())}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._task is not None and self._task.done():
            self._task.result()

    async def stop(self, work: Awaitable[object] | None = None) -> None:
        """Accepts no more connections. After `work`, answers in progress have `grace` seconds; the rest is cut."""
        if self._task is None:
            return
        self._server.should_exit = True
        if work is not None:
            await work
        await asyncio.wait((self._task,), timeout=self._config.grace)
        if not self._task.done():
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class _TellsFront:
    """The application, with `TRUSTED_HEADER` in answers to requests with a valid key."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and KEY_ACCEPTED in scope["state"]:
                message["headers"] = [*message["headers"], (TRUSTED_HEADER, b"1")]
            await send(message)

        await self._app(scope, receive, answer)


def _with_heads_and_urls(app: App) -> App:
    """The application, also for HEAD, and for request lines with a whole URL (RFC 9112, 3.2.2), which uvicorn leaves in
    the path."""

    def answer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if found := _WHOLE_URL.fullmatch(scope["raw_path"]):
            scope["raw_path"] = found[2] or b"/"
            scope["path"] = unquote(scope["raw_path"].decode("ascii"))
            scope["headers"] = [(b"host", found[1]), *(each for each in scope["headers"] if each[0] != b"host")]
        if scope["method"] != "HEAD":
            return app(scope, receive, send)

        async def headers_only(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        scope["state"][IS_HEAD] = True
        return app({**scope, "method": "GET"}, receive, headers_only)

    return answer


def _uvicorn_config(app: App, config: ServerConfig) -> uvicorn.Config:
    is_behind = config.behind is not None
    return uvicorn.Config(
        _with_heads_and_urls(_TellsFront(app) if is_behind else app),
        http="h11",
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws="none",
        lifespan="off",
        interface="asgi3",
        proxy_headers=is_behind,
        forwarded_allow_ips="*" if is_behind else None,  # on the Unix socket, which only HAProxy may open
        access_log=False,
        log_config=None,
        log_level="critical",
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
    )
