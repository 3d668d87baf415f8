"""The API as one application: routes and the middleware around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cache
from types import ModuleType
from typing import Any, Final

from litestar import Litestar, Request, Response, Router, route
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from litestar.types import BeforeRequestHookHandler

from daemon.api.access.auth import admit
from daemon.api.access.context import ApiDeps
from daemon.api.access.throttle import WrongKeys
from daemon.api.document import openapi
from daemon.api.document.describe import Access
from daemon.api.document.openapi import document
from daemon.api.http.middleware import CrossOrigin, OuterMiddleware
from daemon.api.page import downloads, entrance
from daemon.api.page.deps import FirstStart, PageDeps
from daemon.api.page.entrance import nowhere
from daemon.api.page.rendering import Rendering
from daemon.api.page.screens import (
    account,
    attention,
    box,
    closures,
    files,
    first_start,
    invoices,
    paper,
    selling,
    today,
)
from daemon.api.page.screens import outages as outages_screen
from daemon.api.routes import calendar, certify, events, health, journal, machine, outages, reports, tickets
from daemon.unneeded import without


def handlers_in(*modules: ModuleType) -> list[HTTPRouteHandler]:
    """All handlers at the top level of these modules, also those in tuples."""
    found = [each for module in modules for value in vars(module).values() for each in _each(value)]
    return [each for each in found if isinstance(each, HTTPRouteHandler)]


def _each(value: object) -> Iterable[object]:
    return value if isinstance(value, tuple) else (value,)


API_ROUTES: Final = handlers_in(certify, reports, calendar, outages, journal, tickets, events, machine, health)
PAGE_ROUTES: Final = handlers_in(
    *(entrance, account, attention, downloads, selling, today, invoices, closures, outages_screen, box, files, paper)
)


def routes_by(access: Access) -> list[HTTPRouteHandler]:
    return [each for each in API_ROUTES if each.opt["access"] == access]


def _router(path: str, handlers: Sequence[HTTPRouteHandler], before: BeforeRequestHookHandler | None = None) -> Router:
    """A router with one handler of OPTIONS; Litestar's own for each path would double the time to build routes."""
    paths = sorted({each for handler in handlers for each in handler.paths})
    options = route(paths, http_method="OPTIONS", include_in_schema=False)(allowed)
    return Router(path, route_handlers=[options, *handlers], before_request=before)


async def allowed(request: Request[Any, Any, Any]) -> Response[None]:
    """Answers OPTIONS with the methods of the path."""
    template = request.scope["path_template"]
    methods = next(each.methods for each in request.app.routes if each.path_format == template)
    return Response(None, status_code=204, headers={"Allow": ", ".join(sorted(methods))}, media_type="text/plain")


def create_first_start(first: FirstStart, allowed_hosts: tuple[str, ...] = ()) -> Litestar:
    """The application for a box without a configuration: its setup page, without the API."""
    app = Litestar(
        route_handlers=[*handlers_in(first_start), entrance.choose_language, entrance.static],
        state=State({"page": first, "rendering": Rendering(), "wrong_codes": WrongKeys(first_start.WRONG_CODES)}),
        openapi_config=None,
        logging_config=None,
    )
    app.asgi_handler = OuterMiddleware(app.asgi_router, allowed_hosts, CrossOrigin(), nowhere)
    return app


def create_api(deps: ApiDeps, page: PageDeps | None = None) -> Litestar:
    app = copy(drawn_routes(with_page=page is not None))
    app.state = State({"deps": deps, "page": page, "rendering": Rendering()})
    app.state["openapi"] = cache(lambda: document(api_routers(), deps.version))
    # Around the router itself: every exception reaches the one table, a path or method that is not there as well.
    error_page = nowhere if page else None
    app.asgi_handler = OuterMiddleware(app.asgi_router, deps.allowed_hosts, deps.cross_origin, error_page)
    return app


def api_routers() -> list[Router]:
    return [
        _router("/v1/mcf/{nim:str}", routes_by("machine"), admit),
        _router("/", routes_by("key"), admit),
        _router("/", routes_by("open")),
    ]


@cache
def drawn_routes(*, with_page: bool) -> Litestar:
    """An application without a state, to be copied for each instance, since building the routes takes most of the time.
    Litestar decodes, validates, documents and logs nothing here: see `body`, `openapi` and `middleware`."""
    with without("pydantic", "attr", "attrs"):  # of other programs in the same environment
        return Litestar(
            route_handlers=[
                *api_routers(),
                _router("/", handlers_in(openapi)),
                *([_router("/", PAGE_ROUTES)] if with_page else []),
            ],
            openapi_config=None,
            logging_config=None,
        )
