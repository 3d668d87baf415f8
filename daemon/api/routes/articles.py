"""Sales by article."""

from __future__ import annotations

from litestar import get

from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import described
from daemon.api.document.operation import RANGE
from daemon.api.http.answers import Answer, encoded
from daemon.api.refusals import TooManyRequests
from daemon.api.request.query import range_of, read_query
from daemon.core.errors import InvalidRequest
from daemon.core.report.articles import ArticlesReport
from daemon.usecases.reports.articles import articles_report


@get(
    "/reports/articles",
    **described(
        "get_articles_report",
        tag="reports",
        right="report",
        summary="Sales by article",
        description="""By article (same name, code and group): quantities sold and returned, amounts with VAT as the till gave them. A credit note for a rebate
(RRR) gives back money and no goods. Invoices are read one by one, which takes some seconds for a year; a key may ask for two at a
time. More than 20 000 different articles: 422, ask for a shorter time.""",
        answer=ArticlesReport,
        parameters=RANGE,
        problems=(InvalidRequest, TooManyRequests),
    ),
)
async def articles(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    start, end = range_of(request, read_query(request, "from", "to"))
    with deps_of(request).exports.take(request.auth.key.id):
        return encoded(await articles_report(worker, start, end))


HANDLERS = (articles,)
