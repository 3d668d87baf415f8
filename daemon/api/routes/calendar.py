"""Closed months and years (0047 art. 23), and cash movements."""

from functools import partial
from typing import Annotated, Any, Final

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from msgspec import Meta

from common.language import Text
from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import ONCE, RANGE, REPLAYABLE, STORED, STRICT, described, paging
from daemon.api.http.answers import Answer, encoded, sent
from daemon.api.request.body import read_json, read_page, read_place
from daemon.api.request.outcome import call_of, own_warnings, read_optional, sent_once
from daemon.core.errors import InvalidRequest, MachineAttention, PeriodNotOver, TooManyActs
from daemon.core.ledger.entries import CalendarClosed, CalendarKind
from daemon.core.report.acts import CashBody, CashMovements, Moved
from daemon.core.report.calendar_report import CalendarReport
from daemon.store.tables.book.calendar_closures import calendar_list
from daemon.usecases.reports.acts import cash_moves, move_cash
from daemon.usecases.reports.close_period import calendar_closure, close_calendar

EXAMPLES: Final = {"month": "2026-01", "year": "2026"}

EXAMPLE: Final = {"kind": "deposit", "amount": 20000, "reason": "Fond de caisse"}

_described = partial(described, tag="reports", right="report")


class CalendarBody(msgspec.Struct):
    """Without a body, all that is over is closed."""

    period: Annotated[
        str | None, Meta(description="The month, as 2026-01, or the year, as 2026, that has to be closed")
    ] = None


class CalendarList(msgspec.Struct, frozen=True):
    nim: Annotated[str, Meta(description="The NIM of the path")]
    count: Annotated[int, Meta(description="Closures in this answer")]
    reports: Annotated[tuple[CalendarReport, ...], Meta(description="By their numbers, oldest first")]


def read_period(body: dict[str, Any]) -> str:
    """The named month or year; empty for none."""
    period = body.get("period")
    if period is None:
        return ""
    if not isinstance(period, str) or not period:
        raise InvalidRequest.at("period", Text("has to be a month, as 2026-01, or a year, as 2026"))
    return period


def _calendar(kind: CalendarKind) -> tuple[HTTPRouteHandler, ...]:
    """The routes that close, list and read the closures of one kind."""

    @post(
        f"/reports/{kind}",
        **_described(
            f"close_{kind}",
            right="close",
            summary=f"Close the {kind}",
            description=f"""A {kind} is closed by itself with the first Z or certification after it; this closes what is over at once, and answers with the last of
it. With `period`: that {kind}, also where it is closed already. It holds the Zs that were made in it; sales after the last of them are of
the {kind} of the Z that will hold them. 409 `PERIOD_NOT_OVER` while nothing is over: a {kind} is never closed early by a right clock. One that a fast
clock closed has, after the repair of the time, a second closure with the Zs since (`supplements`) when it is over.""",
            answer=CalendarReport,
            status=201,
            answer_text="Closed, now or before",
            parameters=(ONCE, STRICT),
            body=CalendarBody,
            example={"period": EXAMPLES[kind]},
            problems=(*REPLAYABLE, PeriodNotOver, MachineAttention, *STORED),
        ),
    )
    async def close(request: ApiRequest) -> Answer:
        body = await read_optional(request, CalendarBody)
        done = await close_calendar(
            request.auth.worker, kind, read_period(body.fields), call_of(request, body.raw, body.fields)
        )
        return sent_once(request, done, body.unknown)

    @get(
        f"/reports/{kind}",
        **_described(
            f"list_{kind}s",
            summary=f"Closures of {kind}s",
            description="As they were closed, oldest first. To read on, ask again with `after` = the last `number` received.",
            answer=CalendarList,
            parameters=paging("Closures at the most", "Only closures with a greater `number`"),
            problems=(InvalidRequest,),
        ),
    )
    async def listed(request: ApiRequest) -> Answer:
        worker = request.auth.worker
        after, limit = read_place(request)
        found = await worker.ledger.read(calendar_list, worker.book, kind, after=after, limit=limit)
        reports = [msgspec.Raw(placed.entry_of(CalendarClosed).body.encode()) for placed in found]
        return encoded({"nim": worker.book.nim, "count": len(reports), "reports": reports})

    @get(
        f"/reports/{kind}/{{period:str}}",
        **_described(
            f"get_{kind}",
            summary=f"One closure of a {kind}",
            description=f"As it was closed: by its number, or by its {kind}, as {EXAMPLES[kind]} (the last one, where another `supplements` the first).",
            answer=CalendarReport,
        ),
    )
    async def one(request: ApiRequest) -> Answer:
        return sent(await calendar_closure(request.auth.worker, kind, request.path_params["period"]))

    return close, listed, one


@post(
    "/cash",
    **_described(
        "move_cash",
        right="certify",
        summary="Cash in or out",
        description="""Cash put into the drawer or taken out beside sales: kept in the book and its chain, counted in X, Z and A (`cash`), never
sent to the machine, which need not be there. At most 60 an hour for a key (429 with `Retry-After`); a repeat is none more. Send an `Idempotency-Key`: without one, a repeat counts twice.""",
        answer=Moved,
        status=201,
        answer_text="Noted",
        body=CashBody,
        example=EXAMPLE,
        parameters=(ONCE, STRICT),
        problems=(*REPLAYABLE, TooManyActs, *STORED),
    ),
)
async def move(request: ApiRequest) -> Answer:
    raw, body = await read_json(request)
    done = await move_cash(request.auth.worker, body, call_of(request, raw, body))
    if more := own_warnings(request):
        word = msgspec.json.decode(done.value, type=Moved)
        answer = msgspec.structs.replace(word, warnings=(*word.warnings, *more))
        return encoded(answer, status=201, replayed=done.replayed)
    return sent(done.value, status=201, replayed=done.replayed)


@get(
    "/cash",
    **_described(
        "list_cash_movements",
        summary="Cash in and out",
        description="""The movements of a range, oldest first, and their sums; by default the last 31 days. To read on, ask again with `after` = the
last `id` received.""",
        answer=CashMovements,
        parameters=(*RANGE, *paging("Movements at the most", "Only those with a greater `id`")),
        problems=(InvalidRequest,),
    ),
)
async def listed(request: ApiRequest) -> Answer:
    return encoded(await cash_moves(request.auth.worker, *read_page(request)))


CLOSURES = (*_calendar("month"), *_calendar("year"))
