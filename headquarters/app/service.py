"""The HTTP application: who answers what, and how errors look."""

from __future__ import annotations

import functools
from copy import copy
from typing import Any

import structlog
from litestar import Litestar, Request, Response, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.response import Redirect

from common.language import Text
from common.web.security import return_cookie, return_url
from headquarters.api import incoming, questions
from headquarters.api.access import problem
from headquarters.intake.gather import Threads
from headquarters.intake.joining import JoinService, JoinTerms
from headquarters.intake.reception import Reception
from headquarters.page import entrance, findings, totals
from headquarters.page.shared import FOREIGN, NOT_PERMITTED, RETURN_COOKIE, NoSession, Screens
from headquarters.store.database import BadContent, StoreError
from headquarters.store.store import HqStore

log = structlog.get_logger(__name__)

AnyRequest = Request[Any, Any, Any]
PAGE = (
    *(entrance.login_form, entrance.login, entrance.logout, entrance.choose_language, entrance.static),
    *(totals.calendar, totals.shop, totals.closure),
    *(findings.ledger, findings.accept),
    *(totals.totals, totals.exports, totals.closures_csv),
    *(findings.findings, findings.say, findings.boxes, findings.join_form, findings.make_code, findings.revoke),
    *(findings.people, findings.add_person, findings.disable),
)
NOT_FOUND = Text("There is nothing at this address.")
MOST_OF_A_FORM = 16 * 1024
"""Bytes: of a megabyte of fields the parser makes a second of the loop, for any client. Closures bound themselves."""
CODES = {
    400: "BAD_REQUEST",
    401: "UNAUTHENTICATED",
    403: "NOT_PERMITTED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "TOO_LARGE",
    422: "INVALID_REQUEST",
}


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
            *(incoming.take_closure, incoming.take_presence, incoming.join),
            *(questions.closures, questions.findings, questions.see, questions.solve),
            *(root, live, ready, metrics),
            *PAGE,
        ],
        dependencies={
            name: _dependency(name) for name in ("store", "threads", "reception", "screens", "zone", "joining")
        },
        exception_handlers={
            NoSession: _to_login,
            HTTPException: _refused,
            BadContent: _not_storable,
            StoreError: _away,
            Exception: _failed,
        },
        request_max_body_size=MOST_OF_A_FORM,
        openapi_config=None,
        logging_config=None,
    )


def _dependency(name: str) -> Provide:
    def provide(request: AnyRequest) -> Any:
        return request.app.state[name]

    return Provide(provide, sync_to_thread=False)


def _to_login(request: AnyRequest, _: NoSession) -> Redirect:
    cookie = return_cookie(RETURN_COOKIE, return_url(request))
    return Redirect("/ui/login", status_code=303, headers={"set-cookie": cookie})


def _refused(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    words = next((text for text in (FOREIGN, NOT_PERMITTED) if error.detail == text), NOT_FOUND)
    code = CODES.get(error.status_code, "BAD_REQUEST")
    return _answer(request, error.status_code, words, code, error.detail, headers=dict(error.headers or {}))


def _not_storable(request: AnyRequest, _: BadContent) -> Response[bytes]:
    """A NUL, which PostgreSQL takes in no text: to try again would not help."""
    return _answer(request, 400, NOT_FOUND, "BAD_REQUEST", "a text has a character that cannot be kept")


def _away(request: AnyRequest, _: StoreError) -> Response[bytes]:
    words, headers = Text("The database does not answer; try again."), {"Retry-After": "5"}
    return _answer(request, 503, words, "STORAGE_UNAVAILABLE", "the database cannot be used now", headers=headers)


def _failed(request: AnyRequest, error: Exception) -> Response[bytes]:
    log.error("request.failed", path=request.url.path, exc_info=error)
    words = Text("A fault of headquarters; it is in the log.")
    return _answer(request, 500, words, "INTERNAL_ERROR", "a fault of headquarters; it is in the log")


def _answer(
    request: AnyRequest, status: int, words: Text, code: str, detail: str, *, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """`words` to people on a page of their own, the rest to programs."""
    if not request.url.path.startswith("/ui"):
        return problem(status, code, detail, headers)
    screens: Screens = request.app.state["screens"]
    return screens.render(request, "error.html", status=status, problem=words)
