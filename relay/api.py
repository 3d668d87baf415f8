"""HTTP: `/v1/mcf/{nim}/…` of every NIM, passed on and answered by its box."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import Counter
from typing import Any, Final
from urllib.parse import quote

import msgspec
import structlog
from litestar import Litestar, Request, Response, get, route
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from common.language import Text
from common.wire.call import LATER_SECONDS, METHOD, MOST_BODY, REQUEST_HEADERS, Headers, RelayedCall, check_call
from common.wire.closure import NIM
from common.wire.errors import BadEvent
from common.wire.instants import instant_millis
from relay.boxes import Boxes
from relay.connection import Connection
from relay.later import LaterCalls, may_wait
from relay.problems import BoxOffline, RelayProblem, TooManyCalls, answer_of, new_request_id

log = structlog.get_logger(__name__)

AnyRequest = Request[Any, Any, Any]

AT_ONCE: Final = 2000
"""Requests that this relay has under way: each may hold a body."""
BODY_SECONDS: Final = 30.0
NOT_PASSED: Final = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})
_PRINTABLE_ID: Final = re.compile(r"[ -~]{1,128}", re.ASCII)
_KEY_ID: Final = re.compile(r'keyid="([0-9a-f]{16})"')
_TITLES: Final = {
    400: ("BAD_REQUEST", Text("The request cannot be read")),
    404: ("NOT_FOUND", Text("Not found")),
    405: ("METHOD_NOT_ALLOWED", Text("The method is not allowed here")),
    408: ("REQUEST_TIMEOUT", Text("The request took too long to arrive")),
    413: ("TOO_LARGE", Text("The body is too large")),
}


class RelayParts(msgspec.Struct):
    connection: Connection
    boxes: Boxes
    later: LaterCalls
    counted: Counter[str] = msgspec.field(default_factory=Counter)
    """Answers by status."""
    under_way: int = 0


def create_relay(parts: RelayParts) -> Litestar:
    return Litestar(
        [pass_on, live, ready, metrics],
        state=State({"parts": parts}, deep_copy=False),
        exception_handlers={RelayProblem: _problem, HTTPException: _http_problem},
        request_max_body_size=MOST_BODY,
        openapi_config=None,
        logging_config=None,
    )


@route("/v1/mcf/{nim:str}/{rest:path}", http_method=["GET", "POST", "DELETE"], status_code=200)
async def pass_on(request: AnyRequest) -> Response[bytes]:
    """The box's own answer, to the byte."""
    parts: RelayParts = request.app.state["parts"]
    began = time.perf_counter()
    request.state["request_id"] = _request_id(request)
    nim = request.path_params["nim"]
    status = 500
    if parts.under_way >= AT_ONCE:
        raise TooManyCalls
    parts.under_way += 1
    try:
        answer = await _answered(parts, request, nim)
        status = answer.status_code or status
    except RelayProblem as problem:
        status = problem.status
        raise
    except HTTPException as error:
        status = error.status_code
        raise
    finally:
        parts.under_way -= 1
        parts.counted[str(status)] += 1
        log.info(
            "request.answered",
            request_id=request.state["request_id"],
            method=request.method,
            nim=nim[:32],
            status=status,
            duration_ms=round((time.perf_counter() - began) * 1000, 1),
        )
    return answer


@get("/health/live", sync_to_thread=False)
def live() -> dict[str, str]:
    return {"status": "live"}


@get("/health/ready", sync_to_thread=False)
def ready(request: AnyRequest) -> Response[dict[str, str]]:
    """503 without a connection to NATS: a load balancer asks another one."""
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


async def _answered(parts: RelayParts, request: AnyRequest, nim: str) -> Response[bytes]:
    if not NIM.fullmatch(nim):
        raise HTTPException(status_code=404)
    call = await _call_of(request, parts.boxes.limit())
    key = request.headers.get("idempotency-key", "")
    if call.method == "POST" and not key:
        raise RelayProblem(
            400,
            "IDEMPOTENCY_KEY_REQUIRED",
            Text("An Idempotency-Key is needed"),
            Text("Idempotency-Key: has to be given with each POST through the relay"),
        )
    try:
        reply = await parts.boxes.ask(nim, call)
    except BoxOffline:
        if not may_wait(call):
            raise
        return await _defer_call(parts, request, nim, call, key)
    headers = {name: value for name, value in reply.headers if name not in NOT_PASSED}
    return Response(reply.body, status_code=reply.status, headers=headers, media_type=headers.get("content-type"))


async def _call_of(request: AnyRequest, limit: int) -> RelayedCall:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await request.body()
    except TimeoutError:
        raise HTTPException(status_code=408) from None
    scope = request.scope
    path = scope["raw_path"].decode("latin-1")
    if scope["query_string"]:
        path += f"?{scope['query_string'].decode('latin-1')}"
    call = RelayedCall(
        boot="relay",
        not_after=limit,
        sent_at=0,
        method=_METHODS[request.method],
        path=path,
        headers=_headers(request),
        body=body,
    )
    try:
        check_call(call)
    except BadEvent as error:
        status = 413 if error.field == "body" else 400
        code, title = _TITLES[status]
        raise RelayProblem(status, code, title, Text("{fault}", fault=str(error))) from None
    return call


_METHODS: Final[dict[str, METHOD]] = {"GET": "GET", "POST": "POST", "DELETE": "DELETE"}


def _headers(request: AnyRequest) -> Headers:
    sent = (
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in request.scope["headers"]
        if name.decode("latin-1") in REQUEST_HEADERS and name != b"x-request-id"
    )
    return (*sent, ("x-request-id", request.state["request_id"]))


async def _defer_call(parts: RelayParts, request: AnyRequest, nim: str, call: RelayedCall, key: str) -> Response[bytes]:
    """202 for a sale that waits for its box."""
    now = parts.boxes.millis()
    try:
        text = request.headers.get("mcfd-not-after")
        not_after = instant_millis(text, "Mcfd-Not-After") if text else now + LATER_SECONDS * 1000
    except BadEvent as error:
        raise RelayProblem(
            422, "INVALID_REQUEST", Text("The request cannot be accepted"), Text("{fault}", fault=str(error))
        ) from None
    if not_after <= now:
        raise RelayProblem(
            410,
            "REQUEST_EXPIRED",
            Text("The request came too late"),
            Text("the time that was given for this request is over; nothing was sent to the machine"),
        )
    try:
        await parts.later.keep(nim, call, _key_id(request), key, not_after)
    except KeyError:
        raise RelayProblem(
            409,
            "IDEMPOTENCY_KEY_REUSED",
            Text("The Idempotency-Key stands for another request"),
            Text("this Idempotency-Key was used for another request"),
        ) from None
    headers = {
        "location": f"/v1/mcf/{nim}/requests/{quote(key, safe='')}",
        "preference-applied": "respond-async",
        "x-request-id": request.state["request_id"],
        "cache-control": "no-store",
    }
    return Response(
        msgspec.json.encode({"status": "waiting"}), status_code=202, headers=headers, media_type="application/json"
    )


def _key_id(request: AnyRequest) -> str:
    """As the box names the key in its presence (`common.wire.keys.LaneWord`); empty for what can be none."""
    if signed := _KEY_ID.search(request.headers.get("signature-input", "")):
        return signed[1]
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return hashlib.sha256(token.strip().encode()).hexdigest()[:16] if scheme.lower() == "bearer" else ""


def _request_id(request: AnyRequest) -> str:
    value = request.headers.get("x-request-id", "")
    return value if _PRINTABLE_ID.fullmatch(value) else new_request_id()


def _problem(request: AnyRequest, problem: RelayProblem) -> Response[bytes]:
    request_id = request.state.get("request_id") or _request_id(request)
    answer = answer_of(problem, request_id, request.headers.get("accept-language", ""))
    return Response(
        answer.body, status_code=answer.status, headers=answer.headers, media_type=answer.headers["content-type"]
    )


def _http_problem(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    code, title = _TITLES.get(error.status_code, _TITLES[400])
    problem = RelayProblem(error.status_code, code, title, title)
    return _problem(request, problem)
