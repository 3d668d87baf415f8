"""The HTTP application: who answers what; and what goes wrong in a request, as programs and people read it (decision 11)."""

from __future__ import annotations

import errno
import functools
from collections.abc import Mapping
from copy import copy
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
import structlog
from litestar import Litestar, Request, Response, Router, get
from litestar.datastructures import Cookie, State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.response import Redirect
from litestar.types import Message, Scope

from common.language import Text
from common.problems import problem_content, request_id
from common.web.security import COOKIE_SECONDS, return_url
from common.wire.errors import BadEvent
from common.wire.joining import JoinRefusal
from common.wire.signing import NotSigned
from headquarters.api import routes
from headquarters.core.reception import MessageRefused, Reason
from headquarters.intake.joining import JoinService, JoinTerms, TooManyGuesses
from headquarters.intake.reception import Reception, Threads
from headquarters.page import entrance, findings, totals
from headquarters.page.shared import FOREIGN, NOT_PERMITTED, RETURN_COOKIE, NoSession, Screens, admit
from headquarters.store.database import BadContent, StoreError
from headquarters.store.joining import JoinRefused
from headquarters.store.store import HqStore

STATUS: Final[dict[Reason, int]] = {
    "malformed": 400,
    "oversized": 413,
    "unsigned": 401,
    "unknown": 401,
    "foreign": 401,
    "time": 425,
    "fork": 422,
}
"""What a box makes of them: 400, 413 and 422 are wrong for ever, the others are tried again (docs/upstream.md)."""
JOIN: Final[dict[JoinRefusal, tuple[int, str]]] = {
    "CODE_UNKNOWN": (403, "no such code was given here"),
    "CODE_USED": (409, "another box has joined with this code"),
    "CODE_EXPIRED": (410, "the code has ended; headquarters gives another one"),
    "OTHER_MACHINES": (422, "the code is for other machines"),
    "KEY_REVOKED": (409, "the key of this box is revoked; it makes another one"),
}
CODES: Final = {
    400: "BAD_REQUEST",
    401: "UNAUTHENTICATED",
    403: "NOT_PERMITTED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "TOO_LARGE",
    422: "INVALID_REQUEST",
}
NOT_FOUND: Final = Text("There is nothing at this address.")


class ErrorAnswer(NamedTuple):
    """`words` are for people."""

    status: int
    code: str
    detail: str
    headers: Mapping[str, str] = {}
    words: Text = NOT_FOUND


def problem_of(error: Exception) -> ErrorAnswer:
    match error:
        case MessageRefused(reason=reason) if STATUS[reason] == STATUS["unsigned"]:
            # Whether a NIM is known here is not disclosed to a stranger.
            problem = ErrorAnswer(401, "UNAUTHENTICATED", "no signature of a key that is known for this NIM")
        case MessageRefused(reason=reason):
            problem = ErrorAnswer(STATUS[reason], reason.upper(), str(error))
        case JoinRefused(reason=reason, machines=machines):
            status, detail = JOIN[reason]
            problem = ErrorAnswer(status, reason, f"{detail}: {', '.join(machines)}" if machines else detail)
        case TooManyGuesses(seconds=seconds):
            problem = ErrorAnswer(429, "TOO_MANY_REQUESTS", str(error), {"Retry-After": str(seconds)})
        case NotSigned() | BadEvent():
            status = 401 if isinstance(error, NotSigned) else 400
            problem = ErrorAnswer(status, CODES[status], str(error))
        case BadContent():  # a NUL, which PostgreSQL takes in no text: to try again would not help
            problem = ErrorAnswer(400, "BAD_REQUEST", "a text has a character that cannot be kept")
        case StoreError():
            words = Text("The database does not answer; try again.")
            problem = ErrorAnswer(
                503, "STORAGE_UNAVAILABLE", "nothing was kept; try again", {"Retry-After": "5"}, words
            )
        case OSError(errno=errno.ENOSPC):
            words = Text("No room is left on the disk of headquarters.")
            problem = ErrorAnswer(507, "STORAGE_FULL", "no room is left on the disk", words=words)
        case HTTPException(status_code=status, detail=detail):
            words = next((text for text in (FOREIGN, NOT_PERMITTED) if detail == text), NOT_FOUND)
            problem = ErrorAnswer(status, CODES.get(status, CODES[400]), detail, error.headers or {}, words)
        case _:
            words = Text("A fault of headquarters; it is in the log.")
            problem = ErrorAnswer(500, "INTERNAL_ERROR", "a fault of headquarters; it is in the log", words=words)
    return problem


log = structlog.get_logger(__name__)

AnyRequest = Request[Any, Any, Any]
ENTRANCE = (entrance.login_form, entrance.login, entrance.choose_language, entrance.static)
SCREENS = (
    entrance.logout,
    *(totals.calendar, totals.shop, totals.closure),
    *(findings.ledger, findings.accept),
    *(totals.totals, totals.exports, totals.closures_csv),
    *(findings.findings, findings.say, findings.boxes, findings.join_form, findings.make_code, findings.revoke),
    *(findings.people, findings.add_person, findings.disable),
)
MOST_OF_A_FORM = 16 * 1024
"""Bytes: of a megabyte of fields the parser makes a second of the loop, for any client. Closures bound themselves."""


@get("/", status_code=303, sync_to_thread=False)
def root() -> Redirect:
    return Redirect("/ui/", status_code=303)


@get("/health/live", sync_to_thread=False)
def live() -> dict[str, str]:
    return {"status": "live"}


@get("/health/ready")
async def ready(store: HqStore, threads: Threads) -> Response[dict[str, str]]:
    """503 while the database cannot be used."""
    try:
        await threads.run(store.register.revision)
    except StoreError:
        return Response({"status": "storage unavailable"}, status_code=503)
    return Response({"status": "ready"})


@get("/metrics", media_type="text/plain", sync_to_thread=False)
def metrics(reception: Reception) -> str:
    """Since the start of this instance, by outcome or reason; what a Prometheus server adds up over instances."""
    lines = ["# TYPE mcfd_hq_messages_total counter"]
    lines += [
        f'mcfd_hq_messages_total{{outcome="{name}"}} {count}' for name, count in sorted(reception.counted.items())
    ]
    return "\n".join([*lines, ""])


def create_service(
    store: HqStore, threads: Threads, reception: Reception, screens: Screens, terms: JoinTerms | None = None
) -> Litestar:
    """`terms`: the answer to boxes that join; left out, closures over HTTPS."""
    service = copy(drawn_routes())
    parts = {"store": store, "threads": threads, "reception": reception, "screens": screens, "zone": screens.zone}
    parts["joining"] = JoinService(store, threads, terms or JoinTerms(), is_direct=screens.is_secure)
    service.state = State(parts, deep_copy=False)
    return service


@functools.cache
def drawn_routes() -> Litestar:
    """An application without a state, so that each of a process is a copy with its own: drawing the routes is most of what one costs."""
    return Litestar(
        [
            *(routes.take_closure, routes.take_presence, routes.join),
            *(routes.closures, routes.findings, routes.see, routes.solve),
            *(root, live, ready, metrics),
            *ENTRANCE,
            Router("/", route_handlers=SCREENS, guards=[admit]),
        ],
        dependencies={
            name: _dependency(name) for name in ("store", "threads", "reception", "screens", "zone", "joining")
        },
        exception_handlers={NoSession: _to_login, Exception: _problem},
        before_send=[_with_id],
        request_max_body_size=MOST_OF_A_FORM,
        openapi_config=None,
        logging_config=None,
    )


def _dependency(name: str) -> Provide:
    def provide(request: AnyRequest) -> Any:
        return request.app.state[name]

    return Provide(provide, sync_to_thread=False)


def _to_login(request: AnyRequest, error: NoSession) -> Redirect:
    url = quote(return_url(request), safe="")
    back = Cookie(RETURN_COOKIE, "/ui/login", url, COOKIE_SECONDS, httponly=True, samesite="strict")
    path = "/ui/login" if request.method == "GET" else "/ui/login?ended=1"
    screens: Screens = request.app.state["screens"]
    headers = {"set-cookie": screens.typed_cookie(error.typed)} if error.typed else {}
    return Redirect(path, status_code=303, cookies=[back], headers=headers)


def _problem(request: AnyRequest, error: Exception) -> Response[bytes]:
    """To people on a page of their own, to programs as a document."""
    status, code, detail, headers, words = problem_of(error)
    own_id = _id_of(request.scope)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request.failed", path=request.url.path, request_id=own_id, exc_info=error)
    if request.url.path.startswith("/ui"):
        screens: Screens = request.app.state["screens"]
        return screens.render(request, "error.html", status=status, problem=words)
    content = problem_content(status, code, code.replace("_", " ").capitalize(), detail, own_id)
    body = msgspec.json.encode(content)
    return Response(body, status_code=status, media_type="application/problem+json", headers=headers)


async def _with_id(message: Message, scope: Scope) -> None:
    """On every answer."""
    if message["type"] == "http.response.start":
        message["headers"] = [*message["headers"], (b"x-request-id", _id_of(scope).encode())]


def _id_of(scope: Scope) -> str:
    state = scope["state"]
    if "request_id" not in state:
        state["request_id"] = request_id(scope["headers"])
    return str(state["request_id"])
