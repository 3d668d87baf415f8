"""The sandbox's own time: moved on by a test key, to see a Z of another day, a month, an alert (decision 40)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from litestar import post
from msgspec import Meta

from common.language import Text
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.access.rehearsal import SandboxClock
from daemon.api.document.describe import STORED, described
from daemon.api.http.answers import Answer, encoded
from daemon.api.request.body import read_json
from daemon.core.clock import DAY
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.unknown import refusals_of, unknown_of

MOST_DAYS: Final = 400
MOST_HOURS: Final = 48
MOST_AHEAD: Final = 3660 * DAY
_SERVERS: Final = ("reachable", "unreachable")


class ClockBody(msgspec.Struct, kw_only=True, rename="camel"):
    """How far the sandbox's time moves on; it never goes back."""

    days: Annotated[int, Meta(ge=0, le=MOST_DAYS, description="Days")] = 0
    hours: Annotated[int, Meta(ge=0, le=MOST_HOURS, description="Hours, beside the days")] = 0
    tax_server: Annotated[
        Literal["reachable", "unreachable"] | None,
        Meta(
            description="Whether the simulated machine reaches the tax server, from before the move until it is said again or mcfd is restarted"
        ),
    ] = None


@post(
    "/test/clock",
    **described(
        "move_test_clock",
        tag="certification",
        right="certify",
        summary="Move the sandbox's time",
        description="""With a test key alone: the time of the sandbox's book and of its machine goes on by that much, over restarts too. No live book
and no clock of the box is touched. 404 for a live key.""",
        answer=SandboxClock,
        answer_text="Moved",
        body=ClockBody,
        example={"days": 8, "taxServer": "unreachable"},
        problems=(InvalidRequest, *STORED),
    ),
)
async def move_clock(request: ApiRequest) -> Answer:
    sandbox = deps_of(request).sandboxes.get(request.auth.worker.book.id)
    if sandbox is None:
        raise NotFound(Text("only the sandbox's time can be moved: a test key is needed"))
    _, body = await read_json(request.scope["headers"], request.receive)
    errors = refusals_of(unknown_of(body, frozenset(ClockBody.__struct_encode_fields__)))
    fields = Fields(body, "", errors)
    hours = 24 * _whole(fields, "days", MOST_DAYS) + _whole(fields, "hours", MOST_HOURS)
    server = fields.choice("taxServer", _SERVERS, "")
    if sandbox.now() + hours * 3_600_000 > deps_of(request).clock() + MOST_AHEAD:
        fields.fault("days", Text("the sandbox's time goes ten years ahead at the most"))
    if errors:
        raise InvalidRequest(errors)
    return encoded(await sandbox.move_clock(hours * 3600, reachable=server == "reachable" if server else None))


def _whole(fields: Fields, name: str, most: int) -> int:
    value = fields.values.get(name)
    if value is None:
        return 0
    if type(value) is int and 0 <= value <= most:
        return value
    fields.fault(name, Text("has to be a whole number from {least} to {most}", least=0, most=most))
    return 0


HANDLERS = (move_clock,)
