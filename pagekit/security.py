"""What every page needs against other sites and guessers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; object-src 'none'; base-uri 'none'; "
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
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == headers.get("host")


class Throttle:
    """At most `most` wrong tries of one name in `seconds`; right ones forget them."""

    def __init__(self, most: int = 5, seconds: float = 300.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._wrong: dict[str, list[float]] = {}

    def may(self, name: str) -> bool:
        now = self._clock()
        recent = [at for at in self._wrong.get(name, ()) if now - at < self._seconds]
        return len(recent) < self._most

    def wrong(self, name: str) -> None:
        now = self._clock()
        if len(self._wrong) > 10_000:  # noqa: PLR2004  # names that somebody makes up
            self._wrong = {n: times for n, times in self._wrong.items() if now - times[-1] < self._seconds}
        self._wrong.setdefault(name, []).append(now)
        del self._wrong[name][: -self._most]

    def right(self, name: str) -> None:
        self._wrong.pop(name, None)
