"""Invoices and reports on paper, as text, HTML, PDF, bytes for a receipt printer, or printed by the box; the QR code of
a receipt; and the customer's page of a deferred sale at an unguessable address."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Literal

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import Parameter
from msgspec import Meta

from common.language import Text, translate
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import OPTIONAL_KEY, RANGE, REPLAYABLE, STORED, STRICT, EmptyBody, described
from daemon.api.http.answers import Answer, Header
from daemon.api.http.middleware import language_of
from daemon.api.refusals import TooManyRequests
from daemon.api.rendered_paper import ALONE, MEDIA, SHAPE, STYLE, no_head, read_format, rendered
from daemon.api.request.body import range_of, read_query
from daemon.api.request.outcome import call_of, customer_url, read_optional, sent_once
from daemon.core.clock import millis_text
from daemon.core.errors import InvalidRequest, NotFound, PrinterFailed
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import CalendarKind
from daemon.core.people import Right
from daemon.core.report.receipt import receipt
from daemon.paper.html import as_html
from daemon.paper.invoice import waiting_document
from daemon.paper.layout import Document, TextLine
from daemon.paper.logo import draw_qr
from daemon.paper.reports import articles_document, report_document
from daemon.paper.shop import Shop, Style
from daemon.range_reports.table import RANGE_REPORTS, RangeReport
from daemon.store.tables.book.acts import closed_articles
from daemon.store.tables.book.attempts import find_record
from daemon.usecases.certification.idempotency import answered_once
from daemon.usecases.reports import acts, inspect, journal, report
from daemon.usecases.reports.acts import articles_of
from daemon.usecases.reports.report import articles_report, articles_since

Template = Callable[[ApiRequest, Shop, Style], Awaitable[Document]]
"""Makes one document of the request's book."""

UNCHANGING: Final[Header] = (b"cache-control", b"private, max-age=31536000, immutable")


NOTHING = Text("there is no invoice at this address; ask the shop")


class Printed(msgspec.Struct, frozen=True):
    """`printed`: the invoice's number or the report's title."""

    printed: Annotated[str, Meta(description="What was printed: the invoice's number, or the report's title")]


async def _invoice(request: ApiRequest, _shop: Shop, style: Style) -> Document:
    worker = request.auth.worker
    record = await journal.find(worker, request.path_params["code"])
    return await deps_of(request).paper.invoice(worker, record, style)


async def _x(request: ApiRequest, shop: Shop, style: Style) -> Document:
    worker, query = request.auth.worker, read_query(request, "from", "to")
    content = await report.x_between(worker, *range_of(request, query)) if query else await report.x_report(worker)
    await acts.store_report(worker, "X", content, call_of(request))
    return report_document(content, shop, style, printed_at=_now(request), periodic=bool(query))


async def _z(request: ApiRequest, _shop: Shop, style: Style) -> Document:
    return await deps_of(request).paper.z(request.auth.worker, request.path_params["z"], style)


def _calendar(kind: CalendarKind) -> Template:
    async def template(request: ApiRequest, _shop: Shop, style: Style) -> Document:
        return await deps_of(request).paper.period(request.auth.worker, kind, request.path_params["period"], style)

    return template


def _of_range(each: RangeReport) -> Template:
    async def template(request: ApiRequest, shop: Shop, style: Style) -> Document:
        worker = request.auth.worker
        content = await each.read(worker, *range_of(request, read_query(request, "from", "to")))
        if each.kind:
            await acts.store_report(worker, each.kind, content, call_of(request))
        return each.document(content, shop, style, printed_at=_now(request))

    return template


async def _articles(request: ApiRequest, shop: Shop, style: Style) -> Document:
    worker = request.auth.worker
    query = read_query(request, "from", "to")
    with deps_of(request).exports.take(request.auth.key.id):
        sold = await articles_report(worker, *range_of(request, query)) if query else (await articles_since(worker))[1]
    await acts.store_report(worker, "articles", sold, call_of(request))
    return articles_document(sold, shop, style, printed_at=_now(request))


async def _closed_articles(request: ApiRequest, _shop: Shop, style: Style) -> Document:
    worker, paper = request.auth.worker, deps_of(request).paper
    closed = articles_of(await worker.ledger.read(closed_articles, worker.book, request.path_params["number"]))
    shop = await paper.shop_by_letterhead(worker, style.language, bytes.fromhex(closed.letterhead))
    return articles_document(closed, shop, style, printed_at=_now(request))


def _now(request: ApiRequest) -> str:
    return millis_text(request.auth.worker.now())


async def _composed(request: ApiRequest, template: Template, style: Style) -> Document:
    worker = request.auth.worker
    await inspect.learn_taxpayer(worker)
    return await template(request, deps_of(request).paper.shop(worker, style.language), style)


async def show(request: ApiRequest, template: Template) -> Answer:
    wanted = read_format(request, deps_of(request).paper)
    style, call = wanted.style, call_of(request)
    if record := await _copied(request, style):
        style = msgspec.structs.replace(style, copy=await acts.make_copy(request.auth.worker, record, call))
    answer = await rendered(request, await _composed(request, template, style), wanted)
    await acts.note_z_paper(request.auth.worker, request.path_params.get("z", ""))
    return answer


async def print_it(request: ApiRequest, template: Template) -> Answer:
    paper, worker = deps_of(request).paper, request.auth.worker
    body = await read_optional(request, EmptyBody)
    wanted = read_format(request, paper)
    call = call_of(request, body.raw, body.fields)

    async def act() -> bytes:
        async with acts.printed_copy(worker, await _copied(request, wanted.style), call) as copy:
            document = await _composed(request, template, msgspec.structs.replace(wanted.style, copy=copy))
            await paper.print(document)
            await acts.note_z_paper(worker, request.path_params.get("z", ""))
        return msgspec.json.encode(Printed(printed=document.name))

    return sent_once(request, await answered_once(worker, call, act, "print"), body.unknown, status=200)


async def _copied(request: ApiRequest, style: Style) -> Record | None:
    """The record of which the request wants a duplicate; None for anything else."""
    code = request.path_params.get("code")
    return await journal.find(request.auth.worker, code) if style.is_duplicate and code else None


def _routes(
    place: str,
    key: str,
    name: str,
    template: Template,
    right: Right,
    *,
    parameters: tuple[Parameter, ...] = (),
    problems: tuple[type[Exception], ...] = (),
    more: str = "",
) -> tuple[HTTPRouteHandler, HTTPRouteHandler]:
    """The routes GET …/ticket and POST …/print of one document. `key`: its name in operation ids; `more`: text for the
    description of the ticket. A report of a range is stored in the journal when it is printed, at most 300 times an
    hour."""
    problems = tuple(dict.fromkeys((TooManyRequests, *problems, *(STORED if parameters else ()))))

    @get(
        f"{place}/ticket",
        guards=[no_head],
        **described(
            f"get_{key}_ticket",
            tag="paper",
            right=right,
            summary=f"{name}, ready to print",
            description=f"As text, as HTML, as ESC/POS bytes for a receipt printer or as PDF (A4), with what the law wants on it. {more}",
            media=("text/plain", "text/html", "application/octet-stream", "application/pdf"),
            parameters=(*parameters, *SHAPE),
            problems=(InvalidRequest, *problems),
        ),
    )
    async def ticket(request: ApiRequest) -> Answer:
        return await show(request, template)

    @post(
        f"{place}/print",
        **described(
            f"print_{key}",
            tag="paper",
            right=right,
            summary=f"Print: {name}",
            description="""The same document, on the printer of `[printer]`. The answer is given once the printer has taken it;
with an `Idempotency-Key` a repeat prints nothing more.
503 `PRINTER_UNAVAILABLE` says why it did not: gone, out of paper, cover open, too slow.""",
            answer=Printed,
            body=EmptyBody,
            parameters=(OPTIONAL_KEY, *parameters, *STYLE, STRICT),
            problems=(InvalidRequest, PrinterFailed, *REPLAYABLE, *problems),
        ),
    )
    async def print_(request: ApiRequest) -> Answer:
        return await print_it(request, template)

    return ticket, print_


def _qr(kind: Literal["svg", "png"], media_type: str, size: str) -> HTTPRouteHandler:
    @get(
        f"/certifications/{{code:str}}/qr.{kind}",
        **described(
            f"get_qr_{kind}",
            tag="journal",
            right="look",
            summary=f"QR code as {kind.upper()}",
            description=f"The QR code of the receipt (`qrContent`), 34 mm wide, for an 80 mm ticket. {size}",
            media=(media_type,),
        ),
    )
    async def picture(request: ApiRequest) -> Answer:
        record = await journal.find(request.auth.worker, request.path_params["code"])
        image = await asyncio.to_thread(draw_qr, receipt(record).qr_content, kind)
        return Answer(image, media_type=media_type.encode(), headers=(UNCHANGING,))

    return picture


QR_CODES = (
    _qr("svg", "image/svg+xml", "Measured in millimetres."),
    _qr("png", "image/png", "270 dots, 203 dpi: 6 printer dots a module."),
)


@get(
    "/f/{address:str}",
    **described(
        "get_customer_page",
        tag="paper",
        summary="The customer's page of a sale that waited",
        description="""Its address stands on the slip, and it cannot be guessed. The slip without fiscal value until the sale is certified, then the
certified invoice; 404 for one that was taken back or refused.""",
        media=("text/html",),
        problems=(NotFound,),
        access="open",
    ),
)
async def customer_page(request: ApiRequest) -> Answer:
    deps = deps_of(request)
    worker, sale = await deps.workers.deferred_at(request.path_params["address"])
    if worker is None or sale is None:
        return _no_invoice(request)
    paper, style = deps.paper, Style(deps.paper.language)
    if sale.state == "certified" and sale.attempt_id:
        record = worker.ledger.peek(find_record, worker.book, sale.attempt_id)
        document = await paper.invoice(worker, record, style)
    elif sale.is_open and sale.invoice is not None:
        shop = await paper.shop_by_letterhead(worker, style.language, sale.invoice.letterhead)
        document = waiting_document(sale, sale.invoice, shop, style, customer_url(request, sale.address))
    else:
        return _no_invoice(request)
    return _customer_answer(request, document)


def _no_invoice(request: ApiRequest) -> Answer:
    """A sentence for a customer's browser. Raises NotFound for a program."""
    if "text/html" not in request.headers.get("accept", ""):
        raise NotFound(NOTHING)
    language = language_of(request.scope)
    words = TextLine(str(translate(NOTHING, language)))
    return _customer_answer(request, Document("mcfd", language, (words,)), status=404)


def _customer_answer(request: ApiRequest, document: Document, *, status: int = 200) -> Answer:
    headers = (ALONE, (b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer"))
    page = as_html(document, deps_of(request).paper.width).encode()
    return Answer(page, status=status, media_type=MEDIA["html"], headers=headers)


TICKETS = (
    *_routes("/certifications/{code:str}", "certification", "A certified invoice", _invoice, "look", problems=STORED),
    *_routes(
        "/reports/x", "x_report", "X report", _x, "report", parameters=RANGE, more="With `from` or `to`: a periodic X."
    ),
    *_routes("/reports/z/{z:str}", "closure", "Z report", _z, "report"),
    *_routes("/reports/month/{period:str}", "month", "Closure of a month", _calendar("month"), "report"),
    *_routes("/reports/year/{period:str}", "year", "Closure of a year", _calendar("year"), "report"),
    *_routes(
        "/reports/articles",
        "articles_report",
        "A report, articles",
        _articles,
        "report",
        parameters=RANGE,
        problems=(TooManyRequests,),
        more="Without a range: since the last one that was closed.",
    ),
    *_routes(
        "/reports/articles/{number:int}", "closed_articles", "A closed report of articles", _closed_articles, "report"
    ),
    *(
        handler
        for each in RANGE_REPORTS
        for handler in _routes(
            f"/reports/{each.name}", f"{each.name}_report", each.summary, _of_range(each), "report", parameters=RANGE
        )
    ),
)
