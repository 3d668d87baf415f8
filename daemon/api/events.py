"""What happens, as it happens: server-sent events for tills and screens on the shop's network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Final

from litestar import get

from daemon.api.answers import Header
from daemon.api.auth import in_force
from daemon.api.deps import ApiRequest, deps_of
from daemon.api.describe import Doc, Media, Parameter
from daemon.api.refusals import TooManyRequests
from daemon.api.stream import Stream
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.events import (
    ATTENTION,
    CERTIFIED,
    CLOSURE,
    CONNECTED,
    DISCONNECTED,
    TAX_SERVER,
    MachineEvent,
)
from daemon.core.receipt import Receipt
from daemon.core.reports import ZReport
from daemon.usecases.desk import Desk
from daemon.usecases.events import Bells, Told, starting_point, told_after

BEAT: Final = 10.0
"""Seconds: a comment when nothing happened, so that both ends notice a dead connection; and a look at what a command of
the command line may have written without ringing."""

OPENING: Final = b"retry: 2000\n: mcfd\n\n"
COMMENT: Final = b":\n\n"
MAX_DIGITS: Final = 18

# Proxies that hold an answer back until it is whole would hold it for ever (nginx's custom).
UNBUFFERED: Final[Header] = (b"x-accel-buffering", b"no")

_DATA: Final = {
    kind: {"$ref": f"#/components/schemas/{shape.__name__}"}
    for kind, shape in (
        (CERTIFIED, Receipt),
        (CLOSURE, ZReport),
        *((kind, MachineEvent) for kind in (CONNECTED, DISCONNECTED, ATTENTION, TAX_SERVER)),
    )
}
"""What the JSON of a `data` line is, by the event's type."""


@get(
    "/events",
    doc=Doc(
        tag="events",
        summary="Événements en direct · Live events",
        text="""Un flux `text/event-stream` : `cert.issued` (data : le reçu), `closure.created` (data : le rapport Z), `mcf.connected`,
`mcf.disconnected`, `mcf.attention` et `taxserver.alert`. Après une coupure, `Last-Event-ID` reprend où l'on s'était arrêté ; les
événements sont gardés une semaine.

Server-sent events: `cert.issued` (its data is the receipt), `closure.created` (the Z report), `mcf.connected`,
`mcf.disconnected`, `mcf.attention` and `taxserver.alert` (once a day while the tax server has not been reached for more than 7 days).
Without `Last-Event-ID` the stream begins now; with it, after that event: nothing is missed within a week. A comment comes every
10 seconds. A key may have 8 streams open; a client that does not read is cut, and so is one whose key is revoked.""",
        answer=None,
        answer_text="Un flux · A stream",
        media=(Media("text/event-stream", {"type": "string", "x-event-data": _DATA}),),
        mentions=(Receipt, ZReport, MachineEvent),
        headers=(
            Parameter(
                "Last-Event-ID",
                {"type": "string", "pattern": "^[0-9]{1,18}$"},
                "Le dernier événement reçu. The last event received.",
            ),
        ),
        problems=(InvalidRequest, TooManyRequests),
    ),
)
async def events(request: ApiRequest) -> Stream:
    deps, desk = deps_of(request), request.auth.desk
    last_seen = _last_seen(request)
    return Stream(
        _frames(
            desk,
            deps.bells,
            await starting_point(desk.ledger, last_seen),
            partial(in_force, deps, request.scope["headers"]),
        ),
        media_type=b"text/event-stream; charset=utf-8",
        headers=(UNBUFFERED,),
        place=deps.event_places.take(request.auth.key.id),
        stopping=deps.stopping,
        endless=True,
    )


async def _frames(desk: Desk, bells: Bells, after: int, is_welcome: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
    with bells.hung(desk.book) as bell:
        yield OPENING
        while True:
            bell.clear()
            told = await told_after(desk.ledger, desk.book, after)
            if not is_welcome():
                return
            if told:
                after = told[-1].id
                yield b"".join(frame(event) for event in told)
            elif not await _rung(bell):
                yield COMMENT


def frame(event: Told) -> bytes:
    """`data` is JSON on one line, so it needs no splitting."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.type.encode(), event.data)


async def _rung(bell: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(BEAT):
            await bell.wait()
    except TimeoutError:
        return False
    return True


def _last_seen(request: ApiRequest) -> int | None:
    sent = [value for name, value in request.scope["headers"] if name == b"last-event-id"]
    if not sent or sent == [b""]:
        return None
    if len(sent) == 1 and sent[0].isdigit() and len(sent[0]) <= MAX_DIGITS:
        return int(sent[0])
    raise InvalidRequest([FieldError("Last-Event-ID", "is not the id of an event")])


HANDLERS = (events,)
