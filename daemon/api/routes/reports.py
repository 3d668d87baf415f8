"""The reports X, Z and A, the history of Z closures, sales by article, and issued reports."""

from functools import partial
from typing import Annotated, Any, Final

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from msgspec import Meta

from common.language import Text
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import (
    AT_THE_MACHINE,
    ONCE,
    RANGE,
    REPLAYABLE,
    STORED,
    STRICT,
    EmptyBody,
    described,
    paging,
)
from daemon.api.http.answers import Answer, encoded, sent
from daemon.api.refusals import TooManyRequests
from daemon.api.request.body import range_of, read_page, read_query
from daemon.api.request.outcome import call_of, read_optional, sent_once
from daemon.core.errors import FieldError, InvalidRequest, NothingToClose, PeriodEnded, ZNumberUnknown
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.unknown import fields_of, refusals_of, unknown_of
from daemon.core.ledger.entries import ReportAct
from daemon.core.money import MAX_AMOUNT
from daemon.core.report.articles import ArticlesReport
from daemon.core.report.fiscal_reports import AReport, HistoryRecord, XReport, ZReport
from daemon.range_reports.table import RANGE_REPORTS, RangeReport
from daemon.store.tables.book.acts import closed_articles, issued_report
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.reports import acts, report
from daemon.usecases.reports.close_period import close_period
from daemon.usecases.reports.report import articles_report, articles_since

_ADDED = """By article (same name, code, category and group, at one price in one mode): quantities sold and returned, amounts with VAT as they were certified. A
credit note for a rebate (RRR) gives back money and no goods."""

_described = partial(described, tag="reports", right="report")


class ClosePeriodBody(msgspec.Struct, rename="camel"):
    """An optional body."""

    cash_counted: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_AMOUNT)] | None,
        Meta(description="What a person counted in the drawer, whole XOF: kept with the Z"),
    ] = None
    after_z: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_AMOUNT)] | None,
        Meta(
            description="The last `z_number` known, 0 for none. If there is a later one: 409 `PERIOD_ENDED`, nothing is closed"
        ),
    ] = None


CLOSING: Final = fields_of(ClosePeriodBody)


class History(msgspec.Struct, frozen=True):
    nim: Annotated[str, Meta(description="The NIM of the path")]
    count: Annotated[int, Meta(description="Records in this answer")]
    reports: Annotated[tuple[HistoryRecord, ...], Meta(description="Oldest first")]


@get(
    "/reports/x",
    **_described(
        "get_x_report",
        summary="X report",
        description="""The open period; it closes nothing. With `from` or `to`: a periodic X over the
certifications of that range. A certification enters about two seconds after its answer. Totals are net of credit notes;
`by_type` and `by_type_and_group` are positive.""",
        answer=XReport,
        parameters=RANGE,
        problems=(InvalidRequest,),
    ),
)
async def x_report(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    query = read_query(request, "from", "to")
    if query:
        return encoded(await report.x_between(worker, *range_of(request, query)))
    return encoded(await report.x_report(worker))


@post(
    "/reports/z",
    **_described(
        "close_period",
        right="close",
        summary="Close the period (Z)",
        description="""Closes the period: a Z number, totals frozen, the machine's counters read live. Each call closes a new period, except a
repeat with the same `Idempotency-Key`, which gets the same Z. What was counted in the drawer may come
with it. A period without certifications may be closed too. `warnings` beside the report names fields of the body that are not known. Totals are net of credit notes; `by_type` and `by_type_and_group` are positive.""",
        answer=ZReport,
        status=201,
        answer_text="The period is closed",
        parameters=(ONCE, STRICT),
        body=ClosePeriodBody,
        problems=(*AT_THE_MACHINE, *REPLAYABLE, InvalidRequest, PeriodEnded, ZNumberUnknown, *STORED),
    ),
)
async def z_report(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    body = await read_optional(request, ClosePeriodBody)
    in_url = unknown_of(request.query_params, CLOSING)
    if conditions := tuple(each for each in (*body.unknown, *in_url) if each.near == "afterZ"):
        raise InvalidRequest(refusals_of(conditions))  # ignored, it would close what it was to leave open
    if misplaced := CLOSING & request.query_params.keys():
        raise InvalidRequest([FieldError(name, Text("belongs in the body")) for name in sorted(misplaced)])
    done = await close_period(worker, call_of(request, body.raw, body.fields), *read_closing(body.fields))
    return sent_once(request, Answered(done.value.body, done.replayed), body.unknown)


def read_closing(body: dict[str, Any]) -> tuple[int | None, int | None]:
    """`cashCounted` and `afterZ`, each None if it was not sent."""
    fields = Fields(body, "", [])
    found = {"cashCounted": fields.francs("cashCounted"), "afterZ": fields.whole("afterZ", MAX_AMOUNT)}
    if fields.errors:
        raise InvalidRequest(fields.errors)
    counted, after = (None if body.get(name) is None else value for name, value in found.items())
    return counted, after


def _of_range(each: RangeReport) -> HTTPRouteHandler:
    @get(
        f"/reports/{each.name}",
        **_described(
            f"get_{each.name}_report",
            summary=each.summary,
            description=each.description,
            answer=each.answer,
            parameters=RANGE,
            problems=(InvalidRequest,),
        ),
    )
    async def of_range(request: ApiRequest) -> Answer:
        start_and_end = range_of(request, read_query(request, "from", "to"))
        return encoded(await each.read(request.auth.worker, *start_and_end))

    return of_range


OF_A_RANGE = tuple(map(_of_range, RANGE_REPORTS))


@get(
    "/reports",
    **_described(
        "list_closures",
        summary="History of Z closures",
        description="""The Z closures created in a range, oldest first, as they are stored; by default the last 31 days. To read on, ask again with
`after` = the last `z_number` received.""",
        answer=History,
        parameters=(*RANGE, *paging("Records at the most", "Only closures with a greater `z_number`")),
        problems=(InvalidRequest,),
    ),
)
async def history(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    records = await report.history(worker, *read_page(request))
    return encoded(History(nim=worker.book.nim, count=len(records), reports=tuple(records)))


@get(
    "/reports/z/{z:str}",
    **_described(
        "get_closure",
        summary="One Z closure",
        description="A stored closure in full, as it was answered: by its number or by its `report_id`.",
        answer=ZReport,
    ),
)
async def stored_z(request: ApiRequest) -> Answer:
    return sent((await report.closure(request.auth.worker, request.path_params["z"])).body)


@get(
    "/reports/articles",
    **_described(
        "get_articles_report",
        summary="Sales by article",
        description=f"""{_ADDED} Without a range: since the last report that was closed. Invoices are read one by one, which takes some seconds for a
year; a key may ask for two at a time. More than 20 000 different articles: 422, ask for a shorter time.""",
        answer=ArticlesReport,
        parameters=RANGE,
        problems=(InvalidRequest, TooManyRequests),
    ),
)
async def articles(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    query = read_query(request, "from", "to")
    with deps_of(request).exports.take(request.auth.key.id):
        if query:
            return encoded(await articles_report(worker, *range_of(request, query)))
        return encoded((await articles_since(worker))[1])


@post(
    "/reports/articles",
    **_described(
        "close_articles_report",
        right="close",
        summary="Close the report of articles (A)",
        description=f"""The report of the law since the one before (SFE 5.1): numbered, kept, in the journal. {_ADDED} Each call closes another one, except a repeat
with the same `Idempotency-Key`; 409 `NOTHING_TO_CLOSE` where nothing was sold since.""",
        answer=ArticlesReport,
        status=201,
        answer_text="Closed",
        parameters=(ONCE, STRICT),
        body=EmptyBody,
        problems=(InvalidRequest, NothingToClose, TooManyRequests, *REPLAYABLE, *STORED),
    ),
)
async def close_articles(request: ApiRequest) -> Answer:
    body = await read_optional(request, EmptyBody)
    with deps_of(request).exports.take(request.auth.key.id):
        done = await acts.close_articles(request.auth.worker, call_of(request, body.raw, body.fields))
    return sent_once(request, done, body.unknown)


@get(
    "/reports/articles/{number:int}",
    **_described(
        "get_closed_articles_report",
        summary="One closed report of articles",
        description="As it was answered.",
        answer=ArticlesReport,
    ),
)
async def closed_articles_report(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    placed = await worker.ledger.read(closed_articles, worker.book, request.path_params["number"])
    return sent(placed.entry_of(ReportAct).body.encode())


@get(
    "/reports/given/{number:int}",
    **_described(
        "get_given_report",
        summary="A report that was given out on paper",
        description="As it was, by the `id` of its line in the journal's files.",
        answer=XReport | AReport | ArticlesReport,
    ),
)
async def report_on_paper(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    placed = await worker.ledger.read(issued_report, worker.book, request.path_params["number"])
    return sent(placed.entry_of(ReportAct).body.encode())
