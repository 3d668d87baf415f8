"""Who may come in: one key, for one NIM, with its role; decided before the body is read (decisions 11, 12, 22, 28). And who may come in by the relay,
and to what: the door of `admit` for requests that did not come over the shop's network (decision 46)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from litestar import Request

from common.http_server import KEY_ACCEPTED
from common.language import Text
from common.wire.errors import BadEvent
from common.wire.instants import instant_millis
from daemon.api.access.context import ApiDeps, RequestContext, check_rows
from daemon.api.access.rehearsal import REHEARSED
from daemon.api.http.answers import Headers
from daemon.api.http.middleware import AFTERWARDS
from daemon.api.refusals import NimNotInScope, NotRelayed, RoleNotAllowed, TooManyRequests, Unauthenticated, WrongLane
from daemon.core.clock import DAY, Clock
from daemon.core.errors import InvalidRequest, RequestExpired
from daemon.core.keys import ApiKey, inspect
from daemon.core.ledger.deferred import KeyRequired
from daemon.core.machine.state import is_named, same_machine
from daemon.core.people import may

RELAYED: Final = "relayed"
"""In the state of a request that came through the relay: its `RelayedRequest`."""
NOT_AFTER: Final = b"mcfd-not-after"
MOST_DAYS: Final = 7
"""Of a signed request: keys of requests are remembered for longer, so that a repetition gets the answer of the first."""
PASSING: Final = frozenset(
    {
        *("certify_invoice", "certify_credit_note", "get_request", "withdraw_request"),
        *("get_x_report", "close_period", "get_a_report", "list_closures", "get_closure"),
        *("get_articles_report", "close_articles_report", "get_closed_articles_report", "get_given_report"),
        *("close_month", "list_months", "get_month", "close_year", "list_years", "get_year"),
        *("list_certifications", "get_certification", "get_qr_svg", "get_qr_png"),
        *("get_certification_ticket", "get_x_report_ticket", "get_closure_ticket", "get_a_report_ticket"),
        *("get_month_ticket", "get_year_ticket", "get_articles_report_ticket", "get_closed_articles_ticket"),
        *("move_cash", "list_cash_movements", "get_machine_info", "get_me"),
    }
)
"""Operations that the relay passes on."""


class RelayedRequest(msgspec.Struct, frozen=True):
    """`nim`: the machine in the relay's path; `not_after` as the relay says it, in milliseconds since 1970; `now`: the time that limits
    are counted in; `body` as it came; `turn` waits until no till of the shop's network does, once it is known that the request may come in: a
    stranger's waits for nothing."""

    nim: str
    not_after: int
    now: Clock
    body: bytes
    turn: Callable[[], Awaitable[None]]

    def expires(self, limits: list[int]) -> float:
        """On the loop's clock, which no step of the box's moves."""
        left = min([self.not_after, *limits]) - self.now()
        return asyncio.get_running_loop().time() + left / 1000


def by_name(headers: Headers) -> dict[str, str]:
    """Those given twice with a comma between."""
    found: dict[str, str] = {}
    for name, value in headers:
        before, text = found.get(name.decode("latin-1")), value.decode("latin-1")
        found[name.decode("latin-1")] = text if before is None else f"{before}, {text}"
    return found


def relayed(scope: Any) -> RelayedRequest | None:
    found: RelayedRequest | None = scope["state"].get(RELAYED)
    return found


def check_operation(request: Request[Any, Any, Any]) -> None:
    """NotRelayed for what the relay does not pass on, KeyRequired for a POST without a key, RequestExpired for one that comes too late."""
    if request.route_handler.operation_id not in PASSING:
        raise NotRelayed
    if request.method == "POST" and "idempotency-key" not in request.headers:
        raise KeyRequired.at("Idempotency-Key", Text("has to be given with each POST through the relay"))


def expiry(scope: Any, found: RelayedRequest, *, is_signed: bool) -> float:
    """When the request is not carried out any more (loop time): the client's own limit, or the relay's where that comes first. RequestExpired
    when that is over, InvalidRequest for a limit that is none, or that is so late that the box may have forgotten the request by then."""
    try:
        limits = [
            instant_millis(value.decode("latin-1"), "Mcfd-Not-After")
            for name, value in scope["headers"]
            if name == NOT_AFTER
        ]
    except BadEvent:
        raise InvalidRequest.at("Mcfd-Not-After", Text("has to be a time in UTC, as 2026-11-25T10:00:00Z")) from None
    if is_signed and min(limits) > found.now() + MOST_DAYS * DAY:
        fault = Text("may be {days} days ahead at most where the request is signed", days=MOST_DAYS)
        raise InvalidRequest.at("Mcfd-Not-After", fault)
    expires = found.expires(limits)
    if expires <= asyncio.get_running_loop().time():
        raise RequestExpired
    return expires


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
    found_lane = relayed(scope)
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
    """Only wrong keys are counted, and only requests without a valid key are delayed: the tills behind the same address
    go on working while one of them guesses."""
    token, fault = _sent(headers)
    owner = deps.keyring.find(token) if token else None
    if owner is not None and owner.works_at(deps.clock()):
        return owner
    raise refused_key(deps, address, fault or (EXPIRED if owner else UNKNOWN if inspect(token) else MISTYPED))


def _identify(deps: ApiDeps, request: Request[Any, Any, Any], found: RelayedRequest, address: str) -> ApiKey:
    """Of a request through the relay: by its signature, where it has one."""
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
    """TooManyRequests where too many wrong keys came from that address."""
    if wait := deps.wrong_keys.wait(address):
        return TooManyRequests(Text("too many wrong API keys came from this address"), wait)
    if fault == MISSING:
        return Unauthenticated(MISSING)
    deps.wrong_keys.note(address)
    return Unauthenticated(fault, challenge="invalid_token")


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
