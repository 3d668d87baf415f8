"""Authentication before the body is read: one key for one NIM with one role (decisions 11, 12, 22, 28)."""

from typing import Any

from litestar import Request

from common.http_server import KEY_ACCEPTED
from common.language import Text
from daemon.api.access.context import ApiDeps, ApiRequest, RequestContext, check_rows
from daemon.api.access.rehearsal import REHEARSED
from daemon.api.access.relayed import RelayedRequest, by_name, check_operation, expiry, relayed
from daemon.api.http.answers import Headers
from daemon.api.http.middleware import AFTERWARDS, address_of
from daemon.api.refusals import NimNotInScope, RoleNotAllowed, TooManyRequests, Unauthenticated, WrongLane
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.unknown import misspelt, refusals_of, unknown_of
from daemon.core.keys import ApiKey, inspect
from daemon.core.machine.state import is_named, same_machine
from daemon.core.people import may

MISSING = Text("an API key is needed: send the header Authorization: Bearer <API_KEY>")
NOT_BEARER = Text("the Authorization header is not of the form Bearer <API_KEY>")
MISTYPED = Text("this is not a key as mcfd makes them, or a mistyped one: its checksum does not match")
UNKNOWN = Text("this key is unknown or was revoked")
EXPIRED = Text("this key has come to its end")


async def admit(request: Request[Any, Any, Any]) -> None:
    """Runs before every handler under /v1 and before its body is read; sets `request.auth` to a `RequestContext`."""
    scope = request.scope
    deps: ApiDeps = request.app.state["deps"]
    address, found_lane = address_of(scope), relayed(scope)
    key = (
        identify(deps, scope["headers"], address)
        if found_lane is None
        else _identify(deps, request, found_lane, address)
    )
    if (key.lane == "relay") != (found_lane is not None):
        raise WrongLane(key.lane)
    nim = scope["path_params"].get("nim")
    if (nim is not None and not is_named(nim, key.nim)) or (
        found_lane is not None and not same_machine(found_lane.nim, key.nim)
    ):
        raise NimNotInScope
    # None for OPTIONS, which the router itself answers and which tells nothing.
    route = request.route_handler.opt
    right = route.get("right")
    if right is not None and not may(key.role, right):
        raise RoleNotAllowed(key.role, right)
    check_rows(scope["path_params"])
    expires = 0.0
    if found_lane is not None:
        check_operation(request)
        if not found_lane.has_waited:  # otherwise requests for its outcome could delay it for ever
            deps.key_rates.note(key)
        await found_lane.turn()
        expires = expiry(scope, found_lane, is_signed=bool(key.public))
    deps.uses[key.id] = deps.clock()
    if key.mode == "live":
        scope["state"][KEY_ACCEPTED] = True
        deps.sandbox.note_live()
    elif right is not None and not route["lasting"]:
        scope["state"][AFTERWARDS] = await deps.sandbox.enter()
    worker = deps.workers.get(key.nim, key.mode)
    found = worker.in_use if worker else None
    scope["auth"] = RequestContext(key, found, address, expires)
    if scope["query_string"] and "queries" in route:
        _check_query(request, route["queries"])
    if key.mode == "test" and found is not None and scope["method"] == "POST":
        await _rehearse(deps, scope, found.book.id)


def _check_query(request: ApiRequest, names: frozenset[str]) -> None:
    """Refuses misspelt URL parameters: a report has no `warnings`, and a Z or sale that was to be tried would be real.
    Those of a strict request are refused if unknown, as fields of its body (decision 27)."""
    unknown = unknown_of(request.query_params, names if request.method == "GET" else names | {"dry_run"})
    if unknown and (refused := unknown if is_strict(request) else misspelt(unknown)):
        raise InvalidRequest(refusals_of(refused))


def is_strict(request: ApiRequest) -> bool:
    """Whether `Mcfd-Strict` is true or the key is strict; InvalidRequest for any value except true and false."""
    values = [value.strip().lower() for name, value in request.scope["headers"] if name == b"mcfd-strict"]
    if any(value not in (b"true", b"false") for value in values):
        raise InvalidRequest.at("Mcfd-Strict", Text("has to be true or false"))
    return b"true" in values or request.auth.key.strict


async def _rehearse(deps: ApiDeps, scope: Any, book: int) -> None:
    """Prepares the failure that `Mcfd-Test` asks for, or lets it happen during the request."""
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
    """The API key of the request. Only wrong keys count, and only requests without a valid key are delayed: other tills
    behind the same address continue while one of them guesses."""
    token, fault = _sent(headers)
    owner = deps.keyring.find(token) if token else None
    if owner is not None and owner.works_at(deps.clock()):
        return owner
    raise refused_key(deps, address, fault or (EXPIRED if owner else UNKNOWN if inspect(token) else MISTYPED))


def _identify(deps: ApiDeps, request: Request[Any, Any, Any], found: RelayedRequest, address: str) -> ApiKey:
    """The API key of a request through the relay, by its signature if it has one."""
    scope = request.scope
    headers = by_name(scope["headers"])
    if "signature" not in headers or "authorization" in headers:
        return identify(deps, scope["headers"], address)
    from daemon.api.access.signed import NOT_SIGNED, SignedRequest, signer  # noqa: PLC0415  # 8 MB, where requests are signed

    url = f"http://box{scope['raw_path'].decode('ascii')}"
    if scope["query_string"]:
        url += f"?{scope['query_string'].decode('ascii')}"
    key = signer(deps.keyring, SignedRequest(scope["method"], url, headers, found.body), found.now())
    if key is not None and key.works_at(deps.clock()):
        return key
    raise refused_key(deps, address, EXPIRED if key else NOT_SIGNED)


def refused_key(deps: ApiDeps, address: str, fault: str) -> Exception:
    """The error for a wrong key: Unauthenticated, or TooManyRequests after too many from that address."""
    if wait := deps.wrong_keys.wait(address):
        return TooManyRequests(Text("too many wrong API keys came from this address"), wait)
    if fault == MISSING:
        return Unauthenticated(MISSING, challenge="")
    deps.wrong_keys.note(address)
    return Unauthenticated(fault)


def in_force(deps: ApiDeps, headers: Headers) -> bool:
    """Whether the key that opened a stream is still valid (decision 22)."""
    owner = deps.keyring.find(_sent(headers)[0])
    return owner is not None and owner.works_at(deps.clock())


def _sent(headers: Headers) -> tuple[str, str]:
    """The token, empty if the header is invalid, and what is wrong with it."""
    sent = [value for name, value in headers if name == b"authorization"]
    if not sent:
        return "", MISSING
    scheme, _, token = sent[0].decode("latin-1").partition(" ")
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.strip():
        return "", NOT_BEARER
    return token.strip(), ""
