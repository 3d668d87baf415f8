"""Backups, archives and exports; the log in words, newest first; restoring a copy of the ledger: explanation,
confirmation, and waiting for the restart."""

from collections.abc import AsyncGenerator, Callable, Iterable
from datetime import date
from typing import Any, Final

import msgspec

from common.numbers import parse_integer
from daemon.api.http.answers import Answer, Reply
from daemon.api.page.deps import Copy
from daemon.api.page.downloads import as_file, file_route, range_of_a, range_of_query, streamed
from daemon.api.page.jobs import Job
from daemon.api.page.visit import Visit, html, redirect, render, screen
from daemon.core.clock import millis_text
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.ledger.book import Closure
from daemon.core.report.fiscal_reports import AReport
from daemon.core.report.journal_csv import MARK, Cell, csv_lines, excel_lines
from daemon.core.report.ranges import EVER
from daemon.store.tables.book.closures import closures_between
from daemon.usecases.reports import report
from daemon.usecases.worker.machine_worker import MachineWorker

TYPES: Final = {"csv": b"text/csv; charset=utf-8", "json": b"application/json", "jsonl": b"application/x-ndjson"}
YEARS: Final = range(2020, 2100)
FORMS: Final = ("csv", "jsonl")
BATCH: Final = 100
"""Closures in memory at once."""
CLOSURE_COLUMNS: Final = (
    *("zNumber", "periodStart", "periodEnd", "createdAt", "certsCount", "totalTtc"),
    *("tc", "fvc", "frc", "hash"),
)
Lines = Callable[[Iterable[tuple[Cell, ...]]], str]


@screen("/ui/files", "report")
async def files(visit: Visit) -> Reply:
    this_year = visit.today().year
    first = await visit.worker.ledger.read(closures_between, visit.worker.book, start=0, end=EVER[1], limit=1)
    began = visit.day_of(first[0].period_start).year if first else this_year
    return await render(visit, "files.html", years=range(this_year, began - 1, -1), **_values(visit))


@screen("/ui/files/jobs", "report", whole=False)
async def jobs(visit: Visit) -> Reply:
    """The part of the screen that is reloaded while a file is made."""
    return await html(visit.request, visit.page, "files_jobs.html", moment=visit.moment, **_values(visit))


def _values(visit: Visit) -> dict[str, Any]:
    return {"jobs": visit.page.jobs.of("export"), "files": visit.page.exports()}


@screen("/ui/files", "report", change=True)
async def begin(visit: Visit) -> Reply:
    """Exports one year's journal of the selected machine."""
    year, form = parse_integer(visit.form.get("year", "")), visit.form.get("form", "")
    if year is None or year not in YEARS or form not in FORMS:
        raise InvalidRequest.at("year", visit.say("is needed"))
    start, end = (visit.day_bounds(date(each, 1, 1))[0] for each in (year, year + 1))
    worker, language = visit.worker, visit.language

    async def work(job: Job) -> str:
        return await visit.page.export(worker, year, form, (start, end), language, job.tell)

    visit.page.jobs.begin("export", f"{worker.book.nim} {year}", work)
    return redirect(visit.link("/ui/files"))


download = file_route(
    "/ui/files/made/{name:str}",
    "report",
    lambda page: page.exports(),
    lambda page, name: page.read_export(name),
    lambda name: TYPES[name.rpartition(".")[2]],
    absent="there is no such file",
)


@screen("/ui/files/a/{form:str}", "report", whole=False)
async def totals(visit: Visit) -> Reply:
    first, last = range_of_a(visit)
    start, end = visit.day_bounds(first)[0], visit.day_bounds(last)[1]
    form, found = _form(visit), await report.a_report(visit.worker, start, end)
    body = csv_of(visit, _rows_of_a(found)) if form == "csv" else msgspec.json.encode(found)
    return Answer(body, media_type=TYPES[form], headers=(as_file(f"a-{visit.worker.book.nim}-{first}-{last}.{form}"),))


@screen("/ui/files/closures/{form:str}", "report", whole=False)
async def closures(visit: Visit) -> Reply:
    """Closures of a range of days; without a range all of them."""
    start, end = range_of_query(visit)
    form = _form(visit)
    pieces = closure_pieces(visit.worker, start, end, _csv(visit) if form == "csv" else None)
    return streamed(visit, pieces, TYPES[form], f"closures-{visit.worker.book.nim}.{form}")


async def closure_pieces(
    worker: MachineWorker, start: int, end: int, as_csv: Lines | None
) -> AsyncGenerator[bytes, None]:
    """Closures of `start <= t < end` (ms), oldest first, as CSV or as one JSON array; streamed in batches."""
    after, between = 0, b"["
    if as_csv:
        yield _begun(as_csv, [CLOSURE_COLUMNS])
    while found := await worker.ledger.read(
        closures_between, worker.book, start=start, end=end, after=after, limit=BATCH
    ):
        after = found[-1].z_number
        if as_csv:
            yield as_csv(map(_row_of_closure, found)).encode()
        else:
            yield between + b",".join(closure.body for closure in found)
            between = b","
    if not as_csv:
        yield b"]" if after else b"[]"


def _rows_of_a(found: AReport) -> Iterable[tuple[Cell, ...]]:
    yield ("part", "name", "count", "ht", "tva", "ttc")
    yield ("total", "", found.certs_count, found.total_ht, found.total_tva, found.total_ttc)
    for group in found.by_group:
        yield ("group", group.group, None, group.ht, group.tva, group.ttc)
    for payment in found.by_payment:
        yield ("payment", payment.method, None, None, None, payment.amount)
    for kind in found.by_type:
        yield ("type", kind.invoice_type, kind.count, None, None, kind.total_ttc)


def _row_of_closure(closure: Closure) -> tuple[Cell, ...]:
    times = (closure.period_start, closure.period_end, closure.created_at)
    counters = (closure.counters.tc, closure.counters.fvc, closure.counters.frc)
    numbers = (closure.certs_count, closure.total_ttc)
    return (closure.z_number, *map(millis_text, times), *numbers, *counters, closure.hash.hex())


def _form(visit: Visit) -> str:
    """The format in the path."""
    form = str(visit.request.path_params["form"])
    if form not in ("csv", "json"):
        raise NotFound("there is no such file")
    return form


def csv_of(visit: Visit, rows: Iterable[tuple[Cell, ...]]) -> bytes:
    """A complete CSV file for a spreadsheet in the person's language."""
    return _begun(_csv(visit), rows)


def _csv(visit: Visit) -> Lines:
    """The CSV variant for the person's language."""
    return excel_lines if visit.language == "fr" else csv_lines


def _begun(lines: Lines, rows: Iterable[tuple[Cell, ...]]) -> bytes:
    """Starts with the byte order mark by which a French spreadsheet detects UTF-8."""
    return ((MARK if lines is excel_lines else "") + lines(rows)).encode()


MAX_LINES: Final = 200
SERIOUS: Final = frozenset({"warning", "error", "critical"})


@screen("/ui/log", "administer")
async def log(visit: Visit) -> Reply:
    """All events, or serious ones, or those with the phrase."""
    phrase, only = visit.query.get("q", "")[:60], visit.query.get("only", "")
    wanted = phrase.casefold()
    found = [
        line
        for line in visit.page.log_lines(visit.language)
        if (only != "serious" or line.level in SERIOUS) and wanted in f"{line.words} {line.values}".casefold()
    ]
    return await render(visit, "log.html", lines=found[:MAX_LINES], phrase=phrase, only=only)


@screen("/ui/box/backup/{name:str}/restore", "administer")
async def confirm(visit: Visit) -> Reply:
    """Shows the number of certifications since the copy, which the copy lacks."""
    copy, now = _copy(visit), visit.worker.now()
    live = [worker for worker in visit.deps.workers.all() if worker.book.mode == "live"]
    since = [(worker.book.nim, (await report.a_report(worker, copy.at, now)).certs_count) for worker in live]
    return await render(visit, "restore.html", copy=copy, since=since)


@screen("/ui/box/backup/{name:str}/restore", "administer", change=True)
async def restore(visit: Visit) -> Reply:
    """The last answer of this process."""
    copy = _copy(visit)
    if "sure" not in visit.form:
        raise InvalidRequest.at("sure", visit.say("is needed"))
    await visit.page.restore(copy.name, "newer" in visit.form, visit.actor)
    return await render(visit, "restoring.html", copy=copy)


def _copy(visit: Visit) -> Copy:
    name = str(visit.request.path_params["name"])
    for copy in visit.page.backups():
        if copy.name == name:
            return copy
    raise NotFound("there is no such copy")
