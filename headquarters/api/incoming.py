"""`POST /closures` and `POST /presence`: Standard Webhooks, a key for each box. `POST /join`: a box joins by a code for one use
(`common.wire.joining`)."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, post

from common.wire.closure import MOST_BYTES, read_trial
from common.wire.joining import MOST_BYTES as MOST_JOIN_BYTES
from common.wire.signing import ID, receipt_of
from headquarters.api.access import address_of_request, mark_key_accepted
from headquarters.core.reception import Message, MessageRefused
from headquarters.intake.joining import JoinService
from headquarters.intake.reception import Reception
from headquarters.store.book.closures import TakeOutcome

AnyRequest = Request[Any, Any, Any]


@post("/closures", status_code=200, request_max_body_size=None)
async def take_closure(request: AnyRequest, reception: Reception) -> Response[bytes]:
    """200 with a receipt: it is on disk, or it was a trial. 409 with a receipt: it was already. Nothing else is a delivery."""
    message = await _message(request)
    outcome = TakeOutcome.STORED
    if (trial := read_trial(message.body)) is not None:
        await reception.trial(message, trial)
    else:
        outcome = await reception.closure(message)
    mark_key_accepted(request)
    if outcome is TakeOutcome.FORK:
        raise MessageRefused("fork", "another closure has this number or id; this one is kept as evidence")
    receipt = receipt_of(message.headers[ID], message.body)
    return _json(receipt, 200 if outcome is TakeOutcome.STORED else 409)


@post("/presence", status_code=200, request_max_body_size=None)
async def take_presence(request: AnyRequest, reception: Reception) -> Response[bytes]:
    """200 with what the box shall send again."""
    answer = await reception.presence(await _message(request))
    mark_key_accepted(request)
    return _json(answer)


@post("/join", status_code=200, request_max_body_size=MOST_JOIN_BYTES)
async def join(request: AnyRequest, joining: JoinService) -> Response[bytes]:
    """200 with what the box needs, also when it asks again."""
    address = address_of_request(request, is_direct=joining.is_direct)
    answer = await joining.join(_signature(request), await request.body(), address)
    mark_key_accepted(request)
    return _json(answer)


async def _message(request: AnyRequest) -> Message:
    """Read no further than one byte past the most that a closure has."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            break
    return Message(via="https", headers=_signature(request), body=bytes(body[: MOST_BYTES + 1]))


def _signature(request: AnyRequest) -> dict[str, str]:
    return {name: text for name, text in request.headers.items() if name.startswith("webhook-")}


def _json(content: object, status: int = 200) -> Response[bytes]:
    return Response(msgspec.json.encode(content), status_code=status, media_type="application/json")
