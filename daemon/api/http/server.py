"""The HTTP server inside a loop that is somebody else's: sockets, TLS, deadlines, and a stop that lets answers out."""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import functools
import socket
import ssl
import termios
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec
import uvicorn
from litestar import Litestar

from common.tls import offer_strong_alone
from daemon.api.http.connection import Connection, Recognise
from daemon.api.http.cross_origin import CrossOrigin
from daemon.api.http.plain_answers import refusal
from edge.admission import ConnectionLimits, Slot
from edge.gate import Gate
from edge.listening import bind
from edge.tls_records import RecordContext

TICK: Final = 0.1
TICKS_A_DAY: Final = 864_000
STOP_TICK: Final = 0.02
CHECK_EVERY: Final = 2
"""Of the ticks (uvicorn's own work, as the Date header, goes by tens of them)."""


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`port` 0 takes a free one. `tls_cert` and `tls_key` go together. `grace` seconds are left to answers at the stop."""

    host: str = "127.0.0.1"
    port: int = 8480
    tls_cert: Path | None = None
    tls_key: Path | None = None
    grace: float = 10.0
    limits: ConnectionLimits = msgspec.field(default_factory=ConnectionLimits)
    recognise: Recognise = lambda _: None
    cross_origin: CrossOrigin = msgspec.field(default_factory=CrossOrigin)


class BadCertificate(Exception):
    """Certificate and key are no pair to serve with; names both files."""


class HttpServer:
    """`start` raises OSError when the address cannot be had, and BadCertificate; `failed` ends only if the server ends by itself."""

    def __init__(self, app: Litestar, config: ServerConfig) -> None:
        self._config = config
        self._sockets: list[socket.socket] = []
        self._server = _Server(_uvicorn_config(app, config), config.limits, config.grace)
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        port: int = self._sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        self.check_tls()
        self._sockets = self._bind()
        self._task = asyncio.get_running_loop().create_task(self._server.serve(self._sockets), name="http")
        listening = asyncio.ensure_future(self._server.listening.wait())
        await asyncio.wait((self._task, listening), return_when=asyncio.FIRST_COMPLETED)
        if not listening.done():
            listening.cancel()
            for each in self._sockets:
                each.close()
            self._task.result()

    def _bind(self) -> list[socket.socket]:
        host, port = self._config.host, self._config.port
        try:
            return bind(host, port)
        except OSError as error:
            raise OSError(f"cannot listen on {host} port {port}: {_reason(error)}") from error

    async def failed(self) -> None:
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """No new connections; what is being answered has `grace` seconds; then whatever is left is cut."""
        if self._task is not None:
            self._server.leave()
            await self._task

    def check_tls(self) -> None:
        """BadCertificate when certificate and key cannot be read or do not fit each other."""
        cert, key = self._config.tls_cert, self._config.tls_key
        if cert is None:
            return
        try:
            # An empty password: OpenSSL would ask for one at the terminal.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
        except OSError as error:
            raise BadCertificate(f"{cert} with {key}: {_reason(error)}") from error

    def reload_tls(self) -> None:
        """A renewed certificate counts from the next handshake on; connections that are open stay as they are."""
        context, config = self._server.config.ssl, self._config
        if context is not None and config.tls_cert is not None:
            self.check_tls()  # first: a context that got the one and not the other could serve nobody
            context.load_cert_chain(config.tls_cert, config.tls_key)


def _reason(error: OSError) -> str:
    """Without numbers and file names of the C library's."""
    return (isinstance(error, ssl.SSLError) and error.reason) or error.strerror or str(error)


class _Server(uvicorn.Server):
    """uvicorn's, with deadlines, with a stop that does not wait for its next tick, and without its signal handlers."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits, grace: float) -> None:
        super().__init__(config)
        self._limits = limits
        self.listening = asyncio.Event()
        self._leaving = asyncio.Event()
        self._grace = grace

    def leave(self) -> None:
        self.should_exit = True
        self._leaving.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the composition root."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, but accepting is ours."""
        self.servers = []
        self._gate = Gate(
            self._limits,
            self._connection,
            self.server_state.connections.discard,
            tls=self.config.ssl,
            refusal=lambda: refusal(429, "too many connections are open"),
        )
        self._gate.open(sockets or ())
        self.started = True
        self.listening.set()

    def _connection(self, slot: Slot) -> asyncio.Protocol:
        make = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state={}, slot=slot)  # type: ignore[call-arg]  # a partial

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % TICKS_A_DAY
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._leaving.wait()

    async def on_tick(self, counter: int) -> bool:
        if counter % CHECK_EVERY == 0:
            now = asyncio.get_running_loop().time()
            for connection in self._connections():
                connection.check(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gate.close()
        for listener in sockets or ():
            listener.close()
        for connection in self._connections():
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._deserted()
        for task in tuple(self.server_state.tasks):
            task.cancel()
        for connection in self._connections():
            connection.transport.abort()
        await self._deserted()

    async def _deserted(self) -> None:
        ended: set[Connection] = set()
        while self._connections() or self.server_state.tasks:
            await asyncio.sleep(STOP_TICK)
            before, ended = ended, {each for each in self._connections() if _has_ended(each.transport)}
            for connection in before & ended:  # twice: in between, more of a long answer would have been written
                connection.transport.abort()

    def _connections(self) -> list[Connection]:
        """Without those that uvloop has dropped at their very beginning and never told that they are lost: their place is free
        already, and a stop would wait for them for ever."""
        found = [connection for connection in self.server_state.connections if isinstance(connection, Connection)]
        self.server_state.connections.difference_update(each for each in found if each.slot.has_left)
        return [connection for connection in found if not connection.slot.has_left]


def _has_ended(transport: asyncio.Transport) -> bool:
    """Whether it is being closed, and the peer's kernel has all that was written. TLS would then wait for a word of the peer's own (close_notify), which it says
    once it looks at the connection: a till that keeps one open, with its next sale."""
    peer = transport.get_extra_info("socket")
    if peer is None or not transport.is_closing():
        return False  # it is gone already, and about to be told so
    unsent = array.array("i", [0])
    fcntl.ioctl(peer.fileno(), termios.TIOCOUTQ, unsent)
    return not unsent[0]


def _uvicorn_config(app: Litestar, config: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=functools.partial(  # type: ignore[arg-type]  # any callable will do
            Connection, limits=config.limits, recognise=config.recognise, cross_origin=config.cross_origin
        ),
        ws="none",
        lifespan="off",
        interface="asgi3",
        proxy_headers=False,
        access_log=False,
        log_config=None,
        log_level="error",
        server_header=False,
        ssl_context_factory=functools.partial(_tls, config.tls_cert, config.tls_key) if config.tls_cert else None,
    )


def _tls(cert: Path, key: Path | None, *_: object) -> RecordContext:
    context = RecordContext(ssl.PROTOCOL_TLS_SERVER)
    offer_strong_alone(context)
    context.load_cert_chain(cert, key)
    return context
