"""The screen that a login leads to (`common.web.asked`); its cookie."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from common.web import asked
from daemon.core.roles import may

if TYPE_CHECKING:
    from litestar import Request

    from daemon.api.http.answers import Header
    from daemon.core.people import Session

COOKIE: Final = "mcfd_asked"


def note_asked(request: Request[Any, Any, Any]) -> Header:
    """`Set-Cookie` beside the way to the login."""
    return b"set-cookie", asked.set_cookie(COOKIE, asked.asked_by(request)).encode()


def screen_asked_for(request: Request[Any, Any, Any], session: Session | None) -> str:
    """Where somebody goes who has just logged in."""
    return asked.screen_asked_for(request, COOKIE, partial(may, session.role)) if session else asked.FIRST


def forget_asked() -> Header:
    return b"set-cookie", asked.set_cookie(COOKIE, "").encode()
