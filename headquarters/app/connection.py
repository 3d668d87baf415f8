"""One TCP connection of headquarters: uvicorn's, with a place of its own and an end to everything that a peer can draw out.

Whoever has shown no key yet gets one answer on a connection, so that strangers' requests come no quicker than their connections may.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from httptools import HttpParserError
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from edge.admission import Slot, Standing
from headquarters.api.access import SHOW

HEAD_BYTES: Final = 32 * 1024
"""Of a request line and its headers; llhttp knows no limit."""
PATIENCE: Final = 75
"""Seconds that a connection may be idle, a whole request may take to arrive, or a piece of an answer to be read."""


class Connection(HttpToolsProtocol):
    def __init__(self, *args: Any, slot: Slot, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._slot = slot
        self._since = self.loop.time()
        self._head_size = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._slot.cut = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._slot.leave()

    def data_received(self, data: bytes) -> None:
        self._head_size += len(data)
        super().data_received(data)
        if self._head_size > HEAD_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """A request before the answer to the last one is refused: nobody here sends one, and a packet holds thousands."""
        if not self._is_idle:
            raise HttpParserError("pipelining")
        self._since = self.loop.time()
        super().on_message_begin()
        self.scope["state"][SHOW] = self._show

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head_size = 0

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head_size = 0

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def resume_writing(self) -> None:
        self._since = self.loop.time()
        super().resume_writing()

    def check(self, now: float) -> None:
        """Cut when the peer has kept it waiting for too long."""
        if self.flow.write_paused or self._is_idle or self.cycle.more_body:
            if now - self._since > PATIENCE:
                self.transport.abort()
        else:
            self._since = now  # it is ours to answer

    @property
    def _is_idle(self) -> bool:
        """Nothing is asked, or nothing whole."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _show(self) -> None:
        self._slot.show(Standing.LIVE, self.loop.time())

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        super()._start_asgi_task(cycle, functools.partial(self._once, app))

    async def _once(
        self, app: ASGI3Application, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        async def answer(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start" and self._slot.standing is Standing.UNKNOWN:
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await app(scope, receive, answer)
