"""An address under `/ui/` that no screen has: whoever asks with a browser is told so on a page, a program by decision 11's JSON."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.exceptions import HTTPException
from litestar.types import HTTPScope, Receive, Send

from daemon.api.http.answers import Reply
from daemon.api.page.visit import AnyRequest, enter, fault_page
from daemon.core.errors import NotFound


async def nowhere(scope: HTTPScope, receive: Receive, send: Send, error: Exception) -> Reply | None:
    """The page for what the router refuses: an address it does not know, a number that is none, a form's address typed in. None for a program, and
    for every other error."""
    if not isinstance(error, HTTPException) or not _is_by_browser(scope):
        return None
    return await _page(Request[Any, Any, Any](scope, receive, send))


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
