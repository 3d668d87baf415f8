"""`POST /closures` and `POST /presence`: Standard Webhooks, a key for each box. `POST /join`: a box joins by a code for one use
(`common.wire.joining`)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Request, Response, post

from common.wire.closure import MOST_BYTES, read_trial
from common.wire.errors import BadEvent
from common.wire.joining import MOST_BYTES as MOST_JOIN_BYTES
from common.wire.joining import JoinRefusal
from common.wire.signing import ID, NotSigned, receipt_of
from headquarters.api.access import STATUS, address_of_request, mark_key_accepted, problem
from headquarters.core.reception import Message, MessageRefused
from headquarters.intake.joining import JoinService, TooManyGuesses
from headquarters.intake.reception import Reception
from headquarters.store.book.closures import TakeOutcome
from headquarters.store.database import StoreError
from headquarters.store.joining import JoinRefused

AnyRequest = Request[Any, Any, Any]
RETRY_SECONDS = "5"

JOIN_STATUS: Final[dict[JoinRefusal, int]] = {
    "CODE_UNKNOWN": 403,
    "CODE_USED": 409,
    "CODE_EXPIRED": 410,
    "OTHER_MACHINES": 422,
    "KEY_REVOKED": 409,
}
JOIN_DETAIL: Final[dict[JoinRefusal, str]] = {
    "CODE_UNKNOWN": "no such code was given here",
    "CODE_USED": "another box has joined with this code",
    "CODE_EXPIRED": "the code has ended; headquarters gives another one",
    "OTHER_MACHINES": "the code is for other machines",
    "KEY_REVOKED": "the key of this box is revoked; it makes another one",
}


@post("/closures", status_code=200, request_max_body_size=None)
async def take_closure(request: AnyRequest, reception: Reception) -> Response[bytes]:
    """200 with a receipt: it is on disk, or it was a trial. 409 with a receipt: it was already. Nothing else is a delivery."""
    message = await _message(request)
    try:
        if (trial := read_trial(message.body)) is not None:
            await reception.trial(message, trial)
            mark_key_accepted(request)
            return _with_receipt(message, 200)
        outcome = await reception.closure(message)
    except MessageRefused as refused:
        return _refused(refused)
    except StoreError:
        return _later()
    mark_key_accepted(request)
    if outcome is TakeOutcome.FORK:
        detail = "another closure has this number or id; this one is kept as evidence"
        return problem(STATUS["fork"], "FORK", detail)
    return _with_receipt(message, 200 if outcome is TakeOutcome.STORED else 409)


def _with_receipt(message: Message, status: int) -> Response[bytes]:
    receipt = msgspec.json.encode(receipt_of(message.headers[ID], message.body))
    return Response(receipt, status_code=status, media_type="application/json")


@post("/presence", status_code=200, request_max_body_size=None)
async def take_presence(request: AnyRequest, reception: Reception) -> Response[bytes]:
    """200 with what the box shall send again."""
    try:
        answer = await reception.presence(await _message(request))
    except MessageRefused as refused:
        return _refused(refused)
    except StoreError:
        return _later()
    mark_key_accepted(request)
    return Response(msgspec.json.encode(answer), media_type="application/json")


async def _message(request: AnyRequest) -> Message:
    """Read no further than one byte past the most that a closure has."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            break
    headers = {name: text for name, text in request.headers.items() if name.startswith("webhook-")}
    return Message(via="https", headers=headers, body=bytes(body[: MOST_BYTES + 1]))


def _refused(refused: MessageRefused) -> Response[bytes]:
    """To a stranger no more than that: whether a NIM is known here is not disclosed."""
    status = STATUS[refused.reason]
    if status == STATUS["unsigned"]:
        return problem(status, "UNAUTHENTICATED", "no signature of a key that is known for this NIM")
    return problem(status, refused.reason.upper(), str(refused))


def _later() -> Response[bytes]:
    return problem(503, "STORAGE_UNAVAILABLE", "nothing was kept; try again", {"Retry-After": RETRY_SECONDS})


@post("/join", status_code=200, request_max_body_size=MOST_JOIN_BYTES)
async def join(request: Request[Any, Any, Any], joining: JoinService) -> Response[bytes]:
    """200 with what the box needs, also when it asks again."""
    headers = {name: text for name, text in request.headers.items() if name.startswith("webhook-")}
    address = address_of_request(request, is_direct=joining.is_direct)
    try:
        answer = await joining.join(headers, await request.body(), address)
    except BadEvent as error:
        return problem(400, "BAD_REQUEST", str(error))
    except NotSigned as error:
        return problem(401, "UNAUTHENTICATED", str(error))
    except TooManyGuesses as error:
        return problem(429, "TOO_MANY_REQUESTS", str(error), {"Retry-After": str(error.seconds)})
    except JoinRefused as refused:
        detail = JOIN_DETAIL[refused.reason] + (f": {', '.join(refused.machines)}" if refused.machines else "")
        return problem(JOIN_STATUS[refused.reason], refused.reason, detail)
    mark_key_accepted(request)
    return Response(msgspec.json.encode(answer), media_type="application/json")
