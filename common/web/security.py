"""What every page needs against other sites and guessers."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


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
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
