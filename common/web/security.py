"""Protection of a page against other sites and guessers, and the return to the requested screen after a login. The
browser has that screen in a cookie, which is not trusted: it must lead to a screen of this page that the role may see.
A handler that answers with a whole screen has the right it needs in its `opt`, as `RIGHT`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote, unquote, urlsplit

from litestar.exceptions import HTTPException

from common.language import Text

if TYPE_CHECKING:
    from litestar import Request

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}

FIRST: Final = "/ui/"
ENDED: Final = Text("Your session had ended: what you sent was not done. Log in and send it again.")
"""At the login, after a form."""
RIGHT: Final = "screen_right"
LONGEST: Final = 1000
COOKIE_SECONDS: Final = 3600

PREFIX: Final = "__Host-"


def is_own_form(headers: Mapping[str, str]) -> bool:
    """Whether a POST comes from a page of this site, by `Sec-Fetch-Site` or `Origin`; False without either."""
    return ("sec-fetch-site" in headers or "origin" in headers) and is_own_origin(headers)


def is_own_origin(headers: Mapping[str, str]) -> bool:
    """False if a browser says that another site sent it. For the login, without a session; scripts send it too."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()


def return_url(request: Request[Any, Any, Any]) -> str:
    """Path and query; empty if too long. A part of a screen, or a form, counts as its screen."""
    url = request.scope["raw_path"].decode("latin-1")
    if query := request.scope["query_string"].decode("latin-1"):
        url = f"{url}?{query}"
    if "hx-request" in request.headers or request.scope["method"] != "GET":
        screen: str = request.headers.get("hx-current-url") or request.headers.get("referer") or ""
        try:
            url = urlsplit(screen)._replace(scheme="", netloc="", fragment="").geturl()
        except ValueError:  # half a bracket
            return ""
    return url if len(url) <= LONGEST else ""


def return_cookie(name: str, url: str) -> str:
    """Value of `Set-Cookie` for the return after a login; an empty path deletes the cookie."""
    age = COOKIE_SECONDS if url else 0
    return f"{name}={quote(url, safe='/')}; Path=/ui/login; HttpOnly; SameSite=Strict; Max-Age={age}"


def redirect_after_login(request: Request[Any, Any, Any], name: str, may: Callable[[Any], bool]) -> str:
    """The screen after a login with the rights `may`: the requested one, else the first."""
    url = unquote(cookie_of(request.scope["headers"], name, tls=False))  # its path allows no prefix
    right = _right_of(request, url)
    return url if right is not None and may(right) else FIRST


def _right_of(request: Request[Any, Any, Any], url: str) -> Any:
    """The right for the screen at this address; None if there is no such screen."""
    if not (url.startswith(FIRST) and url.isascii() and url.isprintable()):
        return None
    path = unquote(url.partition("?")[0])
    try:
        handler = request.app.asgi_router.handle_routing(path=path.rstrip("/"), method="GET")[1]
    except HTTPException:
        return None
    return handler.opt.get(RIGHT)


def cookie_of(headers: Iterable[tuple[bytes, bytes]], name: str, *, tls: bool) -> str:
    """The value of the first cookie of that name, as sent (ours need no quotes); empty without one. Over TLS only one
    with the prefix counts: others may come from plain HTTP or another host of the domain.

    Not `http.cookies`: quadratic time for backslashes (CVE-2024-7592), and it stops at the first invalid cookie."""
    wanted = name_of(name, tls=tls).encode() + b"="
    for header, value in headers:
        if header == b"cookie" and wanted in value:
            for part in value.split(b";"):
                cookie = part.strip(b" \t")
                if cookie.startswith(wanted):
                    return cookie.removeprefix(wanted).decode("latin-1")
    return ""


def name_of(name: str, *, tls: bool) -> str:
    """The name as in `Set-Cookie`."""
    return f"{PREFIX if tls else ''}{name}"


def set_cookie(
    name: str,
    value: str,
    *,
    tls: bool,
    age: int | None = None,
    same_site: Literal["Strict", "Lax"] = "Strict",
    http_only: bool = True,
) -> str:
    """Value of `Set-Cookie`; an empty `value` deletes the cookie. `age` in seconds; None: until the browser ends."""
    age = age if value else 0
    parts = [f"{name_of(name, tls=tls)}={value}", "Path=/", f"SameSite={same_site}"]
    parts += ["HttpOnly"] if http_only else []
    parts += ["Secure"] if tls else []
    parts += [f"Max-Age={age}"] if age is not None else []
    return "; ".join(parts)
