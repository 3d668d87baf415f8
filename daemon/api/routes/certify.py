"""POST certify and credit-note."""

from __future__ import annotations

from daemon.api.access.context import ApiRequest
from daemon.api.document.describe import CERTIFYING, STRICT, Doc, change
from daemon.api.document.shapes import CREDIT_NOTE_EXAMPLE, INVOICE_EXAMPLE, CertifyBody, CreditNoteBody
from daemon.api.http.answers import Answer, encoded
from daemon.api.http.middleware import language_of
from daemon.api.request.body import read_json
from daemon.api.request.call import call_of
from daemon.core.errors import CreditExceedsOriginal
from daemon.core.report.receipt import Receipt, receipt
from daemon.language import Text
from daemon.usecases.certification.certify import certify


async def _certified(request: ApiRequest, *, credit: bool) -> Answer:
    worker = request.auth.worker
    raw, body = await read_json(request.scope["headers"], request.receive)
    done = await certify(worker, body, call_of(request, raw), credit=credit)
    return encoded(receipt(done.value, language_of(request.scope)), replayed=done.replayed)


@change(
    "/certify",
    doc=Doc(
        tag="certification",
        right="certify",
        summary=Text("Certify an invoice"),
        text=Text("""A sale or an advance (FV, FT, EV, ET). The answer is given only once the certification is on disk. With an
`Idempotency-Key` the same request always gets the same answer, after a power cut too. A specific tax that does not
hold the two invariants is folded into the price and never refused; `warnings` says so, and names each field that is not
known with the one that was probably meant. The certification enters the
reports about two seconds later."""),
        answer=Receipt,
        answer_text=Text("Certified"),
        body=CertifyBody,
        example=INVOICE_EXAMPLE,
        headers=(STRICT,),
        problems=CERTIFYING,
    ),
)
async def certify_invoice(request: ApiRequest) -> Answer:
    return await _certified(request, credit=False)


@change(
    "/credit-note",
    doc=Doc(
        tag="certification",
        right="certify",
        summary=Text("Certify a credit note"),
        text=Text("""A credit note (FA) or export credit note (EA), with its nature and the reference of its original. The tax server checks
it, so the answer may take a minute. Credits of one original never exceed it in sum. In reports, credit notes count in
`certs_count` and stand in `by_type` with positive totals; the other totals are net of them."""),
        answer=Receipt,
        answer_text=Text("Certified"),
        body=CreditNoteBody,
        example=CREDIT_NOTE_EXAMPLE,
        headers=(STRICT,),
        problems=(*CERTIFYING, CreditExceedsOriginal),
    ),
)
async def certify_credit_note(request: ApiRequest) -> Answer:
    return await _certified(request, credit=True)


HANDLERS = (certify_invoice, certify_credit_note)
