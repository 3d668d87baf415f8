"""Files that the browser keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from litestar import get
from litestar.handlers import HTTPRouteHandler

from daemon.api.http.answers import Reply
from daemon.api.http.stream import Stream
from daemon.api.page.deps import Copy, PageDeps
from daemon.api.page.visit import AnyRequest, enter, fault_page
from daemon.core.errors import NotFound
from daemon.core.roles import Right


def as_file(name: str) -> tuple[bytes, bytes]:
    """The header that says so."""
    return b"content-disposition", f'attachment; filename="{name}"'.encode()


def kept_files(
    path: str,
    right: Right,
    kept: Callable[[PageDeps], Iterable[Copy]],
    read: Callable[[PageDeps, str], Any],
    kind: Callable[[str], bytes],
    *,
    absent: str,
) -> HTTPRouteHandler:
    """GET of one of the files that are kept, in pieces; `kind` gives its media type by its name. Nothing outside `kept` is read."""

    @get(path)
    async def download(request: AnyRequest) -> Reply:
        try:
            visit = await enter(request, right)
            name = str(request.path_params["name"])
            if name not in {file.name for file in kept(visit.page)}:
                raise NotFound(absent)  # noqa: TRY301  shown as a page, as all else
            place = visit.deps.exports.take(f"page {visit.session.person_id}")
        except Exception as error:  # noqa: BLE001  every error of a screen is a page
            return await fault_page(request, error)
        return Stream(
            read(visit.page, name),
            media_type=kind(name),
            headers=(as_file(name),),
            place=place,
            stopping=visit.deps.stopping,
            is_welcome=visit.is_logged_in,
        )

    return download
