"""The screen that somebody asked for and was shown the login instead: their browser keeps it in a cookie until they have logged in.

What comes back in the cookie is never believed: it has to lead to a screen of this page, and to one that the role may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from litestar.exceptions import HTTPException

from daemon.core.roles import Right, may
from pagekit.cookies import cookie_of

if TYPE_CHECKING:
    from litestar import Request

    from daemon.api.http.answers import Header
    from daemon.core.people import Session

COOKIE: Final = "mcfd_asked"
TODAY: Final = "/ui/"
RIGHT: Final = "screen_right"
"""In the `opt` of a handler that answers with a whole screen: what it needs."""
LONGEST: Final = 1000
KEPT_SECONDS: Final = 3600


def note_asked(request: Request[Any, Any, Any]) -> Header:
    """`Set-Cookie` beside the way to the login. What a screen asked for by itself, and a form, stand for the screen they are of."""
    asked = request.scope["raw_path"].decode("latin-1")
    if query := request.scope["query_string"].decode("latin-1"):
        asked = f"{asked}?{query}"
    if "hx-request" in request.headers or request.scope["method"] != "GET":
        screen: str = request.headers.get("hx-current-url") or request.headers.get("referer") or ""
        asked = urlsplit(screen)._replace(scheme="", netloc="", fragment="").geturl()
    return _cookie(quote(asked, safe="/") if len(asked) <= LONGEST else "")


def screen_asked_for(request: Request[Any, Any, Any], session: Session | None) -> str:
    """Where somebody goes who has just logged in; Today where they asked for nothing that they may see."""
    asked = unquote(cookie_of(request.scope["headers"], COOKIE))
    right = _right_of(request, asked)
    return asked if session is not None and right is not None and may(session.role, right) else TODAY


def forget_asked() -> Header:
    return _cookie("")


def _right_of(request: Request[Any, Any, Any], asked: str) -> Right | None:
    """What the screen at this address needs; None where there is no such screen, or where it is none of ours."""
    if not (asked.startswith(TODAY) and asked.isascii() and asked.isprintable()):
        return None
    path = unquote(asked.partition("?")[0])
    try:
        handler = request.app.asgi_router.handle_routing(path=path.rstrip("/"), method="GET")[1]
    except HTTPException:
        return None
    right: Right | None = handler.opt.get(RIGHT)
    return right


def _cookie(value: str) -> Header:
    age = KEPT_SECONDS if value else 0
    return b"set-cookie", f"{COOKIE}={value}; Path=/ui/login; HttpOnly; SameSite=Strict; Max-Age={age}".encode()
