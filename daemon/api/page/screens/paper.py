"""Documents to be printed by the browser or by the shop's receipt printer."""

import asyncio
import re
from typing import Final, get_args

from common.http_server import IS_HEAD
from common.language import Text
from common.numbers import parse_integer
from daemon.api.access.context import ApiDeps
from daemon.api.http.answers import Answer, Reply
from daemon.api.page.downloads import as_file
from daemon.api.page.visit import Visit, redirect, screen
from daemon.api.refusals import RoleNotAllowed
from daemon.core.clock import millis_text
from daemon.core.errors import NotFound
from daemon.core.ledger.attempt import Record
from daemon.paper.html import as_html
from daemon.paper.layout import Document, Width
from daemon.paper.pdf import PaperSize, as_pdf, poster
from daemon.paper.reports import report_document
from daemon.paper.shop import Style
from daemon.store.tables.book.acts import copies
from daemon.usecases.reports import acts, inspect, journal, report

WIDTH: Final[Width] = 48
FIRST: Final = 600_000
"""Time in ms after a manual sale during which its author prints the original."""
ALONE: Final = (
    b"content-security-policy",
    b"default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'",
)
"""A printable document is a separate page with its own style and no script."""


@screen("/ui/paper/{what:str}/{name:str}", "look", whole=False)
async def paper(visit: Visit) -> Reply:
    """For printing by the browser: an invoice here counts as a duplicate given out, so that HEAD is not allowed."""
    if IS_HEAD in visit.request.scope["state"]:
        return Answer(b"", status=405, headers=((b"allow", b"GET, OPTIONS, POST"),))
    copied = await _copied(visit)
    copy = await acts.make_copy(visit.worker, copied, visit.call()) if copied else 0
    document, _ = await _document(visit, copy)
    await _note_z_paper(visit)
    if visit.query.get("form") == "pdf":
        return await pdf_answer(visit.deps, visit.holder, document)
    return Answer(as_html(document, WIDTH).encode(), media_type=b"text/html; charset=utf-8", headers=(ALONE,))


async def pdf_answer(deps: ApiDeps, holder: str, document: Document, name: str = "") -> Answer:
    """A PDF file with this name, or the document's. Raises TooManyRequests beyond the limit of concurrent exports."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", name or document.name).strip("-")
    with deps.exports.take(holder):
        body = await asyncio.to_thread(as_pdf, document)
    return Answer(body, media_type=b"application/pdf", headers=(as_file(f"{name}.pdf"),))


@screen("/ui/paper/{what:str}/{name:str}", "look", change=True)
async def print_paper(visit: Visit) -> Reply:
    """Prints on the printer of `[printer]` and returns to the screen with a message."""
    async with acts.printed_copy(visit.worker, await _copied(visit), visit.call()) as copy:
        document, place = await _document(visit, copy)
        await visit.deps.paper.print(document)
        await _note_z_paper(visit)
    return redirect(visit.link(place, printed="1"))


async def _note_z_paper(visit: Visit) -> None:
    if visit.request.path_params["what"] == "z":
        await acts.note_z_paper(visit.worker, visit.request.path_params["name"])


async def is_first(visit: Visit, record: Record) -> bool:
    """Whether the paper is the original: printed by the author shortly after a manual sale, and no copy was given
    out."""
    is_own = record.invoice.operator_name == visit.session.name and visit.worker.now() - record.ended_at < FIRST
    return is_own and not await visit.worker.ledger.read(copies, visit.worker.book, record.code)


def printed(visit: Visit) -> str:
    """The message after printing."""
    return visit.say("Printed.") if visit.query.get("printed") else ""


async def _copied(visit: Visit) -> Record | None:
    """The invoice of which the visit wants a duplicate: any paper of one, except the original of a manual sale."""
    if visit.request.path_params["what"] != "invoice":
        return None
    record = await journal.find(visit.worker, visit.request.path_params["name"])
    return None if visit.query.get("first") and await is_first(visit, record) else record


async def _document(visit: Visit, copy: int) -> tuple[Document, str]:
    """The document (an invoice, as this duplicate if not 0, or a report) and its screen."""
    worker, paper, style = visit.worker, visit.deps.paper, Style(visit.language)
    what, name = visit.request.path_params["what"], visit.request.path_params["name"]
    if what != "invoice" and not visit.may("report"):
        raise RoleNotAllowed(visit.session.role, "report")
    await inspect.learn_taxpayer(worker)
    if what == "invoice":
        record = await journal.find(worker, name)
        style = Style(visit.language, is_duplicate=bool(copy), copy=copy)
        return await paper.invoice(worker, record, style), f"/ui/journal/{record.seq}"
    if what == "outage":
        if (number := parse_integer(name)) is None:
            raise NotFound(Text("there is no outage {number}", number=name))
        return await paper.outage(worker, number, style), "/ui/outages"
    if what == "x":
        content = await report.x_report(worker)
        await acts.store_report(worker, "X", content, visit.call())
        shop = paper.shop(worker, visit.language)
        return report_document(content, shop, style, printed_at=millis_text(worker.now())), "/ui/x"
    if what == "month" or what == "year":  # noqa: PLR1714  by which the type is known
        return await paper.period(worker, what, name, style), "/ui/closures"
    return await paper.z(worker, name, style), f"/ui/closures/{name}"


@screen("/ui/poster/{size:str}", "look", whole=False)
async def poster_file(visit: Visit) -> Reply:
    """The sign for each till, A4 or A5."""
    size = visit.request.path_params["size"]
    if size not in get_args(PaperSize):
        raise NotFound(Text("there is no poster of this size"))
    return Answer(
        await asyncio.to_thread(poster, size), media_type=b"application/pdf", headers=(as_file(f"exigez-{size}.pdf"),)
    )
