"""Fields of queries and forms. Also the content of a form whose session had ended: the browser stores it until the
person is back on that screen after a login."""

from __future__ import annotations

import contextlib
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from litestar import Request

from common.language import Text
from common.web.security import cookie_of, return_url

MAX_FIELDS: Final = 200
LONGEST_TYPED: Final = 3500
"""Of a cookie's 4096 bytes; more than eight lines of an invoice."""
SECRETS: Final = frozenset({"password", "current", "again"})
BACK_AGAIN: Final = Text(
    "Your session had ended, and nothing was done. What you typed stands here: look at it and send it again."
)


def fields(text: str) -> dict[str, str]:
    """The first value of each field of a query or a form."""
    with contextlib.suppress(ValueError):
        return {name: values[0].strip() for name, values in parse_qs(text, max_num_fields=MAX_FIELDS).items()}
    return {}


def typed_value(request: Request[Any, Any, Any], content: bytes) -> str:
    """The cookie with a form's fields for its screen, without passwords; empty if too long. It needs no quoting."""
    form = {name: text for name, text in fields(content.decode("utf-8", "replace")).items() if name not in SECRETS}
    screen, action = (quote(path, safe="") for path in (urlsplit(return_url(request)).path, request.scope["path"]))
    value = f"{screen}!{action}!{urlencode(form).replace('=', ':')}"
    return value if len(value) <= LONGEST_TYPED else ""


def typed_before(request: Request[Any, Any, Any], cookie: str) -> tuple[str, dict[str, str]] | None:
    """For the requested screen: the form's path and its fields; None without any."""
    screen, _, rest = cookie_of(request.scope["headers"], cookie).partition("!")
    if not rest or unquote(screen) != request.scope["path"]:
        return None
    action, _, form = rest.partition("!")
    return unquote(action), fields(form.replace(":", "="))
