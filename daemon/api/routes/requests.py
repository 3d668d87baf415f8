"""GET a request by its Idempotency-Key: for tills that lost the answer, or ask from elsewhere."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

import msgspec
from litestar import get
from msgspec import Meta

from common.language import Text
from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import described
from daemon.api.http.answers import Answer, encoded
from daemon.api.http.middleware import language_of
from daemon.api.problems import Problem, problem_of
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.report.receipt import Receipt, receipt
from daemon.usecases.certification.attempt import failure_of
from daemon.usecases.certification.requests import RequestStatus, find_request


class RequestOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    status: Annotated[
        RequestStatus,
        Meta(
            description="`waiting` for its turn; `on_the_line`: the machine was asked; `in_doubt`: only the machine or an operator can tell; "
            "`certified`; `refused` by the machine; `abandoned`: nothing was certified; `answered`: a Z, cash or cancel-pending that is done"
        ),
    ]
    receipt: Annotated[Receipt | None, Meta(description="When certified, as the request was answered")] = None
    problem: Annotated[Problem | None, Meta(description="When refused or abandoned: what the request was answered")] = (
        None
    )


@get(
    "/requests/{key:path}",
    **described(
        "get_request",
        tag="certification",
        right="certify",
        summary="What became of a request",
        description="""Of the POST that was sent with this `Idempotency-Key`, as long as keys are remembered. It certifies nothing and waits for
nothing. 404 for a key that was never seen, and for a request that was refused before anything was stored (400, 409, 422 for its content).""",
        answer=RequestOutcome,
        problems=(InvalidRequest, NotFound),
    ),
)
async def get_request(request: ApiRequest) -> Answer:
    # As it was sent: a router may take slashes away.
    key = unquote(request.scope["raw_path"].partition(b"/requests/")[2].decode("ascii"))
    found = await find_request(request.auth.worker, key)
    if found is None:
        raise NotFound(Text("no request with this Idempotency-Key is known"))
    language = language_of(request.scope)
    is_certified = found.status == "certified" and found.record is not None
    failure = failure_of(found.record) if found.record and found.status in ("refused", "abandoned") else None
    return encoded(
        RequestOutcome(
            found.status,
            receipt(found.record, language) if is_certified and found.record else None,
            None if failure is None else problem_of(failure, request.scope["state"]["request_id"], language),
        )
    )


HANDLERS = (get_request,)
