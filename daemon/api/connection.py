"""One TCP connection with a deadline for every phase: uvicorn has none for a slow header, a slow body or a slow reader.

    IDLE      no byte of a request yet                     closed after `idle_seconds`
    HEADERS   some bytes, not yet a whole head             408 after `header_seconds`
    BODY      a head, not yet the whole body               408 after `body_seconds`, or `stall_seconds` without a byte
    WORKING   the request is complete, its answer is not   no deadline: the use cases have their own patience
    WRITING   the peer does not read what was answered     cut after `write_seconds` without progress
    CLOSING   closed by us, not yet by the peer            cut after `linger_seconds`

Nothing is timed per request: `HttpServer` looks at every connection a few times a second (`check`).
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from daemon.api.answers import Answer
from daemon.api.cork import Cork
from daemon.api.headers import SAFETY, made_up_id
from daemon.api.problems import plain_problem

log = structlog.get_logger(__name__)

LOG_EVERY = 60.0


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


class Connection(H11Protocol):
    def __init__(self, *args: Any, limits: ConnectionLimits, census: Census, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._census = census
        self._counted: str | None = None
        self._refused = False
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

    def on_response_complete(self) -> None:
        """The answer leaves before anything else is done: the next request's turn, the access line."""
        self._cork.flush()
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        self._received_at = self.loop.time()
        if not self._refused:
            super().data_received(data)

    def resume_writing(self) -> None:
        self._drained_at = self.loop.time()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What h11 could not read; called where its error is being handled."""
        fault = sys.exc_info()[1]
        status = 431 if getattr(fault, "error_status_hint", 400) == 431 else 400  # noqa: PLR2004  h11's own hint
        self._refuse(status, msg)

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
        if self._refused or self.transport.is_closing():
            return Phase.CLOSING
        if self.flow.write_paused:
            return Phase.WRITING
        if self.conn.their_state is h11.SEND_BODY:
            return Phase.BODY
        if self.conn.their_state is h11.IDLE:
            return Phase.HEADERS if self.conn.trailing_data[0] else Phase.IDLE
        return Phase.WORKING

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
        """An answer without a request that the application could give it to; the connection ends with it.

        What the peer still sends is thrown away until it has seen the answer: closing at once would take it away again (RST)."""
        self._refused = True
        own_id = made_up_id()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = plain_problem(status, detail, own_id, headers)
            self._write(answer, own_id)
            log.info("request", request_id=own_id, method="", route="(none)", status=status, duration_ms=0.0)
        waiting: RequestResponseCycle | None = self.cycle
        if waiting is not None and not waiting.response_complete:
            waiting.disconnected = True
            waiting.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _write(self, answer: Answer, own_id: str) -> None:
        headers = [*answer.headers, (b"x-request-id", own_id.encode()), *SAFETY, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=answer.status, headers=headers),
            h11.Data(data=answer.body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
