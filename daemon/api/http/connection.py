"""One TCP connection with a deadline for every phase: uvicorn has none for a slow header, a slow body or a slow reader.

    IDLE      no byte of a request yet                     closed after `idle_seconds`
    HEADERS   some bytes, not yet a whole head             408 after `header_seconds`
    BODY      a body that is wanted, not yet whole         408 after `body_seconds`, or `stall_seconds` without a byte
    WORKING   the request is complete, its answer is not   no deadline: the use cases have their own patience
    WRITING   the peer does not read what was answered     cut after `write_seconds` without progress
    CLOSING   closed by us, not yet by the peer            cut after `linger_seconds`

Nothing is timed per request: `HttpServer` looks at every connection a few times a second (`check`).

llhttp reads heads, one at a time; a body is read only once the application asks for it (`bodies`), so nothing is spent on what comes
behind a head that is refused. What a peer sends after its request waits here, unread and with reading paused, until the answer
is out. So nothing is ever queued, where a request ends is never in doubt, and a bad request cannot spoil the answer before it.

A request that shows no valid key waits until those may have one more (`admission`).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeAlias

import structlog
from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
)
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from daemon.api.http.bodies import BadChunk, Body, ChunkedBody, SizedBody
from daemon.api.http.cross_origin import CrossOrigin
from daemon.api.http.framing import Unreadable, check_line, length_of_body
from daemon.api.http.headers import made_up_id
from daemon.api.http.plain_answers import plainly
from daemon.api.http.write_coalescing import WriteCoalescing
from daemon.api.problems import plain_problem
from edge.admission import ConnectionLimits, Slot, Standing

log = structlog.get_logger(__name__)

BLANK_LINE = b"\r\n\r\n"
"""Ends every head."""


LONGEST_PACE = 5.0
"""Seconds that a request without a key may be held back; one that would wait longer is refused."""
THROWN_AWAY = 2 * 1024 * 1024
"""Bytes that are read and forgotten after the answer, so that the peer gets to see it; of unknown connections, as much as their requests may have."""

Recognise: TypeAlias = Callable[[HTTPScope], Standing | None]
"""Whose request this is, by its headers alone; None without a valid key."""


class Phase(Enum):
    IDLE = auto()
    HEADERS = auto()
    BODY = auto()
    WORKING = auto()
    WRITING = auto()
    CLOSING = auto()


class Connection(HttpToolsProtocol):
    def __init__(
        self,
        *args: Any,
        limits: ConnectionLimits,
        slot: Slot,
        recognise: Recognise,
        cross_origin: CrossOrigin,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._cross_origin = cross_origin
        self.url = b""  # uvicorn's, until it knows one
        self.slot = slot
        self._recognise = recognise
        self._ended = False
        self._thrown_away = 0
        self._unasked = False
        self._cut_short = False  # bytes beyond what an unknown connection may have are gone
        self._held_back: asyncio.TimerHandle | None = None
        self._fault: Unreadable | None = None
        self._buffer, self._at = b"", 0  # all before `_at` is read; three such bytes stay, for a split BLANK_LINE
        self._arriving = Phase.IDLE  # WORKING: nothing is, until the answer is out
        self._head_size = 0
        self._body: Body = SizedBody(0)
        self._wanted = False  # the application asks for the body
        self._phase = Phase.IDLE
        self._request: RequestResponseCycle | None = None
        self._since = self._received_at = self._drained_at = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.transport = self._writes = WriteCoalescing(transport, self.loop)
        self.slot.cut = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.slot.leave()
        if self._held_back is not None:
            self._held_back.cancel()

    def data_received(self, data: bytes) -> None:
        self._received_at = self.loop.time()
        if not self._ended:
            self._buffer += data
            self._read()
            return
        self._thrown_away += len(data)
        if self._thrown_away > (self._limits.unknown_bytes if self._is_unknown else THROWN_AWAY):
            self.transport.abort()

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio has it
        """Who has asked and sends no more may still read the answer. (An answer that has begun may be endless: its reader is gone.)"""
        request: RequestResponseCycle | None = self.cycle
        if request is None or request.response_started or not self._body.complete or not self.transport.can_write_eof():
            return False
        request.keep_alive = False
        return True

    def _read(self) -> None:
        while self._at < len(self._buffer) and not self._ended and not self.transport.is_closing():
            if self._arriving is Phase.WORKING or (self._arriving is Phase.BODY and not self._wanted):
                self.flow.pause_reading()
                break
            try:
                if self._arriving is not Phase.BODY:
                    self._read_head()
                elif not self._read_body():
                    break
            except Unreadable as fault:
                self._refuse(fault.status, fault.detail)
            except BadChunk as fault:
                self._refuse(400, str(fault))
        start = max(0, self._at - 3)
        self._buffer, self._at = self._buffer[start:], self._at - start

    def _read_head(self) -> None:
        """As far as it is there, and never beyond it."""
        if self._arriving is Phase.IDLE:
            rest = self._buffer[self._at :].lstrip(b"\r\n")
            self._at = len(self._buffer) - len(rest)
            if not rest:
                return
            self.parser = HttpRequestParser(self)  # without uvicorn's leniencies
            self._head_size = 0
        start = self._at
        blank = self._buffer.find(BLANK_LINE, max(start - 3, 0))
        self._at = blank + len(BLANK_LINE) if blank >= 0 else len(self._buffer)
        self._head_size += self._at - start
        if self._head_size > self._limits.header_bytes:
            raise Unreadable(431, f"the headers are larger than {self._limits.header_bytes} bytes")
        self._feed(self._buffer[start : self._at])

    def _feed(self, piece: bytes) -> None:
        """Unreadable when it is no HTTP, or not such as we take; the callbacks below are called from here."""
        try:
            self.parser.feed_data(piece)
        except HttpParserUpgrade:
            return  # a wish that is not granted: the request is read as what it is without it
        except HttpParserError as error:
            if self._fault is None and isinstance(error, HttpParserCallbackError):
                raise  # a defect of ours
            raise self._fault or Unreadable(400, f"this cannot be read as HTTP: {error}") from None

    def _read_body(self) -> bool:
        """As far as it is there; whether there was anything to read."""
        before = self._at
        content, self._at = self._body.take(self._buffer, before)
        if content:
            self.cycle.waiting_for_100_continue = False
            super().on_body(content)
        if self._body.complete:
            self._complete()
        return self._at > before

    def _complete(self) -> None:
        super().on_message_complete()
        self.cycle.waiting_for_100_continue = False
        self._arriving = Phase.IDLE if self.cycle.response_complete else Phase.WORKING

    def _want_body(self) -> None:
        if not self._wanted:
            self._wanted = True
            self._read()

    def on_message_begin(self) -> None:
        self._arriving = Phase.HEADERS
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        try:
            self._begin(self.parser.get_method().decode(), self.parser.get_http_version())
        except Unreadable as fault:
            self._fault = fault  # the parser tells only that a callback failed
            raise

    def on_body(self, body: bytes) -> None:
        """The parser sees heads only."""
        raise AssertionError(body)

    def on_message_complete(self) -> None:
        """Of the head, as far as the parser goes; see `_complete`."""

    def _begin(self, method: str, version: str) -> None:
        check_line(method, self.url, version)
        length = length_of_body(self.headers, version)
        self._body = ChunkedBody() if length is None else SizedBody(length)
        self._wanted = False
        if version == "1.0":
            self.expect_100_continue = False  # RFC 9110, 10.1.1
        try:
            super().on_headers_complete()
        except HttpParserError:
            raise Unreadable(400, "the request target has to be a path") from None
        self._arriving = Phase.BODY
        if self._body.complete:
            self._complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        pace = self._pace(cycle)
        if pace or not self._body.complete or cycle.waiting_for_100_continue or cycle.scope["http_version"] == "1.0":
            app = functools.partial(self._carefully, cycle, app)
        if pace:
            self._hold_back(pace, functools.partial(super()._start_asgi_task, cycle, app))
        else:
            super()._start_asgi_task(cycle, app)

    def _pace(self, cycle: RequestResponseCycle) -> float:
        """Seconds that this request has to wait for its turn among those without a key."""
        now = self.loop.time()
        standing = self._recognise(cycle.scope)
        if standing is None:
            return self.slot.pace(now)
        self.slot.show(standing, now)
        return 0.0

    def _hold_back(self, seconds: float, start: Callable[[], None]) -> None:
        if seconds > LONGEST_PACE:
            raise Unreadable(429, "too many requests without a valid key")
        room = self._limits.unknown_bytes
        if len(self._buffer) - self._at > room:
            self._buffer = self._buffer[: self._at + room]
            self._cut_short = True
        self.flow.pause_reading()
        self._held_back = self.loop.call_later(seconds, start)

    def on_response_complete(self) -> None:
        """The answer leaves before anything else is done: the next request's turn, the access line.

        uvicorn's timer for idle connections is not needed."""
        self._writes.flush()
        self.server_state.total_requests += 1
        if self._arriving is Phase.BODY and self._is_all_here():
            _, self._at = self._body.take(self._buffer, self._at)
        if self._body.complete:
            self._arriving = Phase.IDLE
        if self._unasked:
            self._end()
        elif not self.transport.is_closing():
            self.flow.resume_reading()
            self._read()

    def _is_all_here(self) -> bool:
        """Whether the rest of the body, which nobody has asked for, can be skipped."""
        body = self._body
        return body.complete or (isinstance(body, SizedBody) and body.missing <= len(self._buffer) - self._at)

    @property
    def _is_unknown(self) -> bool:
        return self.slot.standing is Standing.UNKNOWN

    def resume_writing(self) -> None:
        self._drained_at = self.loop.time()
        super().resume_writing()

    def shutdown(self) -> None:
        """The daemon stops: a request that is being worked on gets its answer, one that is still arriving has begun nothing."""
        if self._phase_now() is Phase.BODY or self._held_back is not None:
            self.transport.abort()
        elif not self.transport.is_closing():
            super().shutdown()

    def check(self, now: float) -> None:
        """Ends the connection if it has been in its phase for too long."""
        phase, request = self._phase_now(), self.cycle
        if phase is not self._phase or request is not self._request:
            self._phase, self._request, self._since = phase, request, now
        elif now > self._deadline():
            self._expire()

    def _phase_now(self) -> Phase:
        if self._ended or self.transport.is_closing():
            return Phase.CLOSING
        if self.flow.write_paused:
            return Phase.WRITING
        return Phase.WORKING if self._arriving is Phase.BODY and not self._wanted else self._arriving

    def _deadline(self) -> float:
        limits, since = self._limits, self._since
        match self._phase:
            case Phase.IDLE:
                unknown = min(limits.idle_seconds, limits.unknown_idle_seconds)
                return since + (unknown if self._is_unknown else limits.idle_seconds)
            case Phase.HEADERS:
                return since + limits.header_seconds
            case Phase.BODY:
                stalled = max(since, self._received_at) + limits.stall_seconds
                return min(since + limits.body_seconds, stalled)
            case Phase.WRITING:
                return max(since, self._drained_at) + limits.write_seconds
            case Phase.CLOSING:
                return since + limits.linger_seconds
            case Phase.WORKING:
                return float("inf")

    def _expire(self) -> None:
        match self._phase:
            case Phase.HEADERS:
                self._refuse(408, "the headers did not arrive in time")
            case Phase.BODY:
                self._refuse(408, "the body did not arrive in time; nothing was done")
            case Phase.IDLE:
                self.transport.close()
            case _:
                self.transport.abort()

    def _refuse(self, status: int, detail: str) -> None:
        """An answer without a request that the application could give it to; the connection ends with it."""
        own_id = made_up_id()
        if self._arriving is not Phase.BODY or not self.cycle.response_started:
            path = bytes(self.url).decode("latin-1")
            more = self._cross_origin.headers(path, self.headers or ())
            self.transport.write(plainly(plain_problem(status, detail, own_id, more), own_id))
            log.info("request", request_id=own_id, method="", route="(none)", status=status, duration_ms=0.0)
        waiting: RequestResponseCycle | None = self.cycle
        if waiting is not None and not waiting.response_complete:
            waiting.disconnected = True
            waiting.message_event.set()
        self._end()

    def _end(self) -> None:
        """What the peer still sends is thrown away until it has seen the answer: closing at once would take it away again (RST)."""
        self._ended = True
        self._buffer, self._at = b"", 0
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    async def _carefully(
        self,
        cycle: RequestResponseCycle,
        app: ASGI3Application,
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> None:
        """The body is read once it is asked for. If it is not, whether it still comes is not known, and nothing can follow it: the
        connection ends with the answer. And HTTP/1.0 knows no chunks: an answer without a length ends with the connection."""
        self._held_back = None
        endless = False

        async def answer(message: ASGISendEvent) -> None:
            nonlocal endless
            if message["type"] == "http.response.start":
                self._unasked = self._cut_short or not self._is_all_here()
                cycle.keep_alive = cycle.keep_alive and not self._unasked  # the answer says so
                sized = any(name == b"content-length" for name, _ in message.get("headers", ()))
                endless = cycle.scope["http_version"] == "1.0" and not sized
                if endless:
                    cycle.chunked_encoding = False
            elif message["type"] == "http.response.body":
                cycle.keep_alive = cycle.keep_alive or self._unasked  # `_end` is gentler than a close
                if endless:
                    cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        async def ask() -> ASGIReceiveEvent:
            self._want_body()
            return await receive()

        await app(scope, ask, answer)
