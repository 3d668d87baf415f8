"""The electronic journal: page by page, one certification, or a whole range as a file."""

import re
from functools import partial
from typing import Final, cast, get_args

import msgspec
from litestar import get

from common.language import Text
from daemon.api.access.auth import in_force
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.access.relayed import relayed
from daemon.api.document.describe import RANGE, choice, described, matching, query, whole_number
from daemon.api.http.answers import Answer, Reply, Stream, encoded
from daemon.api.http.middleware import language_of
from daemon.api.refusals import NotRelayed, RoleNotAllowed, TooManyRequests
from daemon.api.request.body import MAX_LIMIT, accepted_form, integer, range_of, read_query
from daemon.core.clock import zone
from daemon.core.errors import InvalidRequest, LedgerUnusable
from daemon.core.invoice.number import normalised
from daemon.core.ledger.attempt import AttemptState
from daemon.core.people import may
from daemon.core.report.acts import JournalCash
from daemon.core.report.journal import JournalPage, JournalRecord, Page
from daemon.core.report.ranges import EVER
from daemon.usecases.reports import journal, report
from daemon.usecases.reports.journal_files import EXCEL_FR, journal_pieces

DEFAULT_LIMIT: Final = 100
CURSOR: Final = re.compile(r"([1-9][0-9]{0,8})(?:\.([0-9]{1,9}))?", re.ASCII)
"""A cursor: seq and Z number, of which the page has earlier entries."""
STATES: Final = get_args(AttemptState)

FORMATS: Final = {"csv": b"text/csv; charset=utf-8", "jsonl": b"application/x-ndjson"}
_ACCEPTED: Final = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/json": "json",
    "*/*": "json",
}

_described = partial(described, tag="journal", right="look")


@get(
    "/certifications",
    **_described(
        "list_certifications",
        summary="The electronic journal",
        description="""What ended in a range, newest first, page by page (`cursor` = `next` of the page before); with `invoiceNumber` and no range, in the
whole journal. `state=begun` and `disputed` are attempts that have not ended. `format=csv` or `jsonl` (or `Accept`): the whole
range as one file, oldest first, each line of JSONL a `JournalRecord`, with the cash that was moved (`JournalCash`) in its place (not with
`invoiceNumber` or `state`). A seller's key sees the open period, and no files. A key may have 2 such files open at once. In CSV, a cell
that a spreadsheet would take for a formula begins with an apostrophe.""",
        answer=JournalPage,
        media=("text/csv", "application/x-ndjson"),
        mentions=(JournalRecord, JournalCash),
        parameters=(
            *RANGE,
            query("invoiceNumber", "Only this number"),
            query("state", "Only this state", choice(*STATES)),
            query("limit", "Of one page", whole_number(1, MAX_LIMIT, DEFAULT_LIMIT)),
            query("cursor", "`next` of the page before", matching(f"^{CURSOR.pattern}$")),
            query("format", "Before `Accept`", choice("json", *FORMATS)),
            query("dialect", "CSV for a French spreadsheet", choice(EXCEL_FR), empty=True),
        ),
        problems=(InvalidRequest, TooManyRequests, LedgerUnusable),
    ),
)
async def certifications(request: ApiRequest) -> Reply:
    worker = request.auth.worker
    query = read_query(request, "from", "to", "invoiceNumber", "state", "limit", "cursor", "format", "dialect")
    page = _page(request, query)
    form = _form(request, query)
    role = request.auth.key.role
    if not may(role, "report"):
        if form != "json":
            raise RoleNotAllowed(role, "report")
        page = msgspec.structs.replace(page, start=max(page.start, await report.period_start(worker)))
    if (dialect := query.get("dialect", "")) not in ("", EXCEL_FR):
        raise InvalidRequest.at("dialect", Text("has to be one of {choices}", choices=EXCEL_FR))
    if form == "json":
        return encoded(await journal.read_page(worker, page, language_of(request.scope)))
    if relayed(request.scope) is not None:
        raise NotRelayed
    deps = deps_of(request)
    name = f'attachment; filename="journal-{worker.book.nim}.{form}"'
    return Stream(
        journal_pieces(worker, page, dialect if dialect and form == "csv" else form, zone(deps.timezone)),
        media_type=FORMATS[form],
        headers=((b"content-disposition", name.encode()),),
        place=deps.exports.take(request.auth.key.id),
        stopping=deps.stopping,
        is_welcome=partial(in_force, deps, request.scope["headers"]),
    )


@get(
    "/certifications/{code:str}",
    **_described(
        "get_certification",
        summary="One certification",
        description="The receipt as it was given, the request, and the Z closure that it is in (`zNumber`, null while the period is open).",
        answer=JournalRecord,
        problems=(LedgerUnusable,),
    ),
)
async def certification(request: ApiRequest) -> Answer:
    record = await journal.read_record(request.auth.worker, request.path_params["code"], language_of(request.scope))
    if record.z_number is not None and not may(request.auth.key.role, "report"):
        raise RoleNotAllowed(request.auth.key.role, "report")
    return encoded(record)


def _page(request: ApiRequest, query: dict[str, str]) -> Page:
    number, state = normalised(query.get("invoiceNumber", "")), query.get("state")
    if state is not None and state not in STATES:
        raise InvalidRequest.at("state", Text("has to be one of {choices}", choices=", ".join(STATES)))
    start, end = EVER if number and not query.keys() & {"from", "to"} else range_of(request, query)
    before_seq, upto_z = _cursor(query.get("cursor"))
    return Page(
        start,
        end,
        number=number,
        state=cast("AttemptState | None", state),
        before_seq=before_seq,
        limit=integer(query, "limit", default=DEFAULT_LIMIT, least=1, most=MAX_LIMIT),
        upto_z=upto_z,
    )


def _cursor(text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    read = CURSOR.fullmatch(text)
    if read is None:
        raise InvalidRequest.at("cursor", Text("has to be `next` of the page before"))
    return int(read[1]), None if read[2] is None else int(read[2])


def _form(request: ApiRequest, query: dict[str, str]) -> str:
    """`format`, else the first supported media type of `Accept`, else JSON."""
    form = query.get("format")
    if form is None:
        return accepted_form(request, _ACCEPTED, "json")
    if form != "json" and form not in FORMATS:
        raise InvalidRequest.at("format", Text("has to be json, csv or jsonl"))
    return form
