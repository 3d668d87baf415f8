"""The electronic journal: page by page, one certification, or a whole range as a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, cast, get_args

import msgspec
from litestar import get

from daemon.api.answers import Answer, Reply, encoded
from daemon.api.deps import ApiRequest, deps_of
from daemon.api.describe import RANGE, Doc, Media, Parameter
from daemon.api.query import MAX_LIMIT, integer, range_of, read_query
from daemon.api.refusals import TooManyRequests
from daemon.api.stream import Stream
from daemon.core.certification import State
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.journal import JournalPage, JournalRecord, Page, journal_record
from daemon.core.journal_csv import csv_header, csv_lines, csv_row
from daemon.usecases import journal
from daemon.usecases.desk import Desk

DEFAULT_LIMIT: Final = 100
MAX_CURSOR: Final = 999_999_999
EVER: Final = (0, 1 << 53)
STATES: Final = get_args(State)
PIECE: Final = 16 * 1024
"""Bytes sent at once, at the least."""

FORMATS: Final = {"csv": b"text/csv; charset=utf-8", "jsonl": b"application/x-ndjson"}
_ACCEPTED: Final = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/json": "json",
    "*/*": "json",
}

CODE: Final = Parameter("code", {"type": "string"}, "`codeSecef`, avec ou sans tirets · with or without dashes")


@get(
    "/certifications",
    doc=Doc(
        tag="journal",
        summary="Le journal électronique · The electronic journal",
        text="""Les tentatives terminées d'un intervalle, la plus récente d'abord, page par page (`cursor` = `next` de la page précédente) ;
avec `invoiceNumber` et sans intervalle, dans tout le journal. `format=csv` ou `jsonl` (ou `Accept`) : tout l'intervalle en un
fichier, du plus ancien au plus récent.

What ended in a range, newest first, page by page (`cursor` = `next` of the page before); with `invoiceNumber` and no range, in the
whole journal. `state=begun` and `disputed` are attempts that have not ended. `format=csv` or `jsonl` (or `Accept`): the whole
range as one file, oldest first, each line of JSONL a whole record. A key may have 2 such files open at once. In CSV, a cell
that a spreadsheet would take for a formula begins with an apostrophe.""",
        answer=JournalPage,
        media=(
            Media("text/csv", {"type": "string"}),
            Media("application/x-ndjson", {"type": "string", "x-line": {"$ref": "#/components/schemas/JournalRecord"}}),
        ),
        mentions=(JournalRecord,),
        query=(
            *RANGE,
            Parameter("invoiceNumber", {"type": "string"}, "Ce numéro seulement · Only this number"),
            Parameter("state", {"type": "string", "enum": list(STATES)}, "Cet état seulement · Only this state"),
            Parameter(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
                "Par page · Of one page",
            ),
            Parameter("cursor", {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"}, "`next` de la page précédente"),
            Parameter("format", {"type": "string", "enum": ["json", *FORMATS]}, "Avant `Accept` · Before `Accept`"),
        ),
        problems=(InvalidRequest, TooManyRequests),
    ),
)
async def certifications(request: ApiRequest) -> Reply:
    desk = request.auth.desk
    query = read_query(request, "from", "to", "invoiceNumber", "state", "limit", "cursor", "format")
    page = _page(request, query)
    form = _form(request, query)
    if form == "json":
        return encoded(await journal.read_page(desk, page))
    deps = deps_of(request)
    name = f'attachment; filename="journal-{desk.book.nim}.{form}"'
    return Stream(
        _csv(desk, page) if form == "csv" else _jsonl(desk, page),
        media_type=FORMATS[form],
        headers=((b"content-disposition", name.encode()),),
        place=deps.export_places.take(request.auth.key.id),
        stopping=deps.stopping,
    )


@get(
    "/certifications/{code:str}",
    doc=Doc(
        tag="journal",
        summary="Une certification · One certification",
        text="""Le reçu tel qu'il a été donné, la requête, et la clôture Z dont elle fait partie (`zNumber`, nul tant que la période est ouverte).

The receipt as it was given, the request, and the Z closure that it is in (`zNumber`, null while the period is open).""",
        answer=JournalRecord,
        path=(CODE,),
    ),
)
async def certification(request: ApiRequest) -> Answer:
    return encoded(await journal.read_record(request.auth.desk, request.path_params["code"]))


def _page(request: ApiRequest, query: dict[str, str]) -> Page:
    number, state = query.get("invoiceNumber", ""), query.get("state")
    if state is not None and state not in STATES:
        raise InvalidRequest([FieldError("state", f"has to be one of {', '.join(STATES)}")])
    start, end = EVER if number and not query.keys() & {"from", "to"} else range_of(request, query)
    return Page(
        start,
        end,
        number=number,
        state=cast("State | None", state),
        before_seq=integer(query, "cursor", default=0, least=1, most=MAX_CURSOR),
        limit=integer(query, "limit", default=DEFAULT_LIMIT, least=1, most=MAX_LIMIT),
    )


def _form(request: ApiRequest, query: dict[str, str]) -> str:
    """`format`, or else the first form of `Accept` that there is; what cannot be given as asked comes as JSON."""
    form = query.get("format")
    if form is None:
        accepted = request.headers.get("accept", "")
        kinds = (part.partition(";")[0].strip().lower() for part in accepted.split(","))
        return next((_ACCEPTED[kind] for kind in kinds if kind in _ACCEPTED), "json")
    if form != "json" and form not in FORMATS:
        raise InvalidRequest([FieldError("format", "has to be json, csv or jsonl")])
    return form


async def _csv(desk: Desk, page: Page) -> AsyncGenerator[bytes, None]:
    lines = csv_header()
    async with aclosing(journal.walk(desk, page)) as parts:
        async for part in parts:
            lines += csv_lines(csv_row(record, z_number) for record, z_number in part)
            if len(lines) >= PIECE:
                yield lines.encode()
                lines = ""
    yield lines.encode()


async def _jsonl(desk: Desk, page: Page) -> AsyncGenerator[bytes, None]:
    encoder = msgspec.json.Encoder(decimal_format="number")
    lines = b""
    async with aclosing(journal.walk(desk, page)) as parts:
        async for part in parts:
            lines += encoder.encode_lines([journal_record(*dated, desk.book.nim) for dated in part])
            if len(lines) >= PIECE:
                yield lines
                lines = b""
    yield lines


HANDLERS = (certifications, certification)
