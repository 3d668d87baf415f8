"""`/schema`: the OpenAPI document and its page. Everything comes from this box; the page works without internet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from litestar import Request, get
from litestar.exceptions import NotFoundException

from daemon.api.http.answers import Answer, Header, static_file

PACKAGE: Final = "daemon.api.document"
FILES: Final = frozenset({"swagger-ui-bundle.js", "swagger-ui.css", "start.js", "page.css", "favicon.svg"})
"""What may be asked for; nothing else under `static/` can be."""

POLICY: Final[Header] = (
    b"content-security-policy",
    b"; ".join(
        (
            b"default-src 'none'",
            b"script-src 'self'",
            b"style-src 'self' 'unsafe-inline'",
            b"img-src 'self' data:",
            b"connect-src 'self'",
            b"base-uri 'none'",
            b"form-action 'none'",
            b"frame-ancestors 'none'",
        )
    ),
)
"""Inline styles are Swagger UI's; scripts are files of ours only."""


class DrawnOnce:
    """What takes a tenth of a second to draw: in a thread when it is first asked for, once for all who wait for it, and kept."""

    def __init__(self, draw: Callable[[], bytes]) -> None:
        self._draw = draw
        self._kept: bytes | None = None
        self._turn = asyncio.Lock()

    async def get(self) -> bytes:
        async with self._turn:
            if self._kept is None:
                self._kept = await asyncio.to_thread(self._draw)
        return self._kept


@get("/schema")
async def page(request: Request[Any, Any, Any]) -> Answer:
    return static_file(request.scope["headers"], PACKAGE, "page.html", POLICY)


@get(["/openapi.json", "/schema/openapi.json"])
async def openapi(request: Request[Any, Any, Any]) -> Answer:
    drawn: DrawnOnce = request.app.state["openapi"]
    return Answer(await drawn.get())


@get("/schema/{name:str}")
async def asset(request: Request[Any, Any, Any]) -> Answer:
    name = request.path_params["name"]
    if name not in FILES:
        raise NotFoundException
    return static_file(request.scope["headers"], PACKAGE, name)


HANDLERS = (page, openapi, asset)
