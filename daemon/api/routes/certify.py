"""POST an invoice or a credit note. GET a request by its Idempotency-Key: for tills that lost the answer, or did not
wait for it; DELETE takes a sale back that waits."""

from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from litestar import delete, get, post

from common.language import Text
from common.wire.call import prefers_async
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import CERTIFYING, DRY_RUN, ONCE, PREFER, STRICT, described
from daemon.api.http.answers import Answer, encoded
from daemon.api.http.middleware import language_of
from daemon.api.rendered_paper import (
    DOCUMENT,
    SHAPE,
    document_of,
    no_head,
    read_document,
    read_format,
    rendered,
    sale_document,
)
from daemon.api.request.body import json_of, read_bytes, read_query
from daemon.api.request.outcome import (
    RequestOutcome,
    accepted,
    call_of,
    is_dry_run,
    outcome_of,
    own_warnings,
)
from daemon.core.errors import CreditExceedsOriginal, InvalidRequest, NotFound
from daemon.core.invoice.request import CertifyBody, CreditNoteBody
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.deferred import KeyRequired, NotWaiting, NumberWaits
from daemon.core.ledger.take_over import MachineIsSpare
from daemon.core.report.receipt import Adjustment, PaperDocument, Preview, Receipt, preview, receipt
from daemon.usecases.certification.certify import certify, dry_run
from daemon.usecases.certification.idempotency import Answered, FoundRequest, find_request
from daemon.usecases.deferred.accept import certify_or_defer, take_back
from daemon.usecases.reports import acts

INVOICE_EXAMPLE: Final[dict[str, Any]] = {
    "invoiceNumber": "F-2026-000123",
    "invoiceType": "FV",
    "items": [{"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}],
    "payments": [{"method": "E", "amount": 15000}],
}
CREDIT_NOTE_EXAMPLE: Final[dict[str, Any]] = {
    **INVOICE_EXAMPLE,
    "invoiceNumber": "A-2026-000007",
    "invoiceType": "FA",
    "creditNoteNature": "RAM",
    "creditNoteRef": "EL02000015-1-291",
}
TICKET = "/ticket"
UNKNOWN = Text("no request with this Idempotency-Key is known")

_described = partial(described, tag="certification", right="certify")


async def _dry_run(request: ApiRequest, raw: bytes, body: dict[str, Any], *, credit: bool) -> Answer:
    if read_query(request, "document"):
        raise InvalidRequest.at("document", Text("a dry run has no document"))
    invoice = await dry_run(request.auth.selling, body, call_of(request, raw, body), credit=credit)
    return encoded(_warned(request, preview(invoice, language_of(request.scope))))


def _certified(
    request: ApiRequest, done: Answered[Any], record: Record, paper: PaperDocument | Adjustment | None
) -> Answer:
    """`paper`: the document that the request wants, or why it could not be made."""
    answer = _warned(request, receipt(record, language_of(request.scope)))
    if isinstance(paper, PaperDocument):
        answer = msgspec.structs.replace(answer, document=paper)
    elif paper is not None:
        answer = msgspec.structs.replace(answer, warnings=(*answer.warnings, paper))
    return encoded(answer, replayed=done.replayed)


def _warned(request: ApiRequest, answer: Receipt | Preview) -> Receipt | Preview:
    more = own_warnings(request)
    return msgspec.structs.replace(answer, warnings=(*answer.warnings, *more)) if more else answer


@post(
    "/certify",
    **_described(
        "certify_invoice",
        summary="Certify an invoice",
        description="""A sale or an advance (FV, FT, EV, ET). The answer is given only once the certification is on disk. With an
`Idempotency-Key` the same request always gets the same answer, after a power cut too. A specific tax that does not
hold the two invariants is folded into the price and never refused; `warnings` says so, and names each field that is not
known with the one that was probably meant. The certification enters the
reports about two seconds later. With `document=pdf` (or text, html, escpos) the answer has the invoice on paper as well, or the slip of a sale that waits. With `dry_run=true` it is a `Preview`: all is checked, nothing is stored or sent. With
`Prefer: respond-async` the sale is stored with its number taken and answered 202; it is certified as soon as the machine can, within the
48 hours of the law.""",
        answer=Receipt | Preview,
        answer_text="Certified, or what it would be",
        also={202: (RequestOutcome, "Stored, to be certified later")},
        body=CertifyBody,
        example=INVOICE_EXAMPLE,
        parameters=(ONCE, STRICT, DRY_RUN, DOCUMENT, PREFER),
        problems=(*CERTIFYING, NumberWaits, KeyRequired, MachineIsSpare),
    ),
)
async def certify_invoice(request: ApiRequest) -> Answer:
    raw = await read_bytes(request.scope["headers"], request.receive)
    body = json_of(request.scope["headers"], raw)
    if is_dry_run(request):
        return await _dry_run(request, raw, body, credit=False)
    wanted = read_document(request) if request.scope["query_string"] else None
    is_async = prefers_async(value.decode("latin-1") for name, value in request.scope["headers"] if name == b"prefer")
    done = await certify_or_defer(request.auth.selling, body, call_of(request, raw, body), is_async=is_async)
    if isinstance(done.value, Record):
        paper = await document_of(request, wanted, done.value) if wanted else None
        return _certified(request, done, done.value, paper)
    found = await find_request(request.auth.worker, done.value.key) or FoundRequest("waiting", sale=done.value)
    paper = await document_of(request, wanted, _certified_record(found), found.sale) if wanted else None
    return accepted(request, done.value, found, paper, replayed=done.replayed, is_async=is_async)


@post(
    "/credit-note",
    **_described(
        "certify_credit_note",
        summary="Certify a credit note",
        description="""A credit note (FA) or export credit note (EA), with its nature and the reference of its original. The tax server checks
it, so the answer may take a minute. Credits of one original never exceed it in sum. In reports, credit notes count in
`certs_count` and stand in `by_type` with positive totals; the other totals are net of them.""",
        answer=Receipt | Preview,
        answer_text="Certified, or what it would be",
        body=CreditNoteBody,
        example=CREDIT_NOTE_EXAMPLE,
        parameters=(ONCE, STRICT, DRY_RUN, DOCUMENT),
        problems=(*CERTIFYING, NumberWaits, CreditExceedsOriginal, MachineIsSpare),
    ),
)
async def certify_credit_note(request: ApiRequest) -> Answer:
    raw = await read_bytes(request.scope["headers"], request.receive)
    body = json_of(request.scope["headers"], raw)
    if is_dry_run(request):
        return await _dry_run(request, raw, body, credit=True)
    wanted = read_document(request) if request.scope["query_string"] else None
    done = await certify(request.auth.selling, body, call_of(request, raw, body), credit=True)
    paper = await document_of(request, wanted, done.value) if wanted else None
    return _certified(request, done, done.value, paper)


@get(
    "/requests/{key:path}",
    **_described(
        "get_request",
        summary="What became of a request",
        description="""Of the POST that was sent with this `Idempotency-Key`, as long as keys are remembered. It certifies nothing and waits for
nothing. 404 for a key that was never seen, and for a request that was refused before anything was stored (400, 409, 422 for its content).
With `/ticket` behind the key: the paper of a sale that is certified later, as text, HTML, PDF or ESC/POS; first a slip without fiscal value, then the
certified invoice.""",
        answer=RequestOutcome,
        media=("text/plain", "text/html", "application/octet-stream"),
        parameters=SHAPE,
        problems=(InvalidRequest, NotFound),
    ),
)
async def get_request(request: ApiRequest) -> Answer:
    key, worker = _key(request), request.auth.worker
    found = await find_request(worker, key)
    if found is None and key.endswith(TICKET) and (sold := await find_request(worker, key.removesuffix(TICKET))):
        return await _ticket(request, sold)
    if found is None:
        raise NotFound(UNKNOWN)
    return encoded(outcome_of(request, found))


@delete(
    "/requests/{key:path}",
    **_described(
        "withdraw_request",
        summary="Take back a sale that waits",
        description="""A sale that was answered 202 and is not certified yet: it never will be, its number is free again, and chain and audit log
say so. 409 once it is certified, and while the machine is at it or only the machine can tell what became of it.""",
        answer=RequestOutcome,
        problems=(InvalidRequest, NotFound, NotWaiting),
    ),
)
async def withdraw_request(request: ApiRequest) -> Answer:
    found = await take_back(request.auth.worker, _key(request), by=request.auth.actor)
    if found is None:
        raise NotFound(UNKNOWN)
    return encoded(outcome_of(request, found))


def _key(request: ApiRequest) -> str:
    """The key from the raw path, since a router may remove slashes."""
    return unquote(request.scope["raw_path"].partition(b"/requests/")[2].decode("ascii"))


async def _ticket(request: ApiRequest, found: FoundRequest) -> Answer:
    no_head(request)
    wanted, record = read_format(request, deps_of(request).paper), _certified_record(found)
    style = wanted.style
    if record is not None and style.is_duplicate:
        copy = await acts.make_copy(request.auth.worker, record, call_of(request))
        style = msgspec.structs.replace(style, copy=copy)
    return await rendered(request, await sale_document(request, record, found.sale, style), wanted)


def _certified_record(found: FoundRequest) -> Record | None:
    return found.record if found.status == "certified" else None
