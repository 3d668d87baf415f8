"""The outermost layer: request id, Host check, safety headers, access log and unexpected errors; and CORS.

Origins in the configuration may use the API from a browser (Fetch standard), without cookies (no
Access-Control-Allow-Credentials); the shop's page, which needs one, is excluded."""

import ipaddress
import re
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import structlog
from litestar.enums import ScopeType
from litestar.exceptions import ClientException
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from common.language import Language, preferred
from common.problems import request_id
from daemon.api.http.answers import SAFETY, Answer, Header, Headers, Reply
from daemon.api.problems import problem_answer
from daemon.api.refusals import Misdirected

log = structlog.get_logger(__name__)

PATHS: Final = ("/v1/", "/health/", "/schema/")
METHODS: Final = b"GET, POST, DELETE"
SENT: Final = b"Authorization, Content-Type, Idempotency-Key, X-Request-ID, Mcfd-Strict, Mcfd-Test, Prefer, Last-Event-ID, Accept-Language"
READ: Final = b"X-Request-ID, Idempotency-Replayed, Retry-After, Location, Preference-Applied"
REMEMBERED: Final = b"7200"
"""Seconds for which a browser may cache a preflight; Chromium's maximum."""

AFTERWARDS = "afterwards"
"""Key in the state of a request: functions to call at its end, however it ends."""

HUNG_UP = 499
"""Status in the access log if the client disconnected before the answer (as nginx)."""

ALWAYS_OURS = frozenset({"localhost"})
_IN_BRACKETS: Final = re.compile(r"\[([^\]]+)\](?::\d*)?")

ErrorPage: TypeAlias = Callable[[HTTPScope, Receive, Send, Exception], Awaitable[Reply | None]]
"""Makes the page for an error."""


class CrossOrigin:
    """`origins`: exactly as browsers send them; without any, answers have no CORS headers."""

    def __init__(self, origins: tuple[str, ...] = ()) -> None:
        self._origins = frozenset(origin.encode("ascii") for origin in origins)

    def headers(self, path: str, sent: Headers) -> tuple[Header, ...]:
        """CORS headers for any answer to a request with the headers `sent`."""
        if not self._origins or not path.startswith(PATHS):
            return ()
        origin = self._allowed(sent)
        vary = (b"vary", b"Origin")
        if origin is None:
            return (vary,)
        return vary, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", READ)

    def preflight(self, scope: HTTPScope) -> Answer | None:
        """The answer to a browser's preflight, which has no key; None if the request is none, or its origin is not
        allowed."""
        if scope["method"] != "OPTIONS" or not self._origins or not scope["path"].startswith(PATHS):
            return None
        names = {name for name, _ in scope["headers"]}
        if b"access-control-request-method" not in names or self._allowed(scope["headers"]) is None:
            return None
        answer, is_private = Answer(b"", status=204), b"access-control-request-private-network" in names
        answer.headers = [
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", SENT),
            (b"access-control-max-age", REMEMBERED),
            *([(b"access-control-allow-private-network", b"true")] if is_private else []),
        ]
        return answer

    def _allowed(self, sent: Headers) -> bytes | None:
        origins = [value for name, value in sent if name == b"origin"]
        return origins[0] if len(origins) == 1 and origins[0] in self._origins else None


class OuterMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        allowed_hosts: tuple[str, ...],
        cross_origin: CrossOrigin,
        error_page: ErrorPage | None = None,
    ) -> None:
        self._app = app
        self._cross_origin = cross_origin
        self._error_page = error_page
        self._names = ALWAYS_OURS | {name.lower().rstrip(".") for name in allowed_hosts}
        self._ours = lru_cache(256)(self._is_ours)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        if scope["raw_path"].endswith((b"%2F", b"%2f")):  # of a key: the router takes a slash at the end away
            scope["path"] = scope["raw_path"].decode("latin-1")
        began = time.perf_counter()
        own_id = request_id(scope["headers"])
        scope["state"]["request_id"] = own_id
        structlog.contextvars.bind_contextvars(request_id=own_id)
        finish = _Finish(send, own_id.encode(), self._cross_origin.headers(scope["path"], scope["headers"]))
        try:
            self._check_host(scope)
            await (self._cross_origin.preflight(scope) or self._app)(scope, receive, finish)
        except Exception as error:
            if finish.status:
                raise
            page = await self._error_page(scope, receive, finish, error) if self._error_page else None
            await (page or problem_answer(error, own_id, language_of(scope)))(scope, receive, finish)
        finally:
            if (afterwards := scope["state"].pop(AFTERWARDS, None)) is not None:
                afterwards()
            _access_line(scope, finish.status, began, own_id)

    def _check_host(self, scope: HTTPScope) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) > 1 or not (hosts or scope["http_version"] == "1.0"):
            raise ClientException("exactly one Host header is required")
        if hosts and not self._ours(hosts[0]):
            raise Misdirected

    def _is_ours(self, host: bytes) -> bool:
        """Whether the Host is this box. Any IP address is allowed: DNS rebinding needs a name."""
        text = host.decode("latin-1").lower()
        in_brackets = _IN_BRACKETS.fullmatch(text)
        name = in_brackets[1] if in_brackets else text.partition(":")[0]
        if "*" in self._names or name.rstrip(".") in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class _Finish:
    """Wraps `send` and adds the common headers; `status` is 0 until an answer has begun."""

    __slots__ = ("_more", "_own_id", "_send", "status")

    def __init__(self, send: Send, own_id: bytes, more: tuple[Header, ...]) -> None:
        self._send = send
        self._more = more
        self._own_id = own_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message["headers"])
            names = {name for name, _ in headers}
            headers.append((b"x-request-id", self._own_id))
            headers.extend(self._more)
            headers.extend(header for header in SAFETY if header[0] not in names)
            message["headers"] = headers
        await self._send(message)


def address_of(scope: Scope) -> str:
    """The peer's address; empty on a Unix socket."""
    client = scope["client"]
    return client[0] if client else ""


def _access_line(scope: HTTPScope, status: int, began: float, own_id: str) -> None:
    caller: dict[str, Any] = {"address": address_of(scope)}
    if visit := scope.get("auth"):
        caller |= {"nim": visit.key.nim, "mode": visit.key.mode, "key_id": visit.key.id}
    log.info(
        "request.answered",
        request_id=own_id,
        method=scope["method"],
        route=scope.get("path_template") or "(none)",
        status=status or HUNG_UP,
        duration_ms=round((time.perf_counter() - began) * 1000, 1),
        **caller,
    )


def language_of(scope: Scope) -> Language:
    """The language of the request's Accept-Language."""
    header = next((value for name, value in scope["headers"] if name == b"accept-language"), b"")
    return preferred(header.decode("latin-1"))
