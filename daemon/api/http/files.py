"""Files of a package's `static` folder, with an ETag: an unchanged one is not sent twice, and each is sent compressed to a browser that takes it."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from daemon.api.http.answers import Answer, Header, Headers

MEDIA_TYPES: Final = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
GZIP: Final = b"\x1f\x8b"
"""How compressed bytes begin."""


def static_file(headers: Headers, package: str, name: str, *more: Header) -> Answer:
    """`headers` are the request's; `name` is one that the caller knows, never one from outside."""
    accepted = b",".join(value for key, value in headers if key == b"accept-encoding")
    body, tag = _read(package, name, packed=b"gzip" in accepted)
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    kept: tuple[Header, ...] = (
        (b"etag", tag),
        (b"cache-control", b"private, max-age=3600"),
        (b"vary", b"accept-encoding"),
        *(((b"content-encoding", b"gzip"),) if body[:2] == GZIP else ()),
        *more,
    )
    if (b"if-none-match", tag) in headers:
        return Answer(b"", status=304, media_type=media_type, headers=kept)
    return Answer(body, media_type=media_type, headers=kept)


@cache
def _read(package: str, name: str, *, packed: bool) -> tuple[bytes, bytes]:
    body = files(package).joinpath("static", name).read_bytes()
    if packed:
        body = gzip.compress(body, mtime=0)
    return body, b'"%s"' % hashlib.sha256(body).hexdigest()[:16].encode()
