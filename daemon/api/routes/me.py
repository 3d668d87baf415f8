"""What a key is for."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import get
from msgspec import Meta

from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import described
from daemon.api.http.answers import Answer, encoded
from daemon.core.clock import millis_text
from daemon.core.people import USUAL, Role


class Me(msgspec.Struct, frozen=True, rename={"expires_at": "expiresAt"}):
    id: Annotated[str, Meta(description="As `mcfd keys list` shows it")]
    label: Annotated[str, Meta(description="As given when the key was made")]
    mode: Annotated[Literal["live", "test"], Meta(description="live, or test for the sandbox")]
    nim: Annotated[str, Meta(description="The one NIM this key is for")]
    connected: Annotated[bool, Meta(description="Whether its machine answers")]
    role: Annotated[Role, Meta(description="What it may do: seller, reader, manager or technician")] = USUAL
    expires_at: Annotated[str | None, Meta(description="When it ends; null for never")] = None


@get(
    "/v1/me",
    **described(
        "get_me",
        tag="key",
        right="look",
        summary="The key",
        description="What this key is for, and whether its machine answers.",
        answer=Me,
        access="key",
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
