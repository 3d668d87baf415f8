"""What was typed in a form whose session had ended, kept by the browser until a login has led back to its screen."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from litestar import Request

from common.web.forms import typed_value
from common.web.security import COOKIE_SECONDS, set_cookie
from daemon.api.http.answers import Header
from daemon.api.refusals import Refusal
from daemon.api.request.body import SMALL_BODY, read_bytes

AnyRequest = Request[Any, Any, Any]
TYPED_COOKIE: Final = "mcfd_typed"


async def remember_typed(request: AnyRequest) -> tuple[Header, ...]:
    """`Set-Cookie` beside the way to the login; none for a form that is long."""
    with contextlib.suppress(Refusal):
        raw = await read_bytes(request.scope["headers"], request.receive, SMALL_BODY)
        if value := typed_value(request, raw):
            return (typed_cookie(request, value),)
    return ()


def typed_cookie(request: AnyRequest, value: str) -> Header:
    """Empty: it was shown."""
    tls = request.app.state["page"].tls
    return b"set-cookie", set_cookie(TYPED_COOKIE, value, tls=tls, age=COOKIE_SECONDS).encode()
