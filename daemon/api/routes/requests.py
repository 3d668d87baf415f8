"""GET a request by its Idempotency-Key: for tills that lost the answer, or did not wait for it. DELETE takes a sale back that waits."""

from __future__ import annotations

from urllib.parse import unquote

from litestar import delete, get

from common.language import Text
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import described
from daemon.api.http.answers import Answer, encoded
from daemon.api.rendered_paper import SHAPE, read_wanted, rendered
from daemon.api.request.outcome import RequestOutcome, customer_url, outcome_of
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.ledger.deferred import NotWaiting
from daemon.paper.invoice import invoice_document, waiting_document
from daemon.usecases.certification.requests import FoundRequest, find_request
from daemon.usecases.deferred.take_back import take_back
from daemon.usecases.reports import inspect

TICKET = "/ticket"
UNKNOWN = Text("no request with this Idempotency-Key is known")


@get(
    "/requests/{key:path}",
    **described(
        "get_request",
        tag="certification",
        right="certify",
        summary="What became of a request",
        description="""Of the POST that was sent with this `Idempotency-Key`, as long as keys are remembered. It certifies nothing and waits for
nothing. 404 for a key that was never seen, and for a request that was refused before anything was stored (400, 409, 422 for its content).
With `/ticket` behind the key: the paper of a sale that is certified later, as text, HTML or ESC/POS; first a slip without fiscal value, then the
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
    **described(
        "withdraw_request",
        tag="certification",
        right="certify",
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
    """As it was sent: a router may take slashes away."""
    return unquote(request.scope["raw_path"].partition(b"/requests/")[2].decode("ascii"))


async def _ticket(request: ApiRequest, found: FoundRequest) -> Answer:
    paper, worker, record, sale = deps_of(request).paper, request.auth.worker, found.record, found.sale
    wanted = read_wanted(request, paper)
    await inspect.learn_taxpayer(worker)
    if found.status == "certified" and record is not None:
        shop = await paper.shop_by_letterhead(worker, wanted.style.language, record.invoice.letterhead)
        return await rendered(request, invoice_document(record, shop, wanted.style), wanted)
    if sale is None or sale.invoice is None:
        raise NotFound(Text("there is no paper for this request"))
    url, shop = customer_url(request, sale.address), paper.shop(worker, wanted.style.language)
    return await rendered(request, waiting_document(sale, sale.invoice, shop, wanted.style, url), wanted)


HANDLERS = (get_request, withdraw_request)
