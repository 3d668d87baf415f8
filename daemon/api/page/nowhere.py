"""An address under `/ui/` that no screen has: whoever asks with a browser is told so on a page, a program by decision 11's JSON."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from daemon.api.http.answers import Reply
from daemon.api.page.visit import AnyRequest, enter, fault_page
from daemon.core.errors import NotFound


class NowhereOnPage:
    """Around the router, whose refusals these are: an address it does not know, a number that is none, a form's address typed in."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except HTTPException:
            if scope["type"] != ScopeType.HTTP or not _is_by_browser(scope):
                raise
            answer = await _page(Request[Any, Any, Any](scope, receive, send))
            await answer(scope, receive, send)


def _is_by_browser(scope: HTTPScope) -> bool:
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return f"{scope['path']}/".startswith("/ui/") and scope["method"] in ("GET", "POST") and b"text/html" in accepted


async def _page(request: AnyRequest) -> Reply:
    """With the menu for who is logged in. (Before the first start nobody can be.)"""
    visit = None
    try:
        if "deps" in request.app.state:
            visit = await enter(request, "look")
        raise NotFound("there is no such screen")  # noqa: TRY301  shown as a page, as all else
    except Exception as error:  # noqa: BLE001  every error of a screen is a page
        return await fault_page(request, error, visit)
