"""Headers of ours: the request id, and what every answer carries for safety's sake."""

from __future__ import annotations

import itertools
import re
import secrets
from typing import Final

from daemon.api.http.answers import Header, Headers

MAX_REQUEST_ID: Final = 128

SAFETY: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""Unless the answer brings its own."""

_PRINTABLE_ID = re.compile(rb"[ -~]{1,%d}" % MAX_REQUEST_ID)
_start = secrets.token_hex(6)
_numbers = itertools.count(1)


def request_id(headers: Headers) -> str:
    """The client's own, when it can be printed (decision 7); otherwise one of ours."""
    for name, value in headers:
        if name == b"x-request-id" and _PRINTABLE_ID.fullmatch(value):
            return value.decode("ascii")
    return made_up_id()


def made_up_id() -> str:
    """Not to be found twice in the logs of a box: random at each start, then counted."""
    return f"{_start}-{next(_numbers):x}"
