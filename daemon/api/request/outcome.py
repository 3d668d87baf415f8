"""The parts of a request beside its body (`Call`), and its status for `…/requests/{key}` and a 202."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Meta

from common.language import Text
from common.language.reasons import from_stored
from common.sockets import is_loopback
from common.wire.call import IDEMPOTENCY_KEY
from common.wire.closure import Withholding
from common.wire.json_values import canonical, with_nulls
from daemon.api.access.auth import is_strict
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.access.relayed import relayed
from daemon.api.http.answers import Answer, Header, Headers, encoded, sent
from daemon.api.http.middleware import language_of
from daemon.api.problems import Problem, problem_of
from daemon.api.request.body import read_empty, read_query
from daemon.core.audit import Call
from daemon.core.clock import millis_text
from daemon.core.errors import InvalidRequest, MachineRefused
from daemon.core.invoice.unknown import Unknown, fields_of, refusals_of, unknown_of, warnings_of
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.ledger.failure import failure_of
from daemon.core.machine.state import short_nim
from daemon.core.report.receipt import Adjustment, PaperDocument, Receipt, adjustments, preview, receipt
from daemon.usecases.certification.idempotency import Answered, FoundRequest, RequestStatus

_MACHINE_PATH = re.compile("(/v1/mcf/)([^/]*)(.*)", re.DOTALL)
_DRY_RUN = re.compile("dry[_-]?run", re.IGNORECASE)
NOT_A_KEY: Final = Text("has to be given once, with 1 to 200 printable ASCII characters")
CUSTOMER_PATH: Final = "/f/"
IDLE_HEADERS: Final = {
    "TEST": ("Mcfd-Test", Text("does nothing with a live key")),
    "NOT_AFTER": ("Mcfd-Not-After", Text("does nothing in the shop's network, only through the relay")),
}
APPLIED: Final[Header] = (b"preference-applied", b"respond-async")


def call_of(request: ApiRequest, raw: bytes = b"", body: dict[str, Any] | None = None) -> Call:
    """The `Call` of a POST; `raw`: the received body, `body`: the object in it."""
    scope = request.scope
    key = _idempotency_key(scope["headers"])
    own_id = scope["state"]["request_id"]
    if scope["method"] != "GET":
        _check_dry_run(request, body or {})
    by, strict = request.auth.actor, is_strict(request)
    expires = request.auth.expires
    if not key:
        return Call(own_id, by=by, strict=strict, expires=expires)
    method, path, query = scope["method"], scope["path"], _query_of(request) if scope["query_string"] else ""
    before, nim, after = found.groups() if (found := _MACHINE_PATH.fullmatch(path)) else (path, "", "")

    def earlier(nims: Iterable[str]) -> Iterator[bytes]:
        yield _fingerprint(method, path_alone, with_nulls(body or {}))
        yield from (
            _fingerprint(method, before + each + after + query, raw) for each in {"", nim, short_nim(nim), *nims}
        )

    path_alone = before + after + query
    own = _fingerprint(method, path_alone, canonical(body or {}))
    return Call(own_id, key, own, by, strict, earlier, expires)


def _query_of(request: ApiRequest) -> str:
    """The parameters that the operation knows, sorted. A dry run stores no key, and a document changes nothing."""
    names = request.route_handler.opt["queries"] - {"dry_run", "document"}
    found = sorted(each for each in request.query_params.multi_items() if each[0] in names)
    return f"?{urlencode(found)}" if found else ""


def is_dry_run(request: ApiRequest) -> bool:
    """Whether the request is a dry run; InvalidRequest for a value except true and false. A misspelt name does not come
    this far (`access.auth`)."""
    if not request.scope["query_string"]:
        return False
    value = read_query(request, "dry_run").get("dry_run", "false")
    if value not in ("true", "false"):
        raise InvalidRequest.at("dry_run", Text("has to be true or false"))
    return value == "true"


def _check_dry_run(request: ApiRequest, body: Mapping[str, object]) -> None:
    """InvalidRequest for a dry run of what cannot be tried, and for `dry_run` in the body, which would be done."""
    if is_dry_run(request):
        if not request.route_handler.opt["can_be_tried"]:
            raise InvalidRequest.at("dry_run", Text("is not known here; nothing was done"))
    elif name := next((name for name in body if _DRY_RUN.fullmatch(name) and body[name]), ""):
        raise InvalidRequest.at(name, Text("belongs in the URL (dry_run=true); nothing was done"))


def _fingerprint(method: str, path: str, body: bytes) -> bytes:
    return hashlib.sha256(b"\n".join((method.encode(), path.encode(), body))).digest()[:16]


class OptionalBody(NamedTuple):
    """An optional body: its bytes, its object and its unknown fields."""

    raw: bytes
    fields: dict[str, Any]
    unknown: tuple[Unknown, ...]


async def read_optional(request: ApiRequest, shape: type[msgspec.Struct]) -> OptionalBody:
    """Reads an optional body; InvalidRequest for a field that `shape` lacks if the request is strict (decision 27)."""
    raw, fields = await read_empty(request.scope["headers"], request.receive)
    unknown = unknown_of(fields, fields_of(shape))
    if unknown and is_strict(request):
        raise InvalidRequest(refusals_of(unknown))
    return OptionalBody(raw, fields, unknown)


def own_warnings(request: ApiRequest, unknown: tuple[Unknown, ...] = ()) -> tuple[Adjustment, ...]:
    """Warnings of this request that are not stored: unknown fields, and headers without effect here."""
    names, language = {name for name, _ in request.scope["headers"]}, language_of(request.scope)
    idle = {"TEST": request.auth.key.mode == "live", "NOT_AFTER": relayed(request.scope) is None}
    more = [
        Adjustment(f"{name}_HEADER_IGNORED", f"{header}: {why.in_language(language)}", field=header)
        for name, (header, why) in IDLE_HEADERS.items()
        if idle[name] and header.lower().encode() in names
    ]
    return (*adjustments(warnings_of(unknown), language), *more)


def sent_once(request: ApiRequest, done: Answered[bytes], unknown: tuple[Unknown, ...], *, status: int = 201) -> Answer:
    """The answer for a stored JSON object, with `warnings` if there are any."""
    body = done.value
    if warnings := own_warnings(request, unknown):
        body = b'%s,"warnings":%s}' % (body.removesuffix(b"}"), msgspec.json.encode(warnings))
    return sent(body, status=status, replayed=done.replayed)


def _idempotency_key(headers: Headers) -> str:
    sent = [value.decode("latin-1") for name, value in headers if name == b"idempotency-key"]
    if not sent:
        return ""
    if len(sent) > 1 or not IDEMPOTENCY_KEY.fullmatch(sent[0]):
        raise InvalidRequest.at("Idempotency-Key", NOT_A_KEY)
    return sent[0]


class RequestOutcome(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel"):
    status: Annotated[
        RequestStatus,
        Meta(
            description="`waiting` for its turn; `on_the_line`: the machine has it; `in_doubt`: only the machine or an operator can tell; "
            "`certified`; `refused` by the machine; `abandoned`: nothing was certified; `answered`: what is no invoice (a Z, cash, a print), and is done"
        ),
    ]
    receipt: Annotated[Receipt | None, Meta(description="When certified, as the request was answered")] = None
    problem: Annotated[Problem | None, Meta(description="When refused or abandoned: what the request was answered")] = (
        None
    )
    invoice_number: Annotated[
        str, Meta(description="Of a sale that is certified later: its number, which is taken")
    ] = ""
    total_ttc: Annotated[int, Meta(description="Of a sale that is certified later: its total, XOF")] = 0
    sold_at: Annotated[str, Meta(description="When it was taken on")] = ""
    regularise_before: Annotated[str, Meta(description="The end of the 48 hours that the law leaves")] = ""
    ticket: Annotated[
        str, Meta(description="Path of what the customer gets at once: a slip without fiscal value, later the invoice")
    ] = ""
    customer_page: Annotated[
        str,
        Meta(
            description="Path of the page at which the customer finds the certified invoice later; it cannot be guessed"
        ),
    ] = ""
    stamp_duty: Annotated[int, Meta(description="While it waits: to be collected in cash on top of `totalTtc`")] = 0
    psvb_by_group: Annotated[
        tuple[Withholding, ...], Meta(description="While it waits: all withholdings, by group")
    ] = ()
    warnings: Annotated[
        tuple[Adjustment, ...], Meta(description="While it waits: what was folded, rounded, adjusted or ignored")
    ] = ()
    document: Annotated[
        PaperDocument | None, Meta(description="Where the request has `document`: its slip, or the certified invoice")
    ] = None


def accepted(
    request: ApiRequest,
    sale: DeferredSale,
    found: FoundRequest,
    paper: PaperDocument | Adjustment | None,
    *,
    replayed: bool,
    is_async: bool,
) -> Answer:
    """202 for a deferred sale; `found`: its status; `paper`: the document that the request wants, or why there is none."""
    outcome, document = outcome_of(request, found), paper if isinstance(paper, PaperDocument) else None
    more = (*own_warnings(request), *([paper] if isinstance(paper, Adjustment) else ()))
    answered = msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *more), document=document)
    answer = encoded(answered, status=202, replayed=replayed)
    answer.headers.append((b"location", _path(request, sale).encode()))
    if is_async:
        answer.headers.append(APPLIED)
    return answer


def outcome_of(request: ApiRequest, found: FoundRequest) -> RequestOutcome:
    language = language_of(request.scope)
    record, sale = found.record, found.sale
    failure = failure_of(record) if record and found.status in ("refused", "abandoned") else None
    if record is None and sale is not None and found.status == "refused":
        failure = MachineRefused(from_stored(sale.why))
    outcome = RequestOutcome(
        status=found.status,
        receipt=receipt(record, language) if record and found.status == "certified" else None,
        problem=None if failure is None else problem_of(failure, request.scope["state"]["request_id"], language),
    )
    if sale is None:
        return outcome
    if sale.invoice is not None:
        would_be = preview(sale.invoice, language)
        outcome = msgspec.structs.replace(
            outcome,
            stamp_duty=would_be.stamp_duty,
            psvb_by_group=would_be.psvb_by_group,
            warnings=would_be.warnings,
        )
    return msgspec.structs.replace(
        outcome,
        invoice_number=sale.number,
        total_ttc=sale.total_ttc,
        sold_at=millis_text(sale.sold_at),
        regularise_before=millis_text(sale.due_at),
        ticket=f"{_path(request, sale)}/ticket",
        customer_page=f"{CUSTOMER_PATH}{sale.address}",
    )


def customer_url(request: ApiRequest, address: str) -> str:
    """The address for a QR code: the box's public one, or the one that the till used; empty for loopback."""
    base = deps_of(request).public_url
    if not base:
        host = request.headers.get("host", "")
        if is_loopback(urlsplit(f"//{host}").hostname or "localhost"):
            return ""
        base = f"{request.scope['scheme']}://{host}"
    return f"{base.rstrip('/')}{CUSTOMER_PATH}{address}"


def _path(request: ApiRequest, sale: DeferredSale) -> str:
    return f"/v1/mcf/{request.path_params['nim']}/requests/{quote(sale.key, safe='')}"
