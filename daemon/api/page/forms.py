"""Preserves a form submitted after its session had ended: a cookie stores it until a login leads back to its
screen."""

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
    """`Set-Cookie` for the redirect to the login; none for a long form."""
    with contextlib.suppress(Refusal):
        raw = await read_bytes(request.scope["headers"], request.receive, SMALL_BODY)
        if value := typed_value(request, raw):
            return (typed_cookie(request, value),)
    return ()


def typed_cookie(request: AnyRequest, value: str) -> Header:
    """An empty `value` deletes it, once shown."""
    tls = request.app.state["page"].tls
    return b"set-cookie", set_cookie(TYPED_COOKIE, value, tls=tls, age=COOKIE_SECONDS).encode()
