"""The register of outages, its notifications, and the declaration for the administration."""

from functools import partial
from typing import Final

from litestar import get, post

from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import OPTIONAL_KEY, RANGE, REPLAYABLE, STORED, STRICT, described, paging
from daemon.api.http.answers import Answer, encoded
from daemon.api.rendered_paper import SHAPE, read_format, rendered
from daemon.api.request.body import read_json, read_page
from daemon.api.request.outcome import call_of, sent_once
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.invoice.unknown import fields_of, unknown_of
from daemon.core.report.outages import NotifiedBody, OutageData, OutageList
from daemon.usecases import outages
from daemon.usecases.reports import inspect

EXAMPLE: Final = {"who": "administration", "reference": "DGI-2026-118", "at": "2026-11-25T08:30:00Z"}

_described = partial(described, tag="reports", right="report")


@get(
    "/outages",
    **_described(
        "list_outages",
        summary="The register of outages",
        description="""When a live machine could not certify, and why (order 2025-0049, articles 6 and 7): those that lasted at some moment of a
range, oldest first, by default of the last 31 days. mcfd keeps it by itself: an outage begins when a till was refused for it, or after
`[[machine]] outage_after` seconds, and ends when the machine can certify again. To read on, ask again with `after` = the last `id`
received. While a spare stands for the machine, the register is still that of the machine. A sandbox has none.""",
        answer=OutageList,
        parameters=(*RANGE, *paging("Outages at the most", "Only those with a greater `id`")),
        problems=(InvalidRequest,),
    ),
)
async def listed(request: ApiRequest) -> Answer:
    return encoded(await outages.list_outages(request.auth.named, *read_page(request)))


@post(
    "/outages/{outage:int}/notified",
    **_described(
        "note_outage_notified",
        right="close",
        summary="Who was notified of an outage",
        description="""The administration and the distributor have to be notified at once (order 2025-0049, article 7 c). It is kept in the chain and
in the audit log. The same `who` and `reference` are noted once, also without an `Idempotency-Key`.""",
        answer=OutageData,
        status=201,
        answer_text="Noted",
        body=NotifiedBody,
        example=EXAMPLE,
        parameters=(OPTIONAL_KEY, STRICT),
        problems=(*REPLAYABLE, NotFound, *STORED),
    ),
)
async def note_notified(request: ApiRequest) -> Answer:
    raw, body = await read_json(request)
    number, call = request.path_params["outage"], call_of(request, raw, body)
    done = await outages.note_notified(request.auth.named, number, body, call)
    return sent_once(request, done, unknown_of(body, fields_of(NotifiedBody)))


@get(
    "/outages/{outage:int}/declaration",
    **_described(
        "get_outage_declaration",
        summary="The declaration of an outage, ready to be signed",
        description="As text, HTML, PDF or ESC/POS: for the administration and the distributor (order 2025-0049, article 7 c).",
        answer_text="The document",
        media=("text/plain", "text/html", "application/pdf", "application/octet-stream"),
        parameters=SHAPE,
        problems=(InvalidRequest, NotFound),
    ),
)
async def declaration(request: ApiRequest) -> Answer:
    paper, worker = deps_of(request).paper, request.auth.named
    wanted = read_format(request, paper)
    await inspect.learn_taxpayer(worker)
    return await rendered(request, await paper.outage(worker, request.path_params["outage"], wanted.style), wanted)
