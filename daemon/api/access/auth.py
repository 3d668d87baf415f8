"""Who may come in: one key, for one NIM, with its role; told before the body is read (decisions 11, 12, 22, 28)."""

from __future__ import annotations

from typing import Any

from litestar import Request

from common.http_server import SHOWN
from common.language import Text
from daemon.api.access.context import ApiDeps, RequestContext
from daemon.api.access.rehearsal import REHEARSED
from daemon.api.http.answers import Headers
from daemon.api.http.middleware import AFTERWARDS
from daemon.api.refusals import NimNotInScope, RoleNotAllowed, TooManyRequests, Unauthenticated
from daemon.core.keys import ApiKey, inspect
from daemon.core.machine.nim import is_named
from daemon.core.people import may

MISSING = Text("an API key is needed: send the header Authorization: Bearer <API_KEY>")
NOT_BEARER = Text("the Authorization header is not of the form Bearer <API_KEY>")
MISTYPED = Text("this is not a key as mcfd makes them, or a mistyped one: its checksum does not match")
UNKNOWN = Text("this key is unknown or was revoked")
EXPIRED = Text("this key has come to its end")


async def admit(request: Request[Any, Any, Any]) -> None:
    """Runs before every handler under /v1, before its body is read; leaves a `RequestContext` as `request.auth`."""
    scope = request.scope
    deps: ApiDeps = request.app.state["deps"]
    client = scope["client"]
    address = client[0] if client else ""
    key = identify(deps, scope["headers"], address)
    nim = scope["path_params"].get("nim")
    if nim is not None and not is_named(nim, key.nim):
        raise NimNotInScope
    # None for OPTIONS, which the router itself answers and which tells nothing.
    route = request.route_handler.opt
    right = route.get("right")
    if right is not None and not may(key.role, right):
        raise RoleNotAllowed(key.role, right)
    deps.uses[key.id] = deps.clock()
    if key.mode == "live":
        scope["state"][SHOWN] = True
        deps.sandbox.note_live()
    elif right is not None and not route["lasting"]:
        scope["state"][AFTERWARDS] = await deps.sandbox.enter()
    asked = deps.workers.get(key.nim, key.mode)
    found = asked.in_use if asked else None
    scope["auth"] = RequestContext(key, found, address)
    if key.mode == "test" and found is not None and scope["method"] == "POST":
        await _rehearse(deps, scope, found.book.id)


async def _rehearse(deps: ApiDeps, scope: Any, book: int) -> None:
    """What `Mcfd-Test` asks for is so when this returns, or happens on the way."""
    rehearsal = deps.met_cases.rehearsal(book, scope["headers"])
    sandbox = deps.sandboxes.get(book)
    if rehearsal is None or sandbox is None:
        return
    undo, leave = await sandbox.prepare(rehearsal), scope["state"].get(AFTERWARDS)

    def afterwards() -> None:
        undo()
        if leave is not None:
            leave()

    scope["state"][AFTERWARDS] = afterwards
    REHEARSED.set(rehearsal)


def identify(deps: ApiDeps, headers: Headers, address: str) -> ApiKey:
    """Only wrong keys are counted, and only requests without a valid key are held back: the tills behind the same address
    go on working while one of them guesses."""
    token, fault = _sent(headers)
    owner = deps.keyring.find(token) if token else None
    if owner is not None and owner.works_at(deps.clock()):
        return owner
    if wait := deps.wrong_keys.wait(address):
        raise TooManyRequests(Text("too many wrong API keys came from this address"), wait)
    if fault == MISSING:
        raise Unauthenticated(MISSING)
    deps.wrong_keys.note(address)
    if not fault:
        fault = EXPIRED if owner else UNKNOWN if inspect(token) else MISTYPED
    raise Unauthenticated(fault, challenge="invalid_token")


def in_force(deps: ApiDeps, headers: Headers) -> bool:
    """Whether the key that opened an answer which goes on has not been revoked since (decision 22)."""
    owner = deps.keyring.find(_sent(headers)[0])
    return owner is not None and owner.works_at(deps.clock())


def _sent(headers: Headers) -> tuple[str, str]:
    """The token, empty where the header is not as it has to be, and what is wrong with it."""
    sent = [value for name, value in headers if name == b"authorization"]
    if not sent:
        return "", MISSING
    scheme, _, token = sent[0].decode("latin-1").partition(" ")
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.strip():
        return "", NOT_BEARER
    return token.strip(), ""
