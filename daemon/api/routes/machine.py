"""The key's terms, the machine's state, and the sandbox's clock, which a test key may advance to test a Z of another
day, a month or an alert (decision 40)."""

from typing import Annotated, Final, Literal

import msgspec
from litestar import get, post
from msgspec import Meta

from common.language import Text
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.access.rehearsal import SandboxClock
from daemon.api.document.describe import (
    AT_THE_MACHINE,
    ONCE,
    OPTIONAL_KEY,
    REPLAYABLE,
    STORED,
    STRICT,
    EmptyBody,
    described,
)
from daemon.api.http.answers import Answer, encoded
from daemon.api.request.body import read_json
from daemon.api.request.outcome import call_of, read_optional, sent_once
from daemon.core.clock import DAY, HOUR, millis_text
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.unknown import fields_of, refusals_of, unknown_of
from daemon.core.people import USUAL, Role
from daemon.core.report.machine_info import MachineInfo
from daemon.usecases.certification.idempotency import answered_once
from daemon.usecases.reports import inspect
from daemon.usecases.reports.inspect import CancelAnswer

MAX_DAYS: Final = 400
MAX_HOURS: Final = 48
MAX_AHEAD: Final = 3660 * DAY
_SERVERS: Final = ("reachable", "unreachable")

Days = Annotated[int, Meta(ge=0, le=MAX_DAYS)]
Hours = Annotated[int, Meta(ge=0, le=MAX_HOURS)]


@get(
    "/info",
    **described(
        "get_machine_info",
        tag="machine",
        right="look",
        summary="State of the machine",
        description="""Read live (at most once a second): counters, rates, merchant, link to the tax server. `taxServer.alert` is true after 7 days
without contact: the law wants a daily warning.""",
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
        parameters=(ONCE, STRICT),
        body=EmptyBody,
        problems=(*AT_THE_MACHINE, *REPLAYABLE, *STORED),
    ),
)
async def cancel_pending(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    body = await read_optional(request, EmptyBody)
    done = await inspect.cancel_pending(worker, call_of(request, body.raw, body.fields))
    return sent_once(request, done, body.unknown, status=200)


class ClockBody(msgspec.Struct, kw_only=True, rename="camel"):
    """How far the sandbox's time moves on; it never goes back."""

    days: Annotated[Days | None, Meta(description="Days")] = None
    hours: Annotated[Hours | None, Meta(description="Hours, beside the days")] = None
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
        parameters=(OPTIONAL_KEY,),
        problems=(*REPLAYABLE, *STORED),
    ),
)
async def move_clock(request: ApiRequest) -> Answer:
    worker = request.auth.worker
    sandbox = deps_of(request).sandboxes.get(worker.book.id)
    if sandbox is None:
        raise NotFound(Text("only the sandbox's time can be moved: a test key is needed"))
    raw, body = await read_json(request)

    async def act() -> bytes:
        hours, reachable = read_move_of_clock(body)
        if sandbox.now() + hours * HOUR > deps_of(request).clock() + MAX_AHEAD:
            raise InvalidRequest.at("days", Text("the sandbox's time goes ten years ahead at the most"))
        return msgspec.json.encode(await sandbox.move_clock(hours * 3600, reachable=reachable))

    return sent_once(
        request, await answered_once(worker, call_of(request, raw, body), act, "move clock"), (), status=200
    )


def read_move_of_clock(body: dict[str, object]) -> tuple[int, bool | None]:
    """Hours, and whether the tax server is reachable (None for no change)."""
    errors = refusals_of(unknown_of(body, fields_of(ClockBody)))
    fields = Fields(body, "", errors)
    hours = 24 * fields.whole("days", MAX_DAYS) + fields.whole("hours", MAX_HOURS)
    server = fields.choice("taxServer", _SERVERS, "")
    if errors:
        raise InvalidRequest(errors)
    return hours, server == "reachable" if server else None


class Me(msgspec.Struct, frozen=True, rename={"expires_at": "expiresAt"}):
    id: Annotated[str, Meta(description="As `mcfd keys list` shows it")]
    label: Annotated[str, Meta(description="As given when the key was made")]
    mode: Annotated[Literal["live", "test"], Meta(description="live, or test for the sandbox")]
    nim: Annotated[str, Meta(description="The one NIM this key is for")]
    connected: Annotated[bool, Meta(description="Whether its machine answers")]
    role: Annotated[Role, Meta(description="What it may do: seller, reader, manager or technician")] = USUAL
    expires_at: Annotated[str | None, Meta(description="When it ends; null for never")] = None


@get(
    "/v1/me",
    **described(
        "get_me",
        tag="key",
        right="look",
        summary="The key",
        description="What this key is for, and whether its machine answers.",
        answer=Me,
        access="key",
    ),
)
async def me(request: ApiRequest) -> Answer:
    key, worker = request.auth.key, request.auth.found
    return encoded(
        Me(
            id=str(key.id),
            label=key.label,
            mode=key.mode,
            nim=key.nim,
            connected=worker is not None and worker.connected,
            role=key.role,
            expires_at=millis_text(key.expires_at) if key.expires_at else None,
        )
    )
