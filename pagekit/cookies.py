"""Cookies of our own in what a browser sends, of which others may be a part: read in a time that goes with its bytes, without a key."""

from __future__ import annotations

from collections.abc import Iterable


def cookie_of(headers: Iterable[tuple[bytes, bytes]], name: str) -> str:
    """The value of the first cookie of that name, as it stands there (none of ours needs quotes); empty without one.

    Not by `http.cookies`, which needs the square of the time for backslashes (CVE-2024-7592), and stops at the first cookie that it
    does not like, whosever it is."""
    wanted = name.encode() + b"="
    for header, value in headers:
        if header == b"cookie" and wanted in value:
            for part in value.split(b";"):
                cookie = part.strip(b" \t")
                if cookie.startswith(wanted):
                    return cookie.removeprefix(wanted).decode("latin-1")
    return ""
