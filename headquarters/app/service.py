"""The HTTP application and its routes."""

import functools
from copy import copy
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import Litestar, Response, Router, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.response import Redirect
from litestar.types import Message, Scope

from common.problems import problem_content, request_id
from common.web.security import return_cookie, return_url
from headquarters.api import routes
from headquarters.api.callers import AnyRequest
from headquarters.app.problems import problem_of
from headquarters.intake.joining import JoinService, JoinTerms
from headquarters.intake.reception import Reception
from headquarters.intake.threads import Threads
from headquarters.page import entrance, findings, shops, totals
from headquarters.page.shared import RETURN_COOKIE, NoSession, Screens, admit
from headquarters.store.database import StoreError
from headquarters.store.store import HqStore

log = structlog.get_logger(__name__)

ENTRANCE = (entrance.login_form, entrance.login, entrance.choose_language, entrance.static)
SCREENS = (
    entrance.logout,
    *(shops.calendar, shops.shop, shops.rename, shops.closure),
    *(findings.ledger, findings.accept),
    *(totals.totals, totals.exports, totals.closures_csv),
    *(findings.findings, findings.change, findings.boxes, findings.join_form, findings.make_code, findings.revoke),
    *(findings.people, findings.add_person, findings.disable),
)
MAX_OF_A_FORM = 16 * 1024
"""Bytes: parsing a megabyte of form fields would block the event loop for a second. Closures have their own limit."""


@get("/", status_code=303, sync_to_thread=False)
def root() -> Redirect:
    return Redirect("/ui/", status_code=303)


@get("/health/live", sync_to_thread=False)
def live() -> dict[str, str]:
    return {"status": "live"}


@get("/health/ready")
async def ready(store: HqStore, threads: Threads) -> Response[dict[str, str]]:
    """503 if the database is unusable."""
    try:
        await threads.run(store.register.revision)
    except StoreError:
        return Response({"status": "storage unavailable"}, status_code=503)
    return Response({"status": "ready"})


@get("/metrics", media_type="text/plain", sync_to_thread=False)
def metrics(reception: Reception) -> str:
    """Counts of this instance since its start, by outcome or reason; Prometheus adds up the instances."""
    counts = sorted(reception.counted.items())
    lines = [f'mcfd_hq_messages_total{{outcome="{name}"}} {count}\n' for name, count in counts]
    return "".join(["# TYPE mcfd_hq_messages_total counter\n", *lines])


def create_service(
    store: HqStore, threads: Threads, reception: Reception, screens: Screens, terms: JoinTerms | None = None
) -> Litestar:
    """`terms` of the answer to joining boxes; by default closures use HTTPS."""
    service = copy(drawn_routes())
    parts = {"store": store, "threads": threads, "reception": reception, "screens": screens, "zone": screens.zone}
    parts["joining"] = JoinService(store, threads, terms or JoinTerms(), is_direct=screens.is_secure)
    service.state = State(parts, deep_copy=False)
    return service


@functools.cache
def drawn_routes() -> Litestar:
    """The application without a state. Instances in one process are copies of it, since building the routes is most of
    the cost."""
    return Litestar(
        [
            *(routes.receive_closure, routes.receive_presence, routes.join),
            *(routes.closures, routes.findings, routes.mark_seen, routes.solve),
            *(root, live, ready, metrics),
            *ENTRANCE,
            Router("/", route_handlers=SCREENS, guards=[admit]),
        ],
        dependencies={
            name: _dependency(name) for name in ("store", "threads", "reception", "screens", "zone", "joining")
        },
        exception_handlers={NoSession: _to_login, Exception: _problem},
        before_send=[_with_id],
        request_max_body_size=MAX_OF_A_FORM,
        openapi_config=None,
        logging_config=None,
    )


def _dependency(name: str) -> Provide:
    def provide(request: AnyRequest) -> Any:
        return request.app.state[name]

    return Provide(provide, sync_to_thread=False)


def _to_login(request: AnyRequest, _: NoSession) -> Redirect:
    path = "/ui/login" if request.method == "GET" else "/ui/login?ended=1"
    headers = {"set-cookie": return_cookie(RETURN_COOKIE, return_url(request))}
    return Redirect(path, status_code=303, headers=headers)


def _problem(request: AnyRequest, error: Exception) -> Response[bytes]:
    """A page for people, a JSON document for programs."""
    status, code, detail, headers, words, fault = problem_of(error)
    own_id = _id_of(request.scope)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request.failed", path=request.url.path, request_id=own_id, exc_info=error)
    if request.url.path.startswith("/ui"):
        screens: Screens = request.app.state["screens"]
        return screens.render(request, "error.html", status=status, problem=words)
    content = problem_content(status, code, code.replace("_", " ").capitalize(), detail, own_id, fault=fault)
    body = msgspec.json.encode(content)
    return Response(body, status_code=status, media_type="application/problem+json", headers=headers)


async def _with_id(message: Message, scope: Scope) -> None:
    """Adds the request id to every answer."""
    if message["type"] == "http.response.start":
        message["headers"] = [*message["headers"], (b"x-request-id", _id_of(scope).encode())]


def _id_of(scope: Scope) -> str:
    state = scope["state"]
    if "request_id" not in state:
        state["request_id"] = request_id(scope["headers"])
    return str(state["request_id"])
