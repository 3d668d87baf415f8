"""Checks of `admit` for requests through the relay: which operations, and until when (decision 46)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from litestar import Request

from common.language import Text
from common.wire.call import LIMIT_PASSED
from common.wire.errors import BadEvent
from common.wire.instants import instant_millis, instant_text
from daemon.api.http.answers import Headers
from daemon.api.refusals import NotRelayed
from daemon.core.clock import DAY, Clock
from daemon.core.errors import InvalidRequest, RequestExpired
from daemon.core.ledger.deferred import KeyRequired

RELAYED: Final = "relayed"
"""Key of the `RelayedRequest` in the state of a request through the relay."""
NOT_AFTER: Final = b"mcfd-not-after"
MAX_DAYS: Final = 7
"""Longest limit of a signed request in days; Idempotency-Keys are stored for longer."""
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
    """`nim`: the machine in the relay's path; `begin_by`: the relay's limit, loop time; `now`: time base of the
    client's limits (ms since 1970); `body`: the received bytes; `turn`: waits for tills of the shop's network, called
    after authentication; `has_waited`: whether the relay stored it while the box was off."""

    nim: str
    begin_by: float
    now: Clock
    body: bytes
    turn: Callable[[], Awaitable[None]]
    has_waited: bool = False


def by_name(headers: Headers) -> dict[str, str]:
    """Headers by name; repeated ones are joined by a comma."""
    found: dict[str, str] = {}
    for name, value in headers:
        before, text = found.get(name.decode("latin-1")), value.decode("latin-1")
        found[name.decode("latin-1")] = text if before is None else f"{before}, {text}"
    return found


def relayed(scope: Any) -> RelayedRequest | None:
    found: RelayedRequest | None = scope["state"].get(RELAYED)
    return found


def check_operation(request: Request[Any, Any, Any]) -> None:
    """NotRelayed for an operation that the relay does not pass on, KeyRequired for a POST without an Idempotency-Key,
    RequestExpired after its limit."""
    if request.route_handler.operation_id not in PASSING:
        raise NotRelayed
    if request.method == "POST" and "idempotency-key" not in request.headers:
        raise KeyRequired.at("Idempotency-Key", Text("has to be given with each POST through the relay"))


def expiry(scope: Any, found: RelayedRequest, *, is_signed: bool) -> float:
    """Loop time, which a step of the box's clock does not change, after which the request is not carried out: the
    earlier one of the client's and the relay's limit. RequestExpired, with both times if clocks may differ, if it is
    over; InvalidRequest if it is no time, or later than the box stores Idempotency-Keys."""
    try:
        limits = [
            instant_millis(value.decode("latin-1"), "Mcfd-Not-After")
            for name, value in scope["headers"]
            if name == NOT_AFTER
        ]
    except BadEvent:
        raise InvalidRequest.at("Mcfd-Not-After", Text("has to be a time in UTC, as 2026-11-25T10:00:00Z")) from None
    now, loop = found.now(), asyncio.get_running_loop().time()
    if is_signed and min(limits) > now + MAX_DAYS * DAY:
        fault = Text("may be {days} days ahead at most where the request is signed", days=MAX_DAYS)
        raise InvalidRequest.at("Mcfd-Not-After", fault)
    if limits and min(limits) <= now:
        raise RequestExpired(LIMIT_PASSED(limit=instant_text(min(limits)), now=instant_text(now)))
    if found.begin_by <= loop:
        raise RequestExpired
    return min([found.begin_by, *(loop + (limit - now) / 1000 for limit in limits)])
