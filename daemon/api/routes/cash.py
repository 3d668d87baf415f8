"""Cash into the drawer and out of it."""

from __future__ import annotations

from typing import Final

from litestar import get, post

from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import REPLAYABLE, STORED, described
from daemon.api.document.operation import ONCE, RANGE, STRICT, paging
from daemon.api.http.answers import Answer, encoded, sent
from daemon.api.request.body import json_of, read_bytes
from daemon.api.request.call import call_of
from daemon.api.request.query import MAX_LIMIT, integer, range_of, read_query
from daemon.core.errors import InvalidRequest, TooManyCashMoves
from daemon.core.report.acts import CashBody, CashMovements, Moved
from daemon.usecases.reports.move_cash import cash_moves, move_cash

MAX_ID: Final = 999_999_999
EXAMPLE: Final = {"kind": "deposit", "amount": 20000, "reason": "Fond de caisse"}


@post(
    "/cash",
    **described(
        "move_cash",
        tag="reports",
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
        problems=(*REPLAYABLE, TooManyCashMoves, *STORED),
    ),
)
async def move(request: ApiRequest) -> Answer:
    headers = request.scope["headers"]
    raw = await read_bytes(headers, request.receive)
    body = json_of(headers, raw)
    done = await move_cash(request.auth.worker, body, call_of(request, raw))
    return sent(done.value, status=201, replayed=done.replayed)


@get(
    "/cash",
    **described(
        "list_cash_movements",
        tag="reports",
        right="report",
        summary="Cash in and out",
        description="""The movements of a range, oldest first, and their sums; by default the last 31 days. To read on, ask again with `after` = the
last `id` received.""",
        answer=CashMovements,
        parameters=(
            *RANGE,
            *paging(
                "Movements at the most",
                "Only those with a greater `id`",
                most=MAX_LIMIT,
                last=MAX_ID,
            ),
        ),
        problems=(InvalidRequest,),
    ),
)
async def listed(request: ApiRequest) -> Answer:
    query = read_query(request, "from", "to", "limit", "after")
    start, end = range_of(request, query)
    limit = integer(query, "limit", default=MAX_LIMIT, least=1, most=MAX_LIMIT)
    after = integer(query, "after", default=0, least=0, most=MAX_ID)
    return encoded(await cash_moves(request.auth.worker, start, end, after, limit))


HANDLERS = (move, listed)
