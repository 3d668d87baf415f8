"""Headers of ours: the request id, the idempotency key, and what every answer carries for safety's sake."""

from __future__ import annotations

import hashlib
import itertools
import re
import secrets
from typing import Final

from daemon.api.answers import Header, Headers
from daemon.api.deps import ApiRequest
from daemon.core.errors import FieldError, InvalidRequest
from daemon.usecases.call import Call

MAX_REQUEST_ID: Final = 128
MAX_IDEMPOTENCY_KEY: Final = 200

SAFETY: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""Unless the answer brings its own."""

_PRINTABLE_ID = re.compile(rb"[ -~]{1,%d}" % MAX_REQUEST_ID)
_PRINTABLE_KEY = re.compile(rb"[ -~]{1,%d}" % MAX_IDEMPOTENCY_KEY)
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


def call_of(request: ApiRequest, raw: bytes) -> Call:
    """What a POST is to the use cases; `raw` is its body as it came."""
    scope = request.scope
    key = _idempotency_key(scope["headers"])
    own_id = scope["state"]["request_id"]
    if not key:
        return Call(own_id)
    told = b"\n".join((scope["method"].encode(), scope["path"].encode(), raw))
    return Call(own_id, key, hashlib.sha256(told).digest()[:16])


def _idempotency_key(headers: Headers) -> str:
    sent = [value for name, value in headers if name == b"idempotency-key"]
    if not sent:
        return ""
    if len(sent) > 1 or not _PRINTABLE_KEY.fullmatch(sent[0]):
        message = f"has to be given once, with 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters"
        raise InvalidRequest([FieldError("Idempotency-Key", message)])
    return sent[0].decode("ascii")
