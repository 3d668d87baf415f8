"""Server-sent events for tills and screens on the shop's network."""

import re
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Final

from litestar import get

from common.language import Text
from daemon.api.access.auth import in_force
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import described, header, matching
from daemon.api.http.answers import Header, Stream
from daemon.api.refusals import TooManyRequests
from daemon.core.errors import InvalidRequest
from daemon.core.events import MachineEvent, OutageEvent
from daemon.core.report.fiscal_reports import ZReport
from daemon.core.report.receipt import Receipt
from daemon.usecases.delivery.events import (
    EventNotifier,
    LastEventId,
    SentEvent,
    Start,
    events_for,
    has_come,
    reset_event,
    starting_point,
)
from daemon.usecases.worker.machine_worker import MachineWorker

BEAT: Final = 10.0
"""Seconds between comments while nothing happens, so that both ends notice a dead connection; also between checks for
events that a command has written."""

OPENING: Final = b"retry: 2000\n: mcfd\n\n"
COMMENT: Final = b":\n\n"
_EVENT_ID: Final = re.compile("(?:([0-9]{1,12})-)?([0-9]{1,18})")

# Proxies that hold an answer back until it is whole would hold it for ever (nginx's custom).
UNBUFFERED: Final[Header] = (b"x-accel-buffering", b"no")


@get(
    "/events",
    **described(
        "stream_events",
        tag="events",
        right="report",
        lasting=True,
        summary="Live events",
        description="""Server-sent events: `cert.issued` (its data is a `Receipt`), `closure.created` (a `ZReport`), `mcf.connected`,
`mcf.disconnected`, `mcf.slow` (38h has no answer after 3 seconds, of a credit note after 60; it is waited for), `mcf.attention`, `taxserver.alert` (once a day while the tax server has not been reached for more than 7 days)
and `printer.failed` (a Z was not printed); the data of these is a `MachineEvent`. `machine.outage` and `machine.back` say that an outage is in
the register, and that it is over: their data is an `OutageEvent`.
Without `Last-Event-ID` the stream begins now; with it, after that event: nothing is missed within a week. Where it cannot go on there, since
the event is older than a week (`reason` `expired`) or the ledger was put back from a backup (`restored`), a `reset` comes first: read the journal. A comment comes every
10 seconds. A key may have 8 streams open; a client that does not read is cut, and so is one whose key is revoked.""",
        answer_text="A stream",
        media=("text/event-stream",),
        mentions=(Receipt, ZReport, MachineEvent, OutageEvent),
        parameters=(header("Last-Event-ID", "The last event received.", matching("^([0-9]{1,12}-)?[0-9]{1,18}$")),),
        problems=(InvalidRequest, TooManyRequests),
    ),
)
async def events(request: ApiRequest) -> Stream:
    deps, worker, key = deps_of(request), request.auth.worker, request.auth.key
    start = await starting_point(worker.events, _last_seen(request))
    return Stream(
        _frames(
            deps.workers.get(key.nim, key.mode) or worker,
            deps.notifier,
            start,
            partial(in_force, deps, request.scope["headers"]),
        ),
        media_type=b"text/event-stream; charset=utf-8",
        headers=(UNBUFFERED,),
        place=deps.event_streams.take(key.id),
        stopping=deps.stopping,
        endless=True,
    )


async def _frames(
    original: MachineWorker, notifier: EventNotifier, start: Start, is_welcome: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Events of the machine in use: after a take-over those of its spare, within a beat."""
    after = start.after
    yield OPENING
    if start.reset:
        yield frame(reset_event(original.in_use.book, start, original.now()), start.epoch)
    while True:
        worker = original.in_use
        with notifier.listening(worker.book) as news:
            while worker is original.in_use:
                news.clear()
                events = await events_for(worker.events, worker.ledger, worker.book, after)
                if not is_welcome():
                    return
                if events:
                    after = events[-1].id
                    yield b"".join(frame(event, start.epoch) for event in events)
                elif not await has_come(news, BEAT):
                    yield COMMENT


def frame(event: SentEvent, epoch: int) -> bytes:
    """The event as bytes; `data` is JSON on one line. After a restore the id has the ledger's epoch."""
    before = b"%d-" % epoch if epoch else b""
    return b"id: %s%d\nevent: %s\ndata: %s\n\n" % (before, event.id, event.type.encode(), event.data)


def _last_seen(request: ApiRequest) -> LastEventId | None:
    sent = [value for name, value in request.scope["headers"] if name == b"last-event-id"]
    if not sent or sent == [b""]:
        return None
    found = _EVENT_ID.fullmatch(sent[0].decode("latin-1")) if len(sent) == 1 else None
    if found is None:
        raise InvalidRequest.at("Last-Event-ID", Text("is not the id of an event"))
    return LastEventId(int(found[1] or 0), int(found[2]))
