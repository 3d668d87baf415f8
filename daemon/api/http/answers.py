"""An answer as ASGI sends it: bytes that are already encoded, and nothing between them and the socket."""

from __future__ import annotations

import abc
import gzip
import hashlib
import itertools
import re
import secrets
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final, TypeAlias

import msgspec
from litestar.types import Receive, Scope, Send

Header: TypeAlias = tuple[bytes, bytes]
Headers: TypeAlias = Iterable[Header]

JSON = b"application/json"
PROBLEM = b"application/problem+json"
PIECE = 64 * 1024

REPLAYED: Header = (b"idempotency-replayed", b"true")


def _plain(value: object) -> str:
    if isinstance(value, str):  # a `Text`, in English
        return str(value)
    raise NotImplementedError  # what msgspec asks of a hook for a type that it does not know; it says which type that is


_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=_plain)


class Reply(abc.ABC):
    """Litestar passes whatever is an ASGI application through as it is, so a handler returns one of these."""

    __slots__ = ()

    @abc.abstractmethod
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Answer(Reply):
    """One that is whole."""

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
    """JSON that is bytes already, as a stored closure."""
    return Answer(body, status=status, headers=(REPLAYED,) if replayed else ())


MAX_REQUEST_ID: Final = 128

SAFETY: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""Unless the answer brings its own."""

_PRINTABLE_ID = re.compile(rb"[ -~]{1,%d}" % MAX_REQUEST_ID)
_start = secrets.token_hex(6)
_numbers = itertools.count(1)


def request_id(headers: Headers) -> str:
    """The client's own, when it can be printed (decision 7); otherwise one of ours."""
    for name, value in headers:
        if name == b"x-request-id" and _PRINTABLE_ID.fullmatch(value):
            return value.decode("ascii")
    return new_request_id()


def new_request_id() -> str:
    """Not to be found twice in the logs of a box: random at each start, then counted."""
    return f"{_start}-{next(_numbers):x}"


MEDIA_TYPES: Final = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
GZIP: Final = b"\x1f\x8b"
"""How compressed bytes begin."""


def static_file(headers: Headers, package: str, name: str, *more: Header) -> Answer:
    """`headers` are the request's; `name` is one that the caller knows, never one from outside."""
    accepted = b",".join(value for key, value in headers if key == b"accept-encoding")
    body, tag = _read(package, name, packed=b"gzip" in accepted)
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    kept: tuple[Header, ...] = (
        (b"etag", tag),
        (b"cache-control", b"private, max-age=3600"),
        (b"vary", b"accept-encoding"),
        *(((b"content-encoding", b"gzip"),) if body[:2] == GZIP else ()),
        *more,
    )
    if (b"if-none-match", tag) in headers:
        return Answer(b"", status=304, media_type=media_type, headers=kept)
    return Answer(body, media_type=media_type, headers=kept)


@cache
def _read(package: str, name: str, *, packed: bool) -> tuple[bytes, bytes]:
    body = files(package).joinpath("static", name).read_bytes()
    if packed:
        body = gzip.compress(body, mtime=0)
    return body, b'"%s"' % hashlib.sha256(body).hexdigest()[:16].encode()
