"""POST certify and credit-note."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import post

from common.language import Text
from daemon.api.access.context import ApiRequest
from daemon.api.access.rehearsal import ignored
from daemon.api.document.describe import CERTIFYING, described
from daemon.api.document.operation import DRY_RUN, ONCE, PREFER, STRICT
from daemon.api.http.answers import Answer, encoded
from daemon.api.http.middleware import language_of
from daemon.api.request.body import json_of, read_bytes
from daemon.api.request.call import call_of, prefers_async
from daemon.api.request.outcome import RequestOutcome, accepted, found_for
from daemon.api.request.query import read_query
from daemon.core.errors import CreditExceedsOriginal, FieldError, InvalidRequest
from daemon.core.invoice.request import CertifyBody, CreditNoteBody
from daemon.core.invoice.unknown import misspelt, refusals_of, unknown_of
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.deferred import KeyRequired, NumberWaits
from daemon.core.ledger.take_over import MachineIsSpare
from daemon.core.report.receipt import Preview, Receipt, preview, receipt
from daemon.usecases.certification.certify import certify, dry_run
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.deferred.accept import certify_or_defer

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


async def _dry_run(request: ApiRequest, raw: bytes, body: dict[str, Any], *, credit: bool) -> Answer:
    invoice = await dry_run(request.auth.selling, body, call_of(request, raw), credit=credit)
    return encoded(_warned(request, preview(invoice, language_of(request.scope))))


def _certified(request: ApiRequest, done: Answered[Any], record: Record) -> Answer:
    return encoded(_warned(request, receipt(record, language_of(request.scope))), replayed=done.replayed)


def _warned(request: ApiRequest, answer: Receipt | Preview) -> Receipt | Preview:
    """With what belongs to this request alone, and is not kept."""
    scope = request.scope
    more = ignored(scope["headers"], language_of(scope)) if request.auth.key.mode == "live" else ()
    return msgspec.structs.replace(answer, warnings=(*answer.warnings, *more)) if more else answer


def _is_dry_run(request: ApiRequest) -> bool:
    """A value that is neither true nor false, and a name that is almost this one, are refused: they were sent to be on the safe side."""
    if misspelt_names := misspelt(unknown_of(request.query_params, frozenset({"dry_run"}))):
        raise InvalidRequest(refusals_of(misspelt_names))
    value = read_query(request, "dry_run").get("dry_run", "false")
    if value not in ("true", "false"):
        raise InvalidRequest([FieldError("dry_run", Text("has to be true or false"))])
    return value == "true"


@post(
    "/certify",
    **described(
        "certify_invoice",
        tag="certification",
        right="certify",
        summary="Certify an invoice",
        description="""A sale or an advance (FV, FT, EV, ET). The answer is given only once the certification is on disk. With an
`Idempotency-Key` the same request always gets the same answer, after a power cut too. A specific tax that does not
hold the two invariants is folded into the price and never refused; `warnings` says so, and names each field that is not
known with the one that was probably meant. The certification enters the
reports about two seconds later. With `dry_run=true` it is a `Preview`: all is checked, nothing is stored or sent. With
`Prefer: respond-async` the sale is stored with its number taken and answered 202; it is certified as soon as the machine can, within the
48 hours of the law.""",
        answer=Receipt | Preview,
        answer_text="Certified, or what it would be",
        also={202: (RequestOutcome, "Stored, to be certified later")},
        body=CertifyBody,
        example=INVOICE_EXAMPLE,
        parameters=(ONCE, STRICT, DRY_RUN, PREFER),
        problems=(*CERTIFYING, NumberWaits, KeyRequired, MachineIsSpare),
    ),
)
async def certify_invoice(request: ApiRequest) -> Answer:
    raw = await read_bytes(request.scope["headers"], request.receive)
    body = json_of(request.scope["headers"], raw)
    if _is_dry_run(request):
        return await _dry_run(request, raw, body, credit=False)
    is_async = prefers_async(request.scope["headers"])
    done = await certify_or_defer(request.auth.selling, body, call_of(request, raw), is_async=is_async)
    if isinstance(done.value, Record):
        return _certified(request, done, done.value)
    found = await found_for(request, done.value)
    return accepted(request, done.value, found, replayed=done.replayed, is_async=is_async)


@post(
    "/credit-note",
    **described(
        "certify_credit_note",
        tag="certification",
        right="certify",
        summary="Certify a credit note",
        description="""A credit note (FA) or export credit note (EA), with its nature and the reference of its original. The tax server checks
it, so the answer may take a minute. Credits of one original never exceed it in sum. In reports, credit notes count in
`certs_count` and stand in `by_type` with positive totals; the other totals are net of them.""",
        answer=Receipt | Preview,
        answer_text="Certified, or what it would be",
        body=CreditNoteBody,
        example=CREDIT_NOTE_EXAMPLE,
        parameters=(ONCE, STRICT, DRY_RUN),
        problems=(*CERTIFYING, NumberWaits, CreditExceedsOriginal, MachineIsSpare),
    ),
)
async def certify_credit_note(request: ApiRequest) -> Answer:
    raw = await read_bytes(request.scope["headers"], request.receive)
    body = json_of(request.scope["headers"], raw)
    if _is_dry_run(request):
        return await _dry_run(request, raw, body, credit=True)
    done = await certify(request.auth.selling, body, call_of(request, raw), credit=True)
    return _certified(request, done, done.value)


HANDLERS = (certify_invoice, certify_credit_note)
