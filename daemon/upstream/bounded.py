"""Answers that end: httpx reads 1xx answers (RFC 9110, 15.2) for as long as any come, and tells nobody of them.

So what a receiver may send for one request is bounded here, below HTTP, and taken in pieces with a turn of the loop after each: a
receiver that sends nothing but `100 Continue` takes a few milliseconds of a sale, not ten seconds of the loop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import httpcore
import httpx

MOST: int = 64 * 1024
"""Bytes for one request, heads and all."""
PIECE: int = 2 * 1024
"""Bytes in one turn of the loop: a hundred of the shortest answers."""
KEPT: int = 10
"""Connections that wait for the next request; more than so many at once are closed after their answer."""


class BoundedTransport(httpx.AsyncBaseTransport):
    """No proxy or certificate from the environment: what is configured is what happens.

    A connection is taken up again after a whole answer and after nothing else: a request that is given up, as when its time is over, takes its
    connection with it. A pool of httpcore would keep some of those for ever and have none left after ten (its issue 1093), so each of ours
    has one connection and one request at a time."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: list[_Connection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connection = self._idle.pop() if self._idle else _Connection(self._tls)
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            await connection.aclose()
            raise
        response.stream = _Answer(cast("httpx.AsyncByteStream", response.stream), connection, self._idle)
        return response

    async def aclose(self) -> None:
        """What is under way ends with its own request."""
        while self._idle:
            await self._idle.pop().aclose()


class _Connection(httpx.AsyncHTTPTransport):
    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls)
        self._pool = httpcore.AsyncConnectionPool(ssl_context=tls, max_connections=1, network_backend=_Network())


class _Answer(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, connection: _Connection, idle: list[_Connection]) -> None:
        self._stream = stream
        self._connection: _Connection | None = connection
        self._idle = idle
        self._is_whole = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece
        self._is_whole = True

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        is_kept = False
        try:
            await self._stream.aclose()
            is_kept = self._is_whole and len(self._idle) < KEPT
        finally:
            if is_kept:
                self._idle.append(connection)
            else:
                await connection.aclose()


class _Network(httpcore.AsyncNetworkBackend):
    def __init__(self) -> None:
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  as httpcore has it
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Bounded(await self._network.connect_tcp(host, port, timeout, local_address, socket_options))


class _Bounded(httpcore.AsyncNetworkStream):
    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._left = MOST

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  as httpcore has it
        if not self._left:
            raise httpcore.ReadError(f"an answer of more than {MOST // 1024} KiB")
        piece = await self._stream.read(min(max_bytes, PIECE, self._left), timeout)
        self._left -= len(piece)
        await asyncio.sleep(0)  # over TLS the next piece may be there already
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  as httpcore has it
        self._left = MOST
        await self._stream.write(buffer, timeout)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  as httpcore has it
    ) -> httpcore.AsyncNetworkStream:
        return _Bounded(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
