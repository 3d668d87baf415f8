"""`POST /join`: a box joins by a code for one use (`common.wire.joining`)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Request, Response, post

from common.wire.errors import BadEvent
from common.wire.joining import MOST_BYTES, JoinRefusal
from common.wire.signing import NotSigned
from headquarters.api.access import address_of_request, known, problem
from headquarters.intake.joining import JoinService, TooManyGuesses
from headquarters.store.joining import JoinRefused

STATUS: Final[dict[JoinRefusal, int]] = {
    "CODE_UNKNOWN": 403,
    "CODE_USED": 409,
    "CODE_EXPIRED": 410,
    "OTHER_MACHINES": 422,
    "KEY_REVOKED": 409,
}
DETAIL: Final[dict[JoinRefusal, str]] = {
    "CODE_UNKNOWN": "no such code was given here",
    "CODE_USED": "another box has joined with this code",
    "CODE_EXPIRED": "the code has ended; headquarters gives another one",
    "OTHER_MACHINES": "the code is for other machines",
    "KEY_REVOKED": "the key of this box is revoked; it makes another one",
}


@post("/join", status_code=200, request_max_body_size=MOST_BYTES)
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
        detail = DETAIL[refused.reason] + (f": {', '.join(refused.machines)}" if refused.machines else "")
        return problem(STATUS[refused.reason], refused.reason, detail)
    known(request)
    return Response(msgspec.json.encode(answer), media_type="application/json")
