"""The customer's page of a sale that waited: an address on its slip that nobody can guess, without a key."""

from __future__ import annotations

from litestar import get

from common.language import Text
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import described
from daemon.api.http.answers import Answer
from daemon.api.rendered_paper import ALONE, MEDIA
from daemon.api.request.outcome import customer_url
from daemon.core.errors import NotFound
from daemon.paper.html import as_html
from daemon.paper.invoice import invoice_document, waiting_document
from daemon.paper.shop import Style
from daemon.usecases.deferred.take_back import certified_record

NOTHING = Text("there is no invoice at this address; ask the shop")


@get(
    "/f/{address:str}",
    **described(
        "get_customer_page",
        tag="paper",
        summary="The customer's page of a sale that waited",
        description="""Its address stands on the slip, and nobody can guess it. The slip without fiscal value until the sale is certified, then the
certified invoice; 404 for one that was taken back or refused.""",
        media=("text/html",),
        problems=(NotFound,),
        access="open",
    ),
)
async def customer_page(request: ApiRequest) -> Answer:
    deps = deps_of(request)
    worker, sale = await deps.workers.deferred_at(request.path_params["address"])
    if worker is None or sale is None:
        raise NotFound(NOTHING)
    paper, style = deps.paper, Style(deps.paper.language)
    if sale.state == "certified" and sale.attempt_id:
        record = await certified_record(worker, sale)
        shop = await paper.shop_by_letterhead(worker, style.language, record.invoice.letterhead)
        document = invoice_document(record, shop, style)
    elif sale.is_open and sale.invoice is not None:
        shop = paper.shop(worker, style.language)
        document = waiting_document(sale, sale.invoice, shop, style, customer_url(request, sale.address))
    else:
        raise NotFound(NOTHING)
    headers = (ALONE, (b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer"))
    return Answer(as_html(document, paper.width).encode(), media_type=MEDIA["html"], headers=headers)


HANDLERS = (customer_page,)
