"""Who may come in by the relay, and to what: the door of `admit` for requests that did not come over the shop's network (decision 46)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from litestar import Request

from common.language import Text
from common.wire.errors import BadEvent
from common.wire.instants import instant_millis
from daemon.api.http.answers import Headers
from daemon.api.refusals import NotRelayed
from daemon.core.clock import DAY, Clock
from daemon.core.errors import InvalidRequest, RequestExpired
from daemon.core.ledger.deferred import KeyRequired

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
