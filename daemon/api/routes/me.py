"""What a key is for."""

from __future__ import annotations

from litestar import get

from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import Doc
from daemon.api.document.shapes import Me
from daemon.api.http.answers import Answer, encoded
from daemon.core.clock import millis_text
from daemon.language import Text


@get(
    "/v1/me",
    doc=Doc(
        tag="key",
        right="look",
        summary=Text("The key"),
        text=Text("What this key is for, and whether its machine answers."),
        answer=Me,
    ),
)
async def me(request: ApiRequest) -> Answer:
    key, worker = request.auth.key, request.auth.found
    return encoded(
        Me(
            id=str(key.id),
            label=key.label,
            mode=key.mode,
            nim=key.nim,
            connected=worker is not None and worker.connected,
            role=key.role,
            expires_at=millis_text(key.expires_at) if key.expires_at else None,
        )
    )


HANDLERS = (me,)
