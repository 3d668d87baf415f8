"""ASGI answers: complete ones of encoded bytes, and streams, sent in pieces as fast as the client reads.

A stream ends when the client disconnects or the daemon stops. A client that reads nothing for WRITE_SECONDS is
disconnected; nothing is buffered meanwhile."""

import abc
import asyncio
import contextlib
import gzip
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
import structlog
from litestar.types import HTTPScope, Receive, Scope, Send

from common.web.assets import cache_control, content, tag
from daemon.core.errors import StorageError

log = structlog.get_logger(__name__)

Header: TypeAlias = tuple[bytes, bytes]
Headers: TypeAlias = Iterable[Header]

JSON = b"application/json"
PROBLEM = b"application/problem+json"
PIECE = 64 * 1024

REPLAYED: Header = (b"idempotency-replayed", b"true")

SAFETY: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""Default headers of an answer."""
SCREEN_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'"
)

MEDIA_TYPES: Final = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
GZIP: Final = b"\x1f\x8b"
"""First bytes of gzip."""

WRITE_SECONDS: Final = 30.0


def _plain(value: object) -> str:
    if isinstance(value, str):  # a `Text`, in English
        return str(value)
    raise NotImplementedError  # what msgspec asks of a hook for a type that it does not know; it says which type that is


_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=_plain)


class Reply(abc.ABC):
    """An ASGI application as the result of a handler, which Litestar calls unchanged."""

    __slots__ = ()

    @abc.abstractmethod
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Answer(Reply):
    """A complete answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(
        self, body: bytes, *, status: int = 200, media_type: bytes = JSON, headers: tuple[Header, ...] = ()
    ) -> None:
        self.status = status
        self.body = body
        self.headers: list[Header] = [
            (b"content-type", media_type),
            (b"content-length", b"%d" % len(body)),
            *headers,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  the shape of ASGI
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        whole = len(self.body)
        # A large one waits for its reader piece by piece, and not in a buffer for each.
        for at in range(0, whole, PIECE):
            more = at + PIECE < whole
            await send({"type": "http.response.body", "body": self.body[at : at + PIECE], "more_body": more})
        if not whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def encoded(value: object, *, status: int = 200, replayed: bool = False) -> Answer:
    return sent(_encoder.encode(value), status=status, replayed=replayed)


def sent(body: bytes, *, status: int = 200, replayed: bool = False) -> Answer:
    """An answer of encoded JSON, as a stored closure."""
    return Answer(body, status=status, headers=(REPLAYED,) if replayed else ())


def static_file(scope: HTTPScope, package: str, name: str, *more: Header) -> Answer:
    """The file `name` of `package`; `name` must not come from a request."""
    headers = scope["headers"]
    accepted = b",".join(value for key, value in headers if key == b"accept-encoding")
    body = _packed(package, name) if b"gzip" in accepted else content(package, name)
    etag = b'"%s"' % tag(body).encode()
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    cache_headers: tuple[Header, ...] = (
        (b"etag", etag),
        (b"cache-control", cache_control(content(package, name), scope["query_string"]).encode()),
        (b"vary", b"accept-encoding"),
        *(((b"content-encoding", b"gzip"),) if body[:2] == GZIP else ()),
        *more,
    )
    if (b"if-none-match", etag) in headers:
        return Answer(b"", status=304, media_type=media_type, headers=cache_headers)
    return Answer(body, media_type=media_type, headers=cache_headers)


@cache
def _packed(package: str, name: str) -> bytes:
    return gzip.compress(content(package, name), mtime=0)


class StreamRevoked(Exception):
    """The key or session of a stream has ended; the stream is aborted, so that it does not look complete."""


class Stream(Reply):
    """A streamed answer. The stop ends an `endless` one; any other is aborted, so that it looks incomplete."""

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
                except StreamRevoked:
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
                raise StreamRevoked
            await _write(send, piece)


async def _write(send: Send, piece: bytes) -> None:
    """Sends a piece; TimeoutError if the client does not read."""
    async with asyncio.timeout(WRITE_SECONDS):
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def while_waited_for(work: Coroutine[Any, Any, Any], *ends: Coroutine[Any, Any, Any]) -> bool:
    """Runs `work` until it or one of `ends` is over; returns whether `work` came to its end."""
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
