"""A POST as the use cases take it: its request id, its Idempotency-Key, and a fingerprint that tells it from others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

from common.language import Text
from daemon.api.access.context import ApiRequest
from daemon.api.http.answers import Headers
from daemon.core.call import Call
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.machine.nim import short_nim

MAX_IDEMPOTENCY_KEY: Final = 200

_MACHINE_PATH = re.compile("(/v1/mcf/)([^/]*)(.*)", re.DOTALL)
_PRINTABLE_KEY = re.compile(rb"[ -~]{1,%d}" % MAX_IDEMPOTENCY_KEY)


def call_of(request: ApiRequest, raw: bytes) -> Call:
    """What a POST is to the use cases; `raw` is its body as it came."""
    scope = request.scope
    key = _idempotency_key(scope["headers"])
    own_id = scope["state"]["request_id"]
    by, strict = request.auth.actor, _is_strict(scope["headers"]) or request.auth.key.strict
    expires = request.auth.expires
    if not key:
        return Call(own_id, by=by, strict=strict, expires=expires)
    method, path = scope["method"], scope["path"]
    before, nim, after = found.groups() if (found := _MACHINE_PATH.fullmatch(path)) else (path, "", "")

    def earlier(nims: Iterable[str]) -> Iterator[bytes]:
        return (_fingerprint(method, before + each + after, raw) for each in {nim, short_nim(nim), *nims})

    return Call(own_id, key, _fingerprint(method, before + after, raw), by, strict, earlier, expires)


def _fingerprint(method: str, path: str, raw: bytes) -> bytes:
    return hashlib.sha256(b"\n".join((method.encode(), path.encode(), raw))).digest()[:16]


def _is_strict(headers: Headers) -> bool:
    """`Mcfd-Strict: true`; a value that is neither true nor false is refused, since it was sent to be on the safe side."""
    sent = [value.strip().lower() for name, value in headers if name == b"mcfd-strict"]
    if any(value not in (b"true", b"false") for value in sent):
        raise InvalidRequest([FieldError("Mcfd-Strict", Text("has to be true or false"))])
    return b"true" in sent


def prefers_async(headers: Headers) -> bool:
    """`Prefer: respond-async` (RFC 7240), among whatever other preferences."""
    sent = ",".join(value.decode("latin-1") for name, value in headers if name == b"prefer")
    return any(each.partition(";")[0].strip().lower() == "respond-async" for each in sent.split(","))


def _idempotency_key(headers: Headers) -> str:
    sent = [value for name, value in headers if name == b"idempotency-key"]
    if not sent:
        return ""
    if len(sent) > 1 or not _PRINTABLE_KEY.fullmatch(sent[0]):
        message = f"has to be given once, with 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters"
        raise InvalidRequest([FieldError("Idempotency-Key", message)])
    return sent[0].decode("ascii")
