"""Headquarters' HTTP server: uvicorn's, but connections come in by `edge`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Generator
from typing import Final

import uvicorn
from litestar import Litestar

from common.tls import offer_strong_alone
from edge.admission import ConnectionLimits, Slot
from edge.gate import Gate
from edge.listening import bind
from edge.tls_records import RecordContext
from headquarters.app.connection import PATIENCE, Connection
from headquarters.app.settings import HqServer

GRACE_SECONDS: Final = 10
CHECK_EVERY: Final = 10
"""Of uvicorn's ticks, which are ten a second."""
TOTAL: Final = 2000
AS_MANY: Final = (1e6, 1e6)
DIRECT: Final = ConnectionLimits(
    total=TOTAL, per_address=500, unknown=1000, arrivals=(30.0, 250.0), arrivals_in_all=(300.0, 600.0)
)
"""A thousand boxes may come by one carrier's address: until the first of them has shown its key, 30 connections a second of them."""
BEHIND: Final = ConnectionLimits(
    total=TOTAL, per_address=TOTAL, unknown=TOTAL, arrivals=AS_MANY, arrivals_in_all=AS_MANY, known_arrivals=AS_MANY
)
"""Without a certificate there is a web server in front, whose address is everybody's."""
REFUSAL: Final = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class HttpServer:
    task: asyncio.Task[None]

    def __init__(self, app: Litestar, settings: HqServer) -> None:
        self._settings = settings
        self._server = _Server(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                ssl_context_factory=functools.partial(_tls, settings) if settings.tls_cert else None,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=PATIENCE,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._sockets: list[socket.socket] = []

    @property
    def address(self) -> str:
        port = self._sockets[0].getsockname()[1] if self._sockets else self._settings.port
        return f"{'https' if self._settings.tls_cert else 'http'}://{self._settings.host}:{port}"

    async def start(self) -> None:
        """OSError when the address cannot be had."""
        host, port = self._settings.host, self._settings.port
        try:
            self._sockets = bind(host, port)
        except OSError as error:
            raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from error
        self.task = asyncio.get_running_loop().create_task(self._server.serve(self._sockets), name="http")
        listening = asyncio.ensure_future(self._server.listening.wait())
        await asyncio.wait((self.task, listening), return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()
        if self.task.done():
            self.task.result()

    async def stop(self) -> None:
        self._server.leave()
        await asyncio.wait([self.task])


class _Server(uvicorn.Server):
    """With a stop that waits for no tick, and for no connection where there is none."""

    _ticks: asyncio.Task[None] | None = None

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are headquarters' own."""
        yield

    def leave(self) -> None:
        self.should_exit = True
        if self._ticks is not None:
            self._ticks.cancel()

    async def main_loop(self) -> None:
        self._ticks = asyncio.get_running_loop().create_task(super().main_loop(), name="ticks")
        await asyncio.wait((self._ticks,))
        if not self._ticks.cancelled():
            self._ticks.result()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        tls = self.config.ssl
        self.servers = []
        self._gate = Gate(
            DIRECT if tls else BEHIND,
            self._connection,
            self.server_state.connections.discard,
            tls=tls,
            refusal=lambda: REFUSAL,
        )
        self._gate.open(sockets or ())
        self.started = True
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gate.close()
        for listener in sockets or ():
            listener.close()
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)  # which gives them a tenth of a second before it looks

    def _connection(self, slot: Slot) -> asyncio.Protocol:
        return Connection(config=self.config, server_state=self.server_state, app_state={}, slot=slot)

    async def on_tick(self, counter: int) -> bool:
        if counter % CHECK_EVERY == 0:
            now = asyncio.get_running_loop().time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.check(now)
        return await super().on_tick(counter)


def _tls(settings: HqServer, *_: object) -> ssl.SSLContext:
    context = RecordContext(ssl.PROTOCOL_TLS_SERVER)
    offer_strong_alone(context)
    context.load_cert_chain(settings.tls_cert or "", settings.tls_key)
    return context
