"""One TCP connection with a deadline for every phase: uvicorn has none for a slow header, a slow body or a slow reader.

    IDLE      no byte of a request yet                     closed after `idle_seconds`
    HEADERS   some bytes, not yet a whole head             408 after `header_seconds`
    BODY      a head, not yet the whole body               408 after `body_seconds`, or `stall_seconds` without a byte
    WORKING   the request is complete, its answer is not   no deadline: the use cases have their own patience
    WRITING   the peer does not read what was answered     cut after `write_seconds` without progress
    CLOSING   closed by us, not yet by the peer            cut after `linger_seconds`

Nothing is timed per request: `HttpServer` looks at every connection a few times a second (`check`).

The parser (llhttp) never gets more than the rest of one request: what a peer sends after it waits here, unread and with
reading paused, until the answer is out. So nothing is ever queued, and a bad request cannot spoil the answer before it.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import structlog
from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from daemon.api.answers import Answer
from daemon.api.cork import Cork
from daemon.api.framing import Unreadable, check_line, length_of_body
from daemon.api.headers import SAFETY, made_up_id
from daemon.api.problems import plain_problem

log = structlog.get_logger(__name__)

LOG_EVERY = 60.0

BLANK_LINE = b"\r\n\r\n"
"""Ends every head and every chunked body."""


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """`per_address` has to leave room for a shop's tills behind one address; `total` stays below the descriptors a
    process may hold."""

    idle_seconds: float = 75.0
    header_seconds: float = 10.0
    stall_seconds: float = 10.0
    body_seconds: float = 30.0
    write_seconds: float = 30.0
    linger_seconds: float = 5.0
    per_address: int = 250
    total: int = 800
    header_bytes: int = 16 * 1024


class Census:
    """How many connections there are, and from where."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._by_address: Counter[str] = Counter()
        self._total = 0
        self._told_at = float("-inf")

    def enter(self, address: str, now: float) -> bool:
        if self._total >= self._limits.total or self._by_address[address] >= self._limits.per_address:
            if now - self._told_at > LOG_EVERY:
                self._told_at = now
                log.warning("connections.refused", address=address, open=self._total)
            return False
        self._by_address[address] += 1
        self._total += 1
        return True

    def leave(self, address: str) -> None:
        self._total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


class Phase(Enum):
    IDLE = auto()
    HEADERS = auto()
    BODY = auto()
    WORKING = auto()
    WRITING = auto()
    CLOSING = auto()


class Connection(HttpToolsProtocol):
    def __init__(self, *args: Any, limits: ConnectionLimits, census: Census, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = HttpRequestParser(self)  # without uvicorn's leniencies
        self._limits = limits
        self._census = census
        self._counted: str | None = None
        self._ended = False
        self._unasked = False
        self._fault: Unreadable | None = None
        self._buffer, self._at = b"", 0  # all before `_at` is parsed; three such bytes stay, for a split BLANK_LINE
        self._arriving = Phase.IDLE  # WORKING: nothing is, until the answer is out
        self._missing: int | None = 0  # bytes of the body; None when it is chunked
        self._loose = 0  # bytes of a head, or of a chunked body's framing, that have come to nothing yet
        self._phase = Phase.IDLE
        self._request: RequestResponseCycle | None = None
        self._since = self._received_at = self._drained_at = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.transport = self._cork = Cork(transport, self.loop)
        address = self.client[0] if self.client else ""
        if self._census.enter(address, self.loop.time()):
            self._counted = address
        else:
            self._refuse(429, "too many connections are open", ((b"retry-after", b"5"),))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._counted is not None:
            self._census.leave(self._counted)
            self._counted = None

    def data_received(self, data: bytes) -> None:
        self._received_at = self.loop.time()
        if not self._ended:
            self._buffer += data
            self._parse()

    def _parse(self) -> None:
        while self._at < len(self._buffer) and not self._ended and not self.transport.is_closing():
            if self._arriving is Phase.WORKING:
                self.flow.pause_reading()
                return
            try:
                self._feed(self._next_piece())
            except Unreadable as fault:
                self._refuse(fault.status, fault.detail)
        self._buffer = self._buffer[-3:]
        self._at = len(self._buffer)

    def _next_piece(self) -> bytes:
        """What surely belongs to one request: up to the next place where it may be at its end. Of a head and of chunks never
        more than a head may have, as they are counted by the piece."""
        start, end = self._at, len(self._buffer)
        if self._arriving is Phase.BODY and self._missing is not None:
            end = min(end, start + self._missing)
            self._missing -= end - start
        else:
            blank = self._buffer.find(BLANK_LINE, max(start - 3, 0))
            end = min(blank + len(BLANK_LINE) if blank >= 0 else end, start + self._limits.header_bytes)
            self._loose += end - start
        self._at = end
        return self._buffer[start:end]

    def _feed(self, piece: bytes) -> None:
        """Unreadable when it is no HTTP, or not such as we take; the callbacks below are called from here."""
        if self._arriving is not Phase.BODY:
            self._check_loose()
        upgrade = False
        try:
            self.parser.feed_data(piece)
        except HttpParserUpgrade:
            upgrade = True
        except HttpParserError as error:
            if self._fault is None and isinstance(error, HttpParserCallbackError):
                raise  # a defect of ours
            raise self._fault or Unreadable(400, f"this cannot be read as HTTP: {error}") from None
        if upgrade:
            self._read_plainly()
        self._check_loose()

    def _read_plainly(self) -> None:
        """A wish for another protocol is not granted, and llhttp would take the body for that protocol: the same head without it."""
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = HttpRequestParser(self)
        self._loose = 0
        self._feed(b"\r\n".join(lines) + BLANK_LINE)

    def _check_loose(self) -> None:
        if self._loose > self._limits.header_bytes:
            raise Unreadable(431, f"the headers are larger than {self._limits.header_bytes} bytes")

    def on_message_begin(self) -> None:
        self._arriving = Phase.HEADERS
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._arriving is Phase.HEADERS:  # trailers are nobody's headers
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        try:
            self._begin(self.parser.get_method().decode(), self.parser.get_http_version())
        except Unreadable as fault:
            self._fault = fault  # the parser tells only that a callback failed
            raise

    def _begin(self, method: str, version: str) -> None:
        check_line(method, self.url, version)
        if self.parser.should_upgrade():
            return
        self._missing = length_of_body(self.headers, version)
        if version == "1.0":
            self.expect_100_continue = False  # RFC 9110, 10.1.1
        try:
            super().on_headers_complete()
        except HttpParserError:
            raise Unreadable(400, "the request target has to be a path") from None
        self._arriving = Phase.BODY
        self._loose = 0

    def on_chunk_header(self) -> None:
        self._loose = 0

    def on_body(self, body: bytes) -> None:
        self._loose = 0
        self.cycle.waiting_for_100_continue = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._arriving is Phase.BODY:  # otherwise its head is yet to be read without the upgrade
            super().on_message_complete()
            self._loose = 0
            self.cycle.waiting_for_100_continue = False
            self._arriving = Phase.IDLE if self.cycle.response_complete else Phase.WORKING

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if cycle.waiting_for_100_continue or cycle.scope["http_version"] == "1.0":
            app = functools.partial(self._carefully, cycle, app)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """The answer leaves before anything else is done: the next request's turn, the access line.

        uvicorn's timer for idle connections is not needed."""
        self._cork.flush()
        self.server_state.total_requests += 1
        if self._arriving is Phase.WORKING:
            self._arriving = Phase.IDLE
        if self._unasked:
            self._end()
        elif not self.transport.is_closing():
            self.flow.resume_reading()
            self._parse()

    def resume_writing(self) -> None:
        self._drained_at = self.loop.time()
        super().resume_writing()

    def shutdown(self) -> None:
        """The daemon stops: a request that is complete gets its answer, one that is still arriving has begun nothing."""
        if self._phase_now() is Phase.BODY:
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
        return Phase.WRITING if self.flow.write_paused else self._arriving

    def _deadline(self) -> float:
        limits, since = self._limits, self._since
        match self._phase:
            case Phase.IDLE:
                return since + limits.idle_seconds
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

    def _refuse(self, status: int, detail: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """An answer without a request that the application could give it to; the connection ends with it."""
        own_id = made_up_id()
        if self._arriving is not Phase.BODY or not self.cycle.response_started:
            self._write(plain_problem(status, detail, own_id, headers), own_id)
            log.info("request", request_id=own_id, method="", route="(none)", status=status, duration_ms=0.0)
        waiting: RequestResponseCycle | None = self.cycle
        if waiting is not None and not waiting.response_complete:
            waiting.disconnected = True
            waiting.message_event.set()
        self._end()

    def _end(self) -> None:
        """What the peer still sends is thrown away until it has seen the answer: closing at once would take it away again (RST)."""
        self._ended = True
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _write(self, answer: Answer, own_id: str) -> None:
        headers = [*answer.headers, (b"x-request-id", own_id.encode()), *SAFETY, (b"connection", b"close")]
        head = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(STATUS_LINE[answer.status] + head + b"\r\n" + answer.body)

    async def _carefully(
        self,
        cycle: RequestResponseCycle,
        app: ASGI3Application,
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> None:
        """Whether a body still comes that was announced (Expect) and answered unasked for is not known: nothing can follow it.
        And HTTP/1.0 knows no chunks: an answer without a length ends with the connection."""
        endless = False

        async def answer(message: ASGISendEvent) -> None:
            nonlocal endless
            if message["type"] == "http.response.start":
                self._unasked = cycle.waiting_for_100_continue
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

        await app(scope, receive, answer)
