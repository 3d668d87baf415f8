"""Pages of other origins in a browser (CORS, the Fetch standard): those that the configuration names may use the API, and only it.

Cookies are never allowed (no Access-Control-Allow-Credentials), and the shop's page, which lives by one, is not among the paths.
"""

from __future__ import annotations

from typing import Final

from litestar.types import HTTPScope, Receive, Scope, Send

from daemon.api.http.answers import Header, Headers, Reply

PATHS: Final = ("/v1/", "/health/", "/schema/")
METHODS: Final = b"GET, POST"
SENT: Final = b"Authorization, Content-Type, Idempotency-Key, X-Request-ID, Mcfd-Strict, Last-Event-ID, Accept-Language"
READ: Final = b"X-Request-ID, Idempotency-Replayed, Retry-After, Location"
REMEMBERED: Final = b"7200"
"""Seconds that a browser need not ask again; Chromium takes no more."""


class Preflight(Reply):
    """What a browser asks before it sends a key: answered before any is asked for."""

    __slots__ = ("_headers",)

    def __init__(self, *, private_network: bool) -> None:
        self._headers: list[Header] = [
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", SENT),
            (b"access-control-max-age", REMEMBERED),
            *([(b"access-control-allow-private-network", b"true")] if private_network else []),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  the shape of ASGI
        await send({"type": "http.response.start", "status": 204, "headers": self._headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class CrossOrigin:
    """`origins` exactly as browsers write them; without any, no answer says anything of origins."""

    def __init__(self, origins: tuple[str, ...] = ()) -> None:
        self._origins = frozenset(origin.encode("ascii") for origin in origins)

    def headers(self, path: str, sent: Headers) -> tuple[Header, ...]:
        """For the answer to a request with the headers `sent`, whatever that answer is."""
        if not self._origins or not path.startswith(PATHS):
            return ()
        origin = self._allowed(sent)
        vary = (b"vary", b"Origin")
        if origin is None:
            return (vary,)
        return vary, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", READ)

    def preflight(self, scope: HTTPScope) -> Preflight | None:
        """None when it is none, or of an origin that is not allowed: then it is a request like any other."""
        if scope["method"] != "OPTIONS" or not self._origins or not scope["path"].startswith(PATHS):
            return None
        names = {name for name, _ in scope["headers"]}
        if b"access-control-request-method" not in names or self._allowed(scope["headers"]) is None:
            return None
        return Preflight(private_network=b"access-control-request-private-network" in names)

    def _allowed(self, sent: Headers) -> bytes | None:
        origins = [value for name, value in sent if name == b"origin"]
        return origins[0] if len(origins) == 1 and origins[0] in self._origins else None
