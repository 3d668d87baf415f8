"""Fields of queries and forms; and what was typed in a form whose session had ended, which the browser keeps until a login has led back to its
screen."""

from __future__ import annotations

import contextlib
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from litestar import Request

from common.web import security
from common.web.security import cookie_of, set_cookie
from daemon.api.http.answers import Header
from daemon.api.refusals import Refusal
from daemon.api.request.body import SMALL_BODY, read_bytes

AnyRequest = Request[Any, Any, Any]
MAX_FIELDS: Final = 200
TYPED_COOKIE: Final = "mcfd_typed"
"""What was in a form whose session had ended, until its screen shows it again."""
LONGEST_TYPED: Final = 3500
"""Of the 4 096 bytes of a cookie; more than eight lines of an invoice."""
SECRETS: Final = frozenset({"password", "current", "again"})


def fields(text: str) -> dict[str, str]:
    """The first value of each field of a query or a form."""
    with contextlib.suppress(ValueError):
        return {name: values[0].strip() for name, values in parse_qs(text, max_num_fields=MAX_FIELDS).items()}
    return {}


async def remember_typed(request: AnyRequest) -> tuple[Header, ...]:
    """`Set-Cookie` beside the way to the login: the form for its screen, without passwords; none where it is long."""
    screen = urlsplit(security.return_url(request)).path
    with contextlib.suppress(Refusal):
        raw = await read_bytes(request.scope["headers"], request.receive, SMALL_BODY)
        form = {name: value for name, value in fields(raw.decode("utf-8", "replace")).items() if name not in SECRETS}
        value = f"{quote(screen)}!{quote(request.scope['path'])}!{urlencode(form)}"
        if len(value) <= LONGEST_TYPED:
            return (typed_cookie(request, value),)
    return ()


def typed_cookie(request: AnyRequest, value: str) -> Header:
    """Empty: it was shown."""
    tls = request.app.state["page"].tls
    return b"set-cookie", set_cookie(TYPED_COOKIE, value, tls=tls, age=security.COOKIE_SECONDS).encode()


def typed_before(request: AnyRequest) -> tuple[str, dict[str, str]] | None:
    """Of the screen that is requested: the path that the form leads to, and what was typed; None without any."""
    screen, _, rest = cookie_of(request.scope["headers"], TYPED_COOKIE).partition("!")
    if not rest or unquote(screen) != request.scope["path"]:
        return None
    action, _, form = rest.partition("!")
    return unquote(action), fields(form)
