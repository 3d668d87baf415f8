"""The API as one application: the routes, and the gate around them."""

from __future__ import annotations

from litestar import Litestar, Router
from litestar.datastructures import State

from daemon.api import articles, certify, docs, events, health, journal, machine, me, metrics, qr, reports
from daemon.api.auth import admit
from daemon.api.deps import ApiDeps
from daemon.api.gate import Gate
from daemon.api.openapi import document

MACHINE_ROUTES = (
    *certify.HANDLERS,
    *reports.HANDLERS,
    *articles.HANDLERS,
    *journal.HANDLERS,
    *qr.HANDLERS,
    *events.HANDLERS,
    *machine.HANDLERS,
)
KEY_ROUTES = me.HANDLERS
OPEN_ROUTES = (*health.HANDLERS, *metrics.HANDLERS, *docs.HANDLERS)


def create_api(deps: ApiDeps) -> Litestar:
    """`Litestar` itself decodes, validates, documents and logs nothing here: see `body`, `openapi` and `gate`."""
    app = Litestar(
        route_handlers=[
            Router("/v1/mcf/{nim:str}", route_handlers=list(MACHINE_ROUTES), before_request=admit),
            Router("/", route_handlers=list(KEY_ROUTES), before_request=admit),
            Router("/", route_handlers=list(OPEN_ROUTES)),
        ],
        state=State({"deps": deps}),
        openapi_config=None,
        logging_config=None,
    )
    app.state["openapi"] = document(app, deps.version)
    # Around the router itself: every exception reaches the one table, a path or method that is not there as well.
    app.asgi_handler = Gate(app.asgi_router, deps.allowed_hosts)
    return app
