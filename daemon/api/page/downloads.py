"""File downloads; days and months of the calendar."""

from collections.abc import AsyncGenerator, Callable, Iterable
from datetime import date
from typing import Any, Final

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler

from common.web.formats import depth, is_month
from daemon.api.http.answers import Answer, Reply, Stream
from daemon.api.page.deps import Copy, PageDeps
from daemon.api.page.views.machine_view import qr_picture
from daemon.api.page.visit import AnyRequest, Visit, fault_page, screen
from daemon.core.errors import NotFound
from daemon.core.people import Right
from daemon.core.report.ranges import EVER


class Day(msgspec.Struct, frozen=True):
    """`total` in XOF, net; `zs` are the numbers of the day's closures."""

    date: date
    total: int
    zs: tuple[int, ...]
    is_over: bool = True

    def depth(self, most: int) -> int:
        return depth(self.total, most)


def month_of(text: str, today: date) -> str:
    """YYYY-MM; the current month for other text."""
    return text if is_month(text) else f"{today:%Y-%m}"


def day_of(text: str) -> date | None:
    """YYYY-MM-DD in this century; None for other text."""
    try:
        return date.fromisoformat(text) if is_month(text[:7]) else None
    except ValueError:
        return None


def change_in_percent(now: int, before: int) -> int | None:
    """Rounded; None without a value to compare with."""
    return None if before <= 0 else ((now - before) * 200 + before) // (2 * before)


def range_of_a(visit: Visit, usual: date | None = None) -> tuple[date, date]:
    """First and last day of the query; missing ones are `usual`, by default the month's first day, and today."""
    first, last = day_of(visit.query.get("from", "")), day_of(visit.query.get("to", ""))
    today = visit.today()
    first, last = first or usual or today.replace(day=1), last or today
    return (first, last) if first <= last else (last, first)


def range_of_query(visit: Visit) -> tuple[int, int]:
    """Start and end (ms) of the days in the query; all of time where it has none."""
    first, last = (day_of(visit.query.get(side, "")) for side in ("from", "to"))
    start = visit.day_bounds(first)[0] if first else 0
    return start, visit.day_bounds(last)[1] if last else EVER[1]


def as_file(name: str) -> tuple[bytes, bytes]:
    """Content-Disposition of a download."""
    return b"content-disposition", f'attachment; filename="{name}"'.encode()


def streamed(visit: Visit, pieces: AsyncGenerator[bytes, None], kind: bytes, name: str) -> Stream:
    """Streams a file while the person is logged in. Raises TooManyRequests beyond the limit per key."""
    return Stream(
        pieces,
        media_type=kind,
        headers=(as_file(name),),
        place=visit.deps.exports.take(visit.holder),
        stopping=visit.deps.stopping,
        is_welcome=visit.is_logged_in,
    )


def file_route(
    path: str,
    right: Right,
    files: Callable[[PageDeps], Iterable[Copy]],
    read: Callable[[PageDeps, str], Any],
    kind: Callable[[str], bytes],
    *,
    absent: str,
) -> HTTPRouteHandler:
    """Route for one of the stored files, streamed; `kind` returns the media type for a name. Only names in `files` are
    read."""

    @screen(path, right, whole=False)
    async def download(visit: Visit) -> Reply:
        name = str(visit.request.path_params["name"])
        if name not in {file.name for file in files(visit.page)}:
            raise NotFound(absent)
        return streamed(visit, read(visit.page, name), kind(name), name)

    return download


PATH: Final = "/ui/authority.pem"


def address_here(visit: Visit) -> str:
    """The box's address as this browser uses it, valid for tills in the same network."""
    return f"{'https' if visit.page.tls else 'http'}://{visit.request.headers.get('host', 'localhost')}"


async def authority_link(visit: Visit) -> tuple[str, str] | None:
    """Address of the box's authority, and its QR code; None without an authority of its own."""
    if not visit.page.authority():
        return None
    address = address_here(visit) + PATH
    return address, await qr_picture(address)


@get(PATH)
async def authority(request: AnyRequest) -> Reply:
    """Without login: a phone that scans the address has none, and the certificate is public in every TLS handshake."""
    page: PageDeps = request.app.state["page"]
    if not (pem := page.authority()):
        return await fault_page(request, NotFound("this box shows no certificate of its own"))
    return authority_file(pem)


def authority_file(pem: bytes) -> Answer:
    return Answer(pem, media_type=b"application/x-pem-file", headers=(as_file("mcfd-authority.pem"),))
