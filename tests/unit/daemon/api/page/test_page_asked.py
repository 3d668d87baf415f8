"""Which screen a login leads to."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from daemon.api.page.entrance import FORGET_RETURN_URL, redirect_after_login
from daemon.api.page.visit import remember_return_url
from daemon.api.service import drawn_routes
from daemon.core.people import Role, Session

BOX = "https://box.local:8480"
SCREEN = "/ui/journal?q=P-1;2&from=2026-11-01"
BY_HTMX = {"hx-request": "true", "hx-current-url": BOX + SCREEN}


def asking(path: str = "/ui/", headers: dict[str, str] | None = None, *, method: str = "GET", cookie: str = "") -> Any:
    """A request as it comes from a browser."""
    raw, _, query = path.encode("latin-1").partition(b"?")
    rows = [(b"cookie", cookie.encode("latin-1"))] if cookie else []
    scope = {"method": method, "raw_path": raw, "query_string": query, "headers": rows}
    return SimpleNamespace(app=drawn_routes(with_page=True), scope=scope, headers=headers or {})


def led_to(cookie: str, role: Role = "technician") -> str:
    return redirect_after_login(asking(cookie=cookie), Session(1, "Awa", role, 0, 0))


def cookie_value(request: Any) -> str:
    """What the browser has in its cookie afterwards."""
    return remember_return_url(request)[1].decode().partition(";")[0]


@pytest.mark.parametrize(
    ("request_", "screen"),
    [
        (asking(SCREEN), SCREEN),
        (asking("/ui/journal/7?m=EL02000015-1:test"), "/ui/journal/7?m=EL02000015-1:test"),
        (asking("/ui/today", BY_HTMX), SCREEN),
        (asking("/ui/journal?q=P", BY_HTMX), SCREEN),
        (asking("/ui/cash", {"referer": f"{BOX}/ui/cash#form"}, method="POST"), "/ui/cash"),
        (asking("/ui/cash", method="POST"), "/ui/"),
        (asking("/ui/today"), "/ui/"),
        (asking("/ui/journal?q=" + "x" * 1000), "/ui/"),
    ],
    ids=["screen", "invoice", "part", "search", "form", "form without referrer", "part as a link", "too long"],
)
def test_a_login_leads_to_what_was_asked_for(request_: Any, screen: str) -> None:
    """With its query: a screen by a link, by a form on it, by a part that it asked for itself. Otherwise to Today."""
    assert led_to(cookie_value(request_)) == screen


@pytest.mark.parametrize(
    ("role", "screen", "expected"),
    [
        *(("seller", "/ui/box", "/ui/"), ("seller", "/ui/journal", "/ui/journal"), ("reader", "/ui/z", "/ui/")),
        *(("manager", "/ui/z", "/ui/z"), ("technician", "/ui/box", "/ui/box")),
    ],
)
def test_a_screen_that_the_role_may_not_see_is_today(role: Role, screen: str, expected: str) -> None:
    """Nobody is greeted with a refusal."""
    assert led_to(cookie_value(asking(screen)), role) == expected


@pytest.mark.parametrize(
    "query",
    [
        *("//evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example/ui/", "evil.example/ui/"),
        *("javascript:alert(1)", "/%2F/evil.example", "/%5Cevil.example", "/ui/..//evil.example", "/ui//evil.example"),
        *("/ui/%2e%2e//evil.example", "/ui\\evil.example", "/ui/\\evil.example", "@evil.example", "/v1/me", ""),
        *("/ui/journal\r\nset-cookie: a=b", "/ui/journal?q=\r\n\r\n", "/ui/journal?q=\xe9", "/ui/journal\x00"),
        *("/ui/login", "/ui/logout", "/ui/nowhere", "/ui/live", "/ui/box/jobs", "/ui/files/a/csv", "/ui/paper/x/x"),
        *("/ui/closures/abc", "/ui/box/key", "/ui/static/page.css", "/ui/box/backup/x", "/ui/language/fr"),
    ],
)
def test_a_login_leads_to_no_other_site_and_to_no_file(query: str) -> None:
    """Whatever the cookie says, as it is or encoded: what is no screen of this page is Today."""
    once = quote(query.encode("latin-1"), safe="")
    for each in (query, once, quote(once, safe=""), f'"{query}"'):
        assert led_to(f"mcfd_asked={each}") == "/ui/", each


def test_a_login_is_led_once() -> None:
    """The cookie is for the login alone, and gone after it; without one, or without a session, it is Today."""
    assert set(remember_return_url(asking(SCREEN))[1].split(b"; ")) >= {
        b"Path=/ui/login",
        b"HttpOnly",
        b"SameSite=Strict",
    }
    assert FORGET_RETURN_URL[1].startswith(b"mcfd_asked=; Path=/ui/login;")
    assert b"Max-Age=0" in FORGET_RETURN_URL[1]
    assert led_to("") == "/ui/"
    assert redirect_after_login(asking(cookie=cookie_value(asking(SCREEN))), None) == "/ui/"
