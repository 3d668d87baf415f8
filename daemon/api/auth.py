"""Who may come in: one key, for one NIM, told before the body is read (decisions 11, 12, 22)."""

from __future__ import annotations

from typing import Any

from litestar import Request

from daemon.api.answers import Headers
from daemon.api.deps import ApiDeps, KeyOwner, Visit
from daemon.api.refusals import NimNotInScope, TooManyRequests, Unauthenticated
from daemon.core.keys import inspect

MISSING = "an API key is needed: send the header Authorization: Bearer <API_KEY>"
NOT_BEARER = "the Authorization header is not of the form Bearer <API_KEY>"
MISTYPED = "this is not a key as mcfd makes them, or a mistyped one: its checksum does not match"
UNKNOWN = "this key is unknown or was revoked"


async def admit(request: Request[Any, Any, Any]) -> None:
    """Runs before every handler under /v1, before its body is read; leaves a `Visit` as `request.auth`."""
    scope = request.scope
    deps: ApiDeps = request.app.state["deps"]
    client = scope["client"]
    key = identify(deps, scope["headers"], client[0] if client else "")
    nim = scope["path_params"].get("nim")
    if nim is not None and nim != key.nim:
        raise NimNotInScope
    scope["auth"] = Visit(key, deps.desks.get(key.nim, key.mode))


def identify(deps: ApiDeps, headers: Headers, address: str) -> KeyOwner:
    """Only wrong keys are counted, and only requests without a valid key are held back: the tills behind the same address
    go on working while one of them guesses."""
    sent = _sent(headers)
    owner, fault = _look_up(deps, sent)
    if owner is not None:
        return owner
    if wait := deps.wrong_keys.wait(address):
        raise TooManyRequests("too many wrong API keys came from this address", wait)
    if sent:
        deps.wrong_keys.note(address)
    raise Unauthenticated(fault, challenge="invalid_token" if sent else "")


def in_force(deps: ApiDeps, headers: Headers) -> bool:
    """Whether the key that opened an answer which goes on has not been revoked since (decision 22)."""
    return _look_up(deps, _sent(headers))[0] is not None


def _sent(headers: Headers) -> list[bytes]:
    return [value for name, value in headers if name == b"authorization"]


def _look_up(deps: ApiDeps, sent: list[bytes]) -> tuple[KeyOwner | None, str]:
    if not sent:
        return None, MISSING
    scheme, _, token = sent[0].decode("latin-1").partition(" ")
    token = token.strip()
    if len(sent) > 1 or scheme.lower() != "bearer" or not token:
        return None, NOT_BEARER
    owner = deps.keyring.find(token)
    return owner, MISTYPED if owner is None and inspect(token) is None else UNKNOWN
