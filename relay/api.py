"""HTTP front of the relay: passes `/v1/mcf/{nim}/…` on to the box of that NIM and returns the box's answer."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote, unquote

import msgspec
import structlog
from litestar import Litestar, Request, Response, get
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.types import HTTPScope

from common.http_server import IS_HEAD, App, Receive, Scope, Send
from common.language import Text
from common.problems import request_id
from common.wire.call import (
    LATER_SECONDS,
    LIMIT_PASSED,
    MAX_BODY,
    METHOD,
    REQUEST_HEADERS,
    Headers,
    RelayedCall,
    check_call,
    key_id_of,
)
from common.wire.closure import NIM
from common.wire.errors import BadEvent
from common.wire.instants import instant_millis, instant_text
from relay.boxes import Boxes
from relay.connection import Connection
from relay.later import LaterCalls, may_wait
from relay.problems import (
    NOT_ALLOWED,
    PROBLEM,
    BoxOffline,
    RelayAnswer,
    RelayProblem,
    RequestRefused,
    TooManyCalls,
    answer_of,
)

log = structlog.get_logger(__name__)

AnyRequest = Request[Any, Any, Any]

AT_ONCE: Final = 2000
"""Concurrent requests of this relay; each may contain a body in memory."""
BODY_SECONDS: Final = 30.0
NOT_PASSED: Final = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})
TOO_LARGE: Final = Text("the body is larger than {max_body} bytes", max_body=MAX_BODY)
NO_INSTANT: Final = Text("has to be a time in UTC, as 2026-11-25T10:00:00Z")
MAX_DIGITS: Final = 20
BODILESS: Final = frozenset({204, 304})
_PATH: Final = re.compile(r"/v1/mcf/([^/]+)/.+")
_METHODS: Final[dict[str, METHOD]] = {"GET": "GET", "POST": "POST", "DELETE": "DELETE"}
_TITLES: Final = {
    400: ("BAD_REQUEST", Text("The request cannot be read")),
    404: ("NOT_FOUND", Text("Not found")),
    405: (NOT_ALLOWED, Text("The method is not allowed here")),
    408: ("REQUEST_TIMEOUT", Text("The request took too long to arrive")),
    413: ("TOO_LARGE", Text("The body is too large")),
    500: ("INTERNAL_ERROR", Text("Internal error")),
}


class RelayParts(msgspec.Struct):
    connection: Connection
    boxes: Boxes
    later: LaterCalls
    counted: Counter[str] = msgspec.field(default_factory=Counter)
    """Answers by status."""
    under_way: int = 0


def create_relay(parts: RelayParts) -> App:
    own = Litestar(
        [live, ready, metrics],
        state=State({"parts": parts}, deep_copy=False),
        exception_handlers={HTTPException: _http_problem},
        openapi_config=None,
        logging_config=None,
    )

    async def relay(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/v1/mcf/"):
            await pass_on(parts, scope, receive, send)
        else:
            await own(cast("Any", scope), receive, cast("Any", send))

    return relay


async def pass_on(parts: RelayParts, scope: Scope, receive: Receive, send: Send) -> None:
    """Returns the box's answer byte for byte. Plain ASGI, because Litestar's routing, requests and responses cost more
    time than the round trip to the box."""
    began = time.perf_counter()
    request = RelayRequest(cast("HTTPScope", scope))
    status = 500
    try:
        answer = await _answered(parts, request, receive)
        status = answer.status
    finally:
        parts.counted[str(status)] += 1
        log.info(
            "request.answered",
            request_id=request.id,
            method=request.method,
            nim=request.nim[:32],
            status=status,
            duration_ms=round((time.perf_counter() - began) * 1000, 1),
        )
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    if status not in BODILESS:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


@get("/health/live", sync_to_thread=False)
def live() -> dict[str, str]:
    return {"status": "live"}


@get("/health/ready", sync_to_thread=False)
def ready(request: AnyRequest) -> Response[dict[str, str]]:
    """503 without a connection to NATS, so that a load balancer selects another relay."""
    parts: RelayParts = request.app.state["parts"]
    if not parts.connection.is_open:
        return Response({"status": "NATS unavailable"}, status_code=503)
    return Response({"status": "ready"})


@get("/metrics", media_type="text/plain", sync_to_thread=False)
def metrics(request: AnyRequest) -> str:
    parts: RelayParts = request.app.state["parts"]
    lines = ["# TYPE mcfd_relay_answers_total counter"]
    lines += [
        f'mcfd_relay_answers_total{{status="{status}"}} {count}' for status, count in sorted(parts.counted.items())
    ]
    lines += ["# TYPE mcfd_relay_requests_under_way gauge", f"mcfd_relay_requests_under_way {parts.under_way}"]
    return "\n".join([*lines, ""])


class RelayRequest:
    """Request line and headers, before the body. `nim` is empty if the path contains none; `headers` has the last
    value of each name."""

    def __init__(self, scope: HTTPScope) -> None:
        # A HEAD does not pass: the relay does not know what the box records as given out.
        self.method: str = "HEAD" if IS_HEAD in scope.get("state", ()) else scope["method"]
        self.path = scope["raw_path"].decode("latin-1")
        found = _PATH.fullmatch(self.path)
        self.nim = unquote(found[1]) if found else ""
        if scope["query_string"]:
            self.path += f"?{scope['query_string'].decode('latin-1')}"
        decoded = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        self.headers = dict(decoded)
        self.id = request_id(scope["headers"])
        passing = (header for header in decoded if header[0] in REQUEST_HEADERS and header[0] != "x-request-id")
        self.passing: Headers = (*passing, ("x-request-id", self.id))


async def _answered(parts: RelayParts, request: RelayRequest, receive: Receive) -> RelayAnswer:
    if parts.under_way >= AT_ONCE:
        return answer_of(TooManyCalls(), request.id, request.headers)
    parts.under_way += 1
    try:
        return await _passed_on(parts, request, receive)
    except RelayProblem as problem:
        return answer_of(problem, request.id, request.headers)
    except Exception:
        log.exception("request.failed", request_id=request.id)
        return answer_of(_fault(500), request.id, request.headers)
    finally:
        parts.under_way -= 1


async def _passed_on(parts: RelayParts, request: RelayRequest, receive: Receive) -> RelayAnswer:
    if not NIM.fullmatch(request.nim):
        raise _fault(404)
    method = _METHODS.get(request.method)
    if method is None:
        raise _fault(405)
    call = RelayedCall(
        boot="relay",
        not_after=parts.boxes.limit(),
        sent_at=0,
        method=method,
        path=request.path,
        headers=request.passing,
        body=await _body(receive, request.headers),
    )
    try:
        check_call(call)
    except BadEvent as error:
        raise _fault(413 if error.field == "body" else 400, Text("{fault}", fault=error)) from None
    key = request.headers.get("idempotency-key", "")
    if method == "POST" and not key:
        raise RequestRefused(
            400,
            "IDEMPOTENCY_KEY_REQUIRED",
            Text("An Idempotency-Key is needed"),
            Text("Idempotency-Key: has to be given with each POST through the relay"),
        )
    try:
        reply = await parts.boxes.ask(request.nim, call)
    except BoxOffline:
        if not may_wait(call):
            raise
        return await _deferred(parts, request, call, key)
    return RelayAnswer(reply.status, tuple(each for each in reply.headers if each[0] not in NOT_PASSED), reply.body)


async def _body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    """Raises 413 at once if Content-Length is too large, without reading the body."""
    length = headers.get("content-length", "")
    if not length and "transfer-encoding" not in headers:
        return b""
    if length.isdecimal() and int(length[:MAX_DIGITS]) > MAX_BODY:
        raise _fault(413, TOO_LARGE)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":  # the client has gone
                    raise _fault(400)
                body += message["body"]
                if len(body) > MAX_BODY:
                    raise _fault(413, TOO_LARGE)
                if not message["more_body"]:
                    return bytes(body)
    except TimeoutError:
        raise _fault(408) from None


def _fault(status: int, fault: Text | None = None) -> RelayProblem:
    code, title = _TITLES.get(status, _TITLES[400])
    return RequestRefused(status, code, title, fault or title)


async def _deferred(parts: RelayParts, request: RelayRequest, call: RelayedCall, key: str) -> RelayAnswer:
    """Queues the sale for a box that is off. Returns 202."""
    now = parts.boxes.millis()
    try:
        text = request.headers.get("mcfd-not-after")
        not_after = instant_millis(text, "Mcfd-Not-After") if text else now + LATER_SECONDS * 1000
    except BadEvent as error:
        title = Text("The request cannot be accepted")
        detail = Text("{name}: {found}", name=error.field, found=NO_INSTANT)
        raise RequestRefused(422, "INVALID_REQUEST", title, detail, (error.field, NO_INSTANT)) from None
    if not_after <= now:
        raise RequestRefused(
            410,
            "REQUEST_EXPIRED",
            Text("The request came too late"),
            LIMIT_PASSED(limit=instant_text(not_after), now=instant_text(now)),
        )
    try:
        await parts.later.store(request.nim, call, key_id_of(request.headers), key, not_after)
    except KeyError:
        raise RequestRefused(
            409,
            "IDEMPOTENCY_KEY_REUSED",
            Text("The Idempotency-Key stands for another request"),
            Text("this Idempotency-Key was used for another request"),
        ) from None
    headers = {
        "content-type": "application/json",
        "location": f"/v1/mcf/{request.nim}/requests/{quote(key, safe='')}",
        "preference-applied": "respond-async",
        "x-request-id": request.id,
        "cache-control": "no-store",
    }
    return RelayAnswer(202, tuple(headers.items()), b'{"status":"waiting"}')


def _http_problem(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """Litestar's own errors, for paths that are not relayed."""
    answer = answer_of(_fault(error.status_code), request_id(request.scope["headers"]), request.headers)
    own = {name.lower(): value for name, value in (error.headers or {}).items()}
    return Response(answer.body, status_code=answer.status, headers={**dict(answer.headers), **own}, media_type=PROBLEM)
