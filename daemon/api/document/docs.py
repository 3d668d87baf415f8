"""`/schema`: the OpenAPI document and its page. Everything comes from this box; the page works without internet."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from litestar import Request, get
from litestar.exceptions import NotFoundException

from daemon.api.http.answers import Answer, Header

STATIC: Final = Path(__file__).parent / "static"
MEDIA_TYPES: Final = {
    "swagger-ui-bundle.js": b"text/javascript; charset=utf-8",
    "swagger-ui.css": b"text/css; charset=utf-8",
    "start.js": b"text/javascript; charset=utf-8",
    "page.css": b"text/css; charset=utf-8",
    "favicon.svg": b"image/svg+xml",
}
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
async def page(request: Request[Any, Any, Any]) -> Answer:  # noqa: ARG001  what Litestar gives a handler
    return Answer(_file("page.html")[0], media_type=b"text/html; charset=utf-8", headers=(POLICY,))


@get(["/openapi.json", "/schema/openapi.json"])
async def openapi(request: Request[Any, Any, Any]) -> Answer:
    drawn: DrawnOnce = request.app.state["openapi"]
    return Answer(await drawn.get())


@get("/schema/{name:str}")
async def asset(request: Request[Any, Any, Any]) -> Answer:
    name = request.path_params["name"]
    if name not in MEDIA_TYPES:
        raise NotFoundException
    body, tag = _file(name)
    headers: tuple[Header, ...] = ((b"etag", tag), (b"cache-control", b"private, max-age=3600"))
    if (b"if-none-match", tag) in request.scope["headers"]:
        return Answer(b"", status=304, media_type=MEDIA_TYPES[name], headers=headers)
    return Answer(body, media_type=MEDIA_TYPES[name], headers=headers)


@cache
def _file(name: str) -> tuple[bytes, bytes]:
    body = (STATIC / name).read_bytes()
    return body, b'"%s"' % hashlib.sha256(body).hexdigest()[:16].encode()


HANDLERS = (page, openapi, asset)
