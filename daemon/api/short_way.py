"""What a till sends all day goes past Litestar's routing and its reading of parameters: a tenth of a certification's processor time, most
of it before the first byte is on the line. The handlers are the same, so are the gate before them and the answer to every error."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from litestar import Request
from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

Gate = Callable[[Request[Any, Any, Any]], Awaitable[None]]

BASE: Final = "/v1/mcf/{nim}"
_PLAIN_HOST = re.compile(rb"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*(?::[0-9]{1,5})?").fullmatch


class ShortWay:
    """Whatever is not exactly a POST to one of `handlers` under `BASE` goes the usual way, `app`."""

    def __init__(self, app: ASGIApp, gate: Gate, handlers: Sequence[HTTPRouteHandler]) -> None:
        self._app = app
        self._gate = gate
        self._handlers = {path: handler for handler in handlers for path in handler.paths}
        names = "|".join(re.escape(path) for path in self._handlers)
        self._is_here = re.compile(rf"/v1/mcf/([^/]+)({names})").fullmatch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._is_here(scope["path"])
        if found is None or scope["type"] != ScopeType.HTTP or scope["method"] != "POST" or not _is_plain(scope):
            await self._app(scope, receive, send)
            return
        nim, path = found.groups()
        handler = self._handlers[path]
        scope["path_params"] = {"nim": nim}
        scope["path_template"] = BASE + path
        scope["route_handler"] = handler
        request: Request[Any, Any, Any] = Request(scope, receive, send)
        await self._gate(request)
        answer: ASGIApp = await handler.fn(request)
        await answer(scope, receive, send)


def _is_plain(scope: HTTPScope) -> bool:
    """Nothing about it that the router would look at more closely, or refuse."""
    return not scope.get("root_path") and all(_PLAIN_HOST(value) for name, value in scope["headers"] if name == b"host")
