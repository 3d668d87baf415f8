"""Sales by article: a look, and the report of the law that is closed and numbered; reports that were given out, as they were."""

from __future__ import annotations

from litestar import get, post

from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import REPLAYABLE, STORED, EmptyBody, described
from daemon.api.document.operation import ONCE, RANGE
from daemon.api.http.answers import Answer, encoded, sent
from daemon.api.refusals import TooManyRequests
from daemon.api.request.body import read_empty
from daemon.api.request.call import call_of
from daemon.api.request.query import range_of, read_query
from daemon.core.errors import InvalidRequest
from daemon.core.report.articles import ArticlesReport
from daemon.core.report.fiscal_reports import AReport, XReport
from daemon.usecases.reports import acts
from daemon.usecases.reports.articles import articles_report, articles_since

_ADDED = """By article (same name, code, category and group, at one price in one mode): quantities sold and returned, amounts with VAT as they were certified. A
credit note for a rebate (RRR) gives back money and no goods."""


@get(
    "/reports/articles",
    **described(
        "get_articles_report",
        tag="reports",
        right="report",
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
    **described(
        "close_articles_report",
        tag="reports",
        right="close",
        summary="Close the report of articles (A)",
        description=f"""The report of the law since the one before (SFE 5.1): numbered, kept, in the journal. {_ADDED} Each call closes another one, except a repeat
with the same `Idempotency-Key`.""",
        answer=ArticlesReport,
        status=201,
        answer_text="Closed",
        parameters=(ONCE,),
        body=EmptyBody,
        problems=(InvalidRequest, TooManyRequests, *REPLAYABLE, *STORED),
    ),
)
async def close_articles(request: ApiRequest) -> Answer:
    raw = await read_empty(request.scope["headers"], request.receive)
    with deps_of(request).exports.take(request.auth.key.id):
        done = await acts.close_articles(request.auth.worker, call_of(request, raw))
    return sent(done.value, status=201, replayed=done.replayed)


@get(
    "/reports/articles/{number:int}",
    **described(
        "get_closed_articles_report",
        tag="reports",
        right="report",
        summary="One closed report of articles",
        description="As it was answered.",
        answer=ArticlesReport,
    ),
)
async def closed_articles(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    return sent(acts.body_of(await worker.ledger.closed_articles(worker.book, request.path_params["number"])))


@get(
    "/reports/given/{number:int}",
    **described(
        "get_given_report",
        tag="reports",
        right="report",
        summary="A report that was given out on paper",
        description="As it was, by the `id` of its line in the journal's files.",
        answer=XReport | AReport | ArticlesReport,
    ),
)
async def issued_report(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    return sent(acts.body_of(await worker.ledger.issued_report(worker.book, request.path_params["number"])))


HANDLERS = (articles, close_articles, closed_articles, issued_report)
