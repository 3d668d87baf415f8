"""Documents on paper: ready for the browser's own printing, or on the receipt printer of the shop."""

from __future__ import annotations

from typing import Final

import msgspec

from daemon.api.http.answers import Answer, Reply
from daemon.api.page.visit import Visit, redirect, screen
from daemon.api.refusals import RoleNotAllowed
from daemon.core.clock import millis_text
from daemon.core.report.fiscal_reports import ZReport
from daemon.paper.elements import Document
from daemon.paper.html import as_html
from daemon.paper.invoice import invoice_document
from daemon.paper.layout import Width
from daemon.paper.reports import report_document
from daemon.paper.shop import Style
from daemon.usecases.reports import inspect, journal, report
from daemon.usecases.reports.letterhead import letterhead_of

WIDTH: Final[Width] = 48
ALONE: Final = (
    b"content-security-policy",
    b"default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'",
)
"""A document to print is a page of its own; its style is in it, and it has no script."""


@screen("/ui/paper/{what:str}/{name:str}", "look", whole=False)
async def paper(visit: Visit) -> Reply:
    document, _ = await _document(visit)
    return Answer(as_html(document, WIDTH).encode(), media_type=b"text/html; charset=utf-8", headers=(ALONE,))


@screen("/ui/paper/{what:str}/{name:str}", "look", change=True)
async def print_paper(visit: Visit) -> Reply:
    """On the printer of `[printer]`; then the screen that it was asked from says so."""
    document, place = await _document(visit)
    await visit.deps.paper.print(document)
    return redirect(visit.link(place, printed="1"))


def printed(visit: Visit) -> str:
    """What such a screen says."""
    return visit.say("Printed.") if visit.query.get("printed") else ""


async def _document(visit: Visit) -> tuple[Document, str]:
    """An invoice (a duplicate, marked so), X or Z, and the screen that shows it."""
    what, name = visit.request.path_params["what"], visit.request.path_params["name"]
    if what != "invoice" and not visit.may("report"):
        raise RoleNotAllowed(visit.session.role, "report")
    await inspect.learn_taxpayer(visit.worker)
    shop = visit.deps.paper.shop(visit.worker, visit.language)
    style = Style(visit.language, is_duplicate=what == "invoice")
    if what == "invoice":
        record = await journal.find(visit.worker, name)
        letterhead = await letterhead_of(visit.worker, record.invoice.letterhead)
        shop = visit.deps.paper.shop(visit.worker, visit.language, letterhead)
        return invoice_document(record, shop, style), f"/ui/journal/{record.seq}"
    printed_at = millis_text(visit.worker.now())
    if what == "x":
        return report_document(await report.x_report(visit.worker), shop, style, printed_at=printed_at), "/ui/x"
    closed = await report.closure(visit.worker, name)
    shown_z = msgspec.json.decode(closed.body, type=ZReport)
    letterhead = await letterhead_of(visit.worker, bytes.fromhex(shown_z.letterhead))
    shop = visit.deps.paper.shop(visit.worker, visit.language, letterhead)
    return report_document(shown_z, shop, style, printed_at=printed_at), f"/ui/closures/{closed.z_number}"


HANDLERS = (paper, print_paper)
