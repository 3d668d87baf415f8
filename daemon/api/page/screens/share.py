"""A duplicate for a customer: a PDF by a link that needs no login, as a QR code for the customer's phone in the shop's network."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import msgspec
from litestar import get

from daemon.api.http.answers import Answer, Reply
from daemon.api.page.deps import PageDeps
from daemon.api.page.downloads import address_here
from daemon.api.page.screens.invoices import record_of
from daemon.api.page.screens.paper import pdf_answer
from daemon.api.page.shown.line_charts import qr_picture
from daemon.api.page.visit import AnyRequest, Visit, fault_page, language_of, name_of, screen, shown
from daemon.core.errors import NotFound
from daemon.paper.invoice import invoice_document
from daemon.paper.shop import Style
from daemon.usecases.reports import acts, inspect, journal

DAY_MS: Final = 86_400_000
_SIGNATURE: Final = 24


@screen("/ui/journal/{seq:int}/share", "look", change=True)
async def share(visit: Visit) -> Reply:
    """One copy is given out, however often the link is opened."""
    record = await record_of(visit)
    if record.state != "certified":
        raise NotFound("only a certified invoice can be shared")
    copy = await acts.make_copy(visit.worker, record, visit.call())
    ends = visit.deps.clock() + DAY_MS
    told = f"{name_of(visit.worker)}~{record.code}~{copy}~{ends}"
    address = f"{address_here(visit)}/ui/shared/{told}~{_signed(visit.page, told)}"
    picture = await qr_picture(address)
    return await shown(visit, "share.html", record=record, address=address, picture=picture, ends=ends)


@get("/ui/shared/{token:str}")
async def shared(request: AnyRequest) -> Reply:
    """The PDF, for whoever has the link."""
    try:
        return await _shared(request)
    except Exception as error:  # noqa: BLE001  every error of a screen is a page
        return await fault_page(request, error)


async def _shared(request: AnyRequest) -> Answer:
    deps, page = request.app.state["deps"], _page(request)
    told, _, signature = str(request.path_params["token"]).rpartition("~")
    parts = told.split("~")
    if not hmac.compare_digest(_signed(page, told).encode(), signature.encode()) or deps.clock() > int(parts[3]):
        raise NotFound("this link is no longer valid")
    worker = next((each for each in deps.workers.all() if name_of(each) == parts[0]), None)
    if worker is None:
        raise NotFound("this link is no longer valid")
    record, language = await journal.find(worker, parts[1]), language_of(request, page.language)
    await inspect.learn_taxpayer(worker)
    shop = await deps.paper.shop_by_letterhead(worker, language, record.invoice.letterhead)
    style = msgspec.structs.replace(Style(language, is_duplicate=True), copy=int(parts[2]))
    return await pdf_answer(deps, "shared", invoice_document(record, shop, style))


def _page(request: AnyRequest) -> PageDeps:
    page: PageDeps = request.app.state["page"]
    return page


def _signed(page: PageDeps, text: str) -> str:
    return hmac.new(page.share_key, text.encode(), hashlib.sha256).hexdigest()[:_SIGNATURE]


HANDLERS = (share, shared)
