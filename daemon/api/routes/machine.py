"""The machine itself: what it says, and clearing an invoice that was left open on it."""

from __future__ import annotations

from litestar import get, post

from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import AT_THE_MACHINE, REPLAYABLE, STORED, EmptyBody, described
from daemon.api.document.operation import ONCE
from daemon.api.http.answers import Answer, encoded, sent
from daemon.api.request.body import read_empty
from daemon.api.request.call import call_of
from daemon.core.report.machine_info import MachineInfo
from daemon.usecases.reports import inspect
from daemon.usecases.reports.inspect import CancelAnswer


@get(
    "/info",
    **described(
        "get_machine_info",
        tag="machine",
        right="look",
        summary="State of the machine",
        description="""Read live (at most once a second): counters, rates, merchant, link to the tax server. `taxServer.alert` is true after 7 days
without contact: the law wants the user told, daily.""",
        answer=MachineInfo,
        problems=AT_THE_MACHINE,
    ),
)
async def machine_info(request: ApiRequest) -> Answer:
    return encoded(await inspect.info(request.auth.worker))


@post(
    "/cancel-pending",
    **described(
        "cancel_pending_invoice",
        tag="machine",
        right="close",
        summary="Cancel an invoice left open",
        description="Cancels an invoice that other software left open on the machine; never one that mcfd itself is certifying.",
        answer=CancelAnswer,
        parameters=(ONCE,),
        body=EmptyBody,
        problems=(*AT_THE_MACHINE, *REPLAYABLE, *STORED),
    ),
)
async def cancel_pending(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    raw = await read_empty(request.scope["headers"], request.receive)
    done = await inspect.cancel_pending(worker, call_of(request, raw))
    return sent(done.value, replayed=done.replayed)


HANDLERS = (machine_info, cancel_pending)
