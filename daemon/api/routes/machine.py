"""The machine itself: what it says, and clearing an invoice that was left open on it."""

from __future__ import annotations

from litestar import get

from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import AT_THE_MACHINE, REPLAYABLE, STORED, Doc, change
from daemon.api.document.shapes import EmptyBody
from daemon.api.http.answers import Answer, encoded, sent
from daemon.api.request.body import read_empty
from daemon.api.request.call import call_of
from daemon.core.report.machine_info import MachineInfo
from daemon.language import Text
from daemon.usecases.reports import inspect
from daemon.usecases.reports.inspect import CancelAnswer


@get(
    "/info",
    doc=Doc(
        tag="machine",
        right="look",
        summary=Text("State of the machine"),
        text=Text("""Read live (at most once a second): counters, rates, merchant, link to the tax server. `taxServer.alert` is true after 7 days
without contact: the law wants the user told, daily."""),
        answer=MachineInfo,
        problems=AT_THE_MACHINE,
    ),
)
async def machine_info(request: ApiRequest) -> Answer:
    return encoded(await inspect.info(request.auth.worker))


@change(
    "/cancel-pending",
    doc=Doc(
        tag="machine",
        right="close",
        summary=Text("Cancel an invoice left open"),
        text=Text(
            "Cancels an invoice that other software left open on the machine; never one that mcfd itself is certifying."
        ),
        answer=CancelAnswer,
        body=EmptyBody,
        body_required=False,
        example={},
        problems=(*AT_THE_MACHINE, *REPLAYABLE, *STORED),
    ),
)
async def cancel_pending(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    raw = await read_empty(request.scope["headers"], request.receive)
    done = await inspect.cancel_pending(worker, call_of(request, raw))
    return sent(done.value, replayed=done.replayed)


HANDLERS = (machine_info, cancel_pending)
