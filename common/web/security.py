"""What a page needs against other sites and guessers; and the screen that was requested before the login, which the
browser keeps in a cookie until they have logged in. What comes back in it is never believed: it has to lead to a screen of this page, and to
one that the role may see. A handler that answers with a whole screen has in its `opt`, as `RIGHT`, what that screen needs."""

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
"""At the login, where a form led."""
RIGHT: Final = "screen_right"
LONGEST: Final = 1000
COOKIE_SECONDS: Final = 3600

PREFIX: Final = "__Host-"


def is_own_form(headers: Mapping[str, str]) -> bool:
    """Whether a POST comes from a page of this site: browsers say so by `Sec-Fetch-Site` or `Origin`, and one that says neither
    is believed only when it has no cookie to abuse, which the caller's session then lacks."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    return "origin" in headers and is_own_origin(headers)


def is_own_origin(headers: Mapping[str, str]) -> bool:
    """False where a browser says that a page of another site sent it; for a form that needs no session, as the login, which scripts of people send
    too."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()


def return_url(request: Request[Any, Any, Any]) -> str:
    """Path and query; empty where they are too long. A part of a screen, and a form, stand for the screen they are of."""
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
    """The content of `Set-Cookie` beside the way to the login; an empty path deletes it."""
    age = COOKIE_SECONDS if url else 0
    return f"{name}={quote(url, safe='/')}; Path=/ui/login; HttpOnly; SameSite=Strict; Max-Age={age}"


def redirect_after_login(request: Request[Any, Any, Any], name: str, may: Callable[[Any], bool]) -> str:
    """The screen after a login with the rights `may`: the one that was requested, else the first one."""
    url = unquote(cookie_of(request.scope["headers"], name))
    right = _right_of(request, url)
    return url if right is not None and may(right) else FIRST


def _right_of(request: Request[Any, Any, Any], url: str) -> Any:
    """What the screen at this address needs; None where there is no such screen, or where it is none of ours."""
    if not (url.startswith(FIRST) and url.isascii() and url.isprintable()):
        return None
    path = unquote(url.partition("?")[0])
    try:
        handler = request.app.asgi_router.handle_routing(path=path.rstrip("/"), method="GET")[1]
    except HTTPException:
        return None
    return handler.opt.get(RIGHT)


def cookie_of(headers: Iterable[tuple[bytes, bytes]], name: str) -> str:
    """The value of the first cookie of that name, as it stands there (none of ours needs quotes); empty without one. One with the prefix counts
    before one without, which plain HTTP has, and a session of an older version.

    Not by `http.cookies`, which needs the square of the time for backslashes (CVE-2024-7592), and stops at the first cookie that it
    does not like, whosever it is."""
    content = [value for header, value in headers if header == b"cookie"]
    return _first(content, PREFIX + name) or _first(content, name)


def _first(content: Iterable[bytes], name: str) -> str:
    wanted = name.encode() + b"="
    for value in content:
        if wanted in value:
            for part in value.split(b";"):
                cookie = part.strip(b" \t")
                if cookie.startswith(wanted):
                    return cookie.removeprefix(wanted).decode("latin-1")
    return ""


def name_of(name: str, *, tls: bool) -> str:
    """As it is set."""
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
    """The content of `Set-Cookie`; an empty `value` takes the cookie back. `age` in seconds; None: until the browser ends."""
    age = age if value else 0
    parts = [f"{name_of(name, tls=tls)}={value}", "Path=/", f"SameSite={same_site}"]
    parts += ["HttpOnly"] if http_only else []
    parts += ["Secure"] if tls else []
    parts += [f"Max-Age={age}"] if age is not None else []
    return "; ".join(parts)
