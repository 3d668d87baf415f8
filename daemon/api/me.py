"""What a key is for."""

from __future__ import annotations

from litestar import get

from daemon.api.answers import Answer, encoded
from daemon.api.deps import ApiRequest
from daemon.api.describe import Doc
from daemon.api.shapes import Me


@get(
    "/v1/me",
    doc=Doc(
        tag="key",
        summary="La clé · The key",
        text="""À quoi sert cette clé, et si sa machine répond.

What this key is for, and whether its machine answers.""",
        answer=Me,
    ),
)
async def me(request: ApiRequest) -> Answer:
    key, desk = request.auth.key, request.auth.found
    return encoded(
        Me(id=str(key.id), label=key.label, mode=key.mode, nim=key.nim, connected=desk is not None and desk.connected)
    )


HANDLERS = (me,)
