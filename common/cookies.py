"""Cookies of our own in what a browser sends, of which others may be a part: read in a time that goes with its bytes, without a key; and how they
are set.

Where the server speaks TLS they have the prefix `__Host-`: a browser takes such a one from this host alone, over TLS alone, so that neither a
neighbour's name nor an attacker on the line sets one. Over plain HTTP, as in a shop's network, a browser would refuse it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

PREFIX: Final = "__Host-"


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
