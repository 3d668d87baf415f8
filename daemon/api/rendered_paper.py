"""Renders a document in the requested form: text, HTML, PDF or bytes for a receipt printer."""

import asyncio
from typing import Any, Final, cast, get_args

import msgspec
from litestar.connection import ASGIConnection
from litestar.exceptions import MethodNotAllowedException
from litestar.handlers import BaseRouteHandler
from litestar.openapi.spec import Schema
from litestar.openapi.spec.enums import OpenAPIType

from common.http_server import IS_HEAD
from common.language import LANGUAGES, Language, Text
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.box import Paper
from daemon.api.document.describe import choice, query
from daemon.api.http.answers import Answer, Header
from daemon.api.http.middleware import language_of
from daemon.api.refusals import TooManyRequests
from daemon.api.request.body import accepted_form, read_query
from daemon.api.request.outcome import customer_url
from daemon.core.errors import InvalidRequest, McfdError, NotFound
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.report.receipt import Adjustment, PaperDocument
from daemon.paper.escpos import as_escpos
from daemon.paper.html import as_html
from daemon.paper.invoice import waiting_document
from daemon.paper.layout import WIDTHS, Document, Width, as_text
from daemon.paper.pdf import PdfFailed, as_pdf
from daemon.paper.shop import Style
from daemon.usecases.reports import inspect

MEDIA: Final = {
    "text": b"text/plain; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "escpos": b"application/octet-stream",
    "pdf": b"application/pdf",
}
_ACCEPTED: Final = {
    "text/plain": "text",
    "text/html": "html",
    "application/octet-stream": "escpos",
    "application/vnd.escpos": "escpos",
    "application/pdf": "pdf",
}
COPIES: Final = ("original", "duplicate")
# A page of ours has one style and nothing else: whatever a name on an invoice holds, nothing in it runs or is fetched.
ALONE: Final[Header] = (
    b"content-security-policy",
    b"default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox",
)

STYLE: Final = (
    query("lang", "Language", choice(*LANGUAGES)),
    query("copy", "says that it is a copy", choice(*COPIES, default=COPIES[0])),
)
SHAPE: Final = (
    query("format", "Before `Accept`", choice(*MEDIA, default="text"), empty=True),
    query(
        "width",
        "Columns: 32 on 58 mm paper, 42 or 48 on 80 mm",
        Schema(type=OpenAPIType.INTEGER, enum=WIDTHS),
    ),
    *STYLE,
)

DOCUMENT: Final = query(
    "document",
    "The invoice on paper as well, or the slip of a sale that waits, within the answer (`document`)",
    choice(*MEDIA),
)
_NO_DOCUMENT: Final = Text("the sale stands, but its document could not be made; GET …/ticket makes it again")


class DocumentRequest(msgspec.Struct, frozen=True):
    """The parameters of a document."""

    form: str
    width: Width
    style: Style


def no_head(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler | None = None) -> None:
    """Guard of the routes with documents: each one given out is recorded, and a HEAD gives out none. Raises 405."""
    if IS_HEAD in connection.scope["state"]:
        raise MethodNotAllowedException(headers={"Allow": "GET, OPTIONS"})


async def rendered(request: ApiRequest, document: Document, wanted: DocumentRequest) -> Answer:
    media_type = MEDIA[wanted.form]
    if wanted.form == "html":
        return Answer(as_html(document, wanted.width).encode(), media_type=media_type, headers=(ALONE,))
    if wanted.form == "escpos":
        data = await asyncio.to_thread(as_escpos, document, wanted.width, deps_of(request).paper.code_page)
        return Answer(data, media_type=media_type)
    if wanted.form == "pdf":
        with deps_of(request).exports.take(request.auth.key.id):
            return Answer(await asyncio.to_thread(as_pdf, document), media_type=media_type)
    return Answer(as_text(document, wanted.width).encode(), media_type=media_type)


def read_format(request: ApiRequest, paper: Paper) -> DocumentRequest:
    query = read_query(request, "format", "width", "lang", "copy")
    language = query.get("lang", paper.language)
    _check("lang", language, LANGUAGES)
    copy = query.get("copy", COPIES[0])
    _check("copy", copy, COPIES)
    width = query.get("width", str(paper.width))
    _check("width", width, [str(each) for each in get_args(Width)])
    form = query.get("format") or accepted_form(request, _ACCEPTED, "text")
    _check("format", form, MEDIA)
    style = Style(cast("Language", language), is_duplicate=copy == "duplicate")
    return DocumentRequest(form, cast("Width", int(width)), style)


def read_document(request: ApiRequest) -> DocumentRequest | None:
    """The form that a certification's answer has to include. Raises before anything is sent to the machine."""
    form = read_query(request, "document").get("document")
    if form is None:
        return None
    _check("document", form, MEDIA)
    paper = deps_of(request).paper
    return DocumentRequest(form, paper.width, Style(paper.language))


async def sale_document(
    request: ApiRequest, record: Record | None, sale: DeferredSale | None, style: Style
) -> Document:
    """The certified invoice `record`, otherwise the slip of a sale that waits; NotFound without either."""
    paper, worker = deps_of(request).paper, request.auth.worker
    await inspect.learn_taxpayer(worker)
    if record is not None:
        return await paper.invoice(worker, record, style)
    if sale is None or sale.invoice is None:
        raise NotFound(Text("there is no paper for this request"))
    url, shop = customer_url(request, sale.address), paper.shop(worker, style.language)
    return waiting_document(sale, sale.invoice, shop, style, url)


async def document_of(
    request: ApiRequest, wanted: DocumentRequest, record: Record | None, sale: DeferredSale | None = None
) -> PaperDocument | Adjustment:
    """As `sale_document`, or a warning: a failure here takes nothing back."""
    try:
        answer = await rendered(request, await sale_document(request, record, sale, wanted.style), wanted)
    except (PdfFailed, TooManyRequests, McfdError):
        return Adjustment("DOCUMENT_FAILED", _NO_DOCUMENT.in_language(language_of(request.scope)))
    return PaperDocument(MEDIA[wanted.form].decode(), answer.body)


def _check(name: str, value: str, allowed: Any) -> None:
    if value not in allowed:
        raise InvalidRequest.at(name, Text("has to be one of {choices}", choices=", ".join(allowed)))
