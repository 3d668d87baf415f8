"""An answer as ASGI sends it: bytes that are already encoded, and nothing between them and the socket."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import TypeAlias

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
