"""Errors as they go out: RFC 9457, with a code; no path, no SQL, no secret."""

from __future__ import annotations

import msgspec
from litestar import Response

from headquarters.core.reception import Reason

STATUS: dict[Reason, int] = {
    "malformed": 400,
    "oversized": 413,
    "unsigned": 401,
    "unknown": 401,
    "foreign": 401,
    "time": 425,
    "fork": 422,
}
"""What a box makes of them: 400, 413 and 422 are wrong for ever, the others are tried again (docs/upstream.md)."""


def problem(status: int, code: str, detail: str, headers: dict[str, str] | None = None) -> Response[bytes]:
    content = {"type": "about:blank", "title": code.replace("_", " ").capitalize(), "status": status}
    body = msgspec.json.encode({**content, "detail": detail, "code": code})
    return Response(body, status_code=status, media_type="application/problem+json", headers=headers)
