"""Closures and periods; cash movements beside sales (decision 34); VAT of a month for its declaration, as screen, PDF
and CSV."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from common.language.reasons import from_stored
from common.numbers import amount, money, parse_integer
from common.web import formats
from common.web.formats import days_of, month_after
from daemon.api.http.answers import Answer, Reply
from daemon.api.page.downloads import Day, as_file, change_in_percent, day_of, month_of, range_of_a
from daemon.api.page.screens.files import csv_of
from daemon.api.page.screens.invoices import whole_amount
from daemon.api.page.screens.paper import pdf_answer, printed
from daemon.api.page.visit import Visit, redirect, render, screen
from daemon.core.clock import millis
from daemon.core.errors import InvalidRequest, NotFound, StorageError, TooManyActs, without_paths
from daemon.core.ledger.entries import CalendarClosed, CalendarKind
from daemon.core.report.calendar_report import CalendarReport
from daemon.core.report.fiscal_reports import AReport, ZReport
from daemon.core.report.journal_csv import Cell
from daemon.paper.layout import Document, Element, Pair, Rule, Table, TextLine, Title
from daemon.paper.shop import Style, mark_of_test
from daemon.store.outbox import refused_closures
from daemon.store.tables.book import take_overs
from daemon.store.tables.book.calendar_closures import calendar_closures_of
from daemon.store.tables.book.closures import closures_between
from daemon.store.tables.book.totals import tally_between
from daemon.usecases.reports import inspect, report
from daemon.usecases.reports.acts import cash_moves, move_cash

FEW: Final = 15
"""From this number on, not every bar has a label."""
NAMED_DAYS: Final = (1, 5, 10, 15, 20, 25)
Each = Literal["day", "week", "month", "year"]
MAX_BARS: Final[dict[Each, int]] = {"day": 92, "week": 130, "month": 120, "year": 60}
"""More years have no chart."""
STARTS: Final[dict[Each, Callable[[date], bool]]] = {
    "day": lambda _: True,
    "week": lambda day: day.weekday() == 0,
    "month": lambda day: day.day == 1,
    "year": lambda day: (day.month, day.day) == (1, 1),
}
DAYS_OF_A_WEEK: Final = 7
FIRST_YEAR: Final = 2001


@screen("/ui/closures", "report")
async def closures(visit: Visit) -> Reply:
    month = month_of(visit.query.get("month", ""), visit.today())
    days = days_of(month)
    start, end = visit.day_bounds(days[0], len(days))
    found = await visit.worker.ledger.read(closures_between, visit.worker.book, start=start, end=end)
    cells = [await _day(visit, day, found) for day in days]
    most = max((cell.total for cell in cells), default=0)
    return await render(
        visit,
        "closures.html",
        month_text=month,
        weeks=_weeks(cells),
        most=most,
        closures=list(reversed(found)),
        elsewhere=await _elsewhere(visit, (start, end)),
        closed=[*await _closed(visit, "month", month), *await _closed(visit, "year", month[:4])],
        refused=await _refused(visit),
        before=visit.link("/ui/closures", month=month_after(month, -1)),
        after=visit.link("/ui/closures", month=month_after(month, 1)),
    )


async def _refused(visit: Visit) -> dict[str, str]:
    """Why headquarters refused closures, by report id."""
    if not any(each.parked for each in await visit.backlogs()):
        return {}
    found = await visit.worker.ledger.read(refused_closures, visit.worker.book)
    return {
        report_id: visit.say(
            "Refused by headquarters: {why}",
            why=without_paths(from_stored(why).in_language(visit.language), visit.language),
        )
        for report_id, why in found.items()
    }


async def _closed(visit: Visit, kind: CalendarKind, period: str) -> list[CalendarReport]:
    """The month's or year's closure, none before it is over; after it the one that it supplements."""
    found = await visit.worker.ledger.read(calendar_closures_of, visit.worker.book, kind, period)
    return [msgspec.json.decode(each.entry_of(CalendarClosed).body, type=CalendarReport) for each in found]


@screen("/ui/closures/{z:int}", "report")
async def closure(visit: Visit) -> Reply:
    found = await report.closure(visit.worker, str(visit.request.path_params["z"]))
    z_report = msgspec.json.decode(found.body, type=ZReport)
    done = printed(visit)
    if visit.query.get("new"):
        done = visit.say("Closed: Z {number}.", number=found.z_number)
        for other in visit.worker.pair[1:]:
            if number := parse_integer(visit.query.get("other", "")):
                done += " " + visit.say("Closed: Z {number}.", number=f"{number} ({other.book.nim})")
    problem = _other_count(visit, z_report) if visit.query.get("again") else ""
    refused = await _refused(visit)
    return await render(
        visit, "report.html", report=z_report, what="z", closure=found, done=done, problem=problem, refused=refused
    )


def count_of(z_report: ZReport) -> int | None:
    """The cash count of a Z, or None."""
    return None if isinstance(z_report.cash_count, msgspec.UnsetType) else z_report.cash_count.counted


def _other_count(visit: Visit, z_report: ZReport) -> str:
    """Message for a repeated closing with another count."""
    counted, number = count_of(z_report), z_report.z_number
    if counted is None:
        return visit.say(
            "The day was closed already with Z {number}, without a count of the drawer; what was sent now was not taken.",
            number=number,
        )
    return visit.say(
        "The day was closed already with Z {number}. The count of the drawer that stands in it: {counted}; what was sent now was not taken.",
        number=number,
        counted=money(counted),
    )


@screen("/ui/a", "report")
async def a_screen(visit: Visit) -> Reply:
    first, last = range_of_a(visit)
    days = (last - first).days + 1
    start, end = visit.day_bounds(first, days)
    a_report = await report.a_report(visit.worker, start, end)
    each, begins = _bars(first, last, visit.query.get("by", ""))
    ends = [*begins[1:], date.fromordinal(last.toordinal() + 1)]
    chart = [await _bar(visit, each, at, (to - at).days, len(begins)) for at, to in zip(begins, ends, strict=False)]
    before = await _sold(visit, first - timedelta(days=days), days) if first.year > FIRST_YEAR else 0
    return await render(
        visit,
        "report.html",
        report=a_report,
        what="a",
        elsewhere=await _elsewhere(visit, (start, end)),
        chart=chart,
        each=each,
        first=first,
        last=last,
        change=change_in_percent(a_report.total_ttc, before),
        chips=_ranges(visit, first, last),
    )


def _ranges(visit: Visit, first: date, last: date) -> list[tuple[str, str, bool]]:
    """Usual ranges: label, link, whether it is the current one."""
    today, say = visit.today(), visit.say
    month = today.replace(day=1)
    end_of_last = month - timedelta(days=1)
    ranges = (
        (say("Today"), today, today),
        (say("This week"), today - timedelta(days=today.weekday()), today),
        (say("This month"), month, today),
        (say("Last month"), end_of_last.replace(day=1), end_of_last),
        (say("This year"), today.replace(month=1, day=1), today),
    )
    links = [visit.link("/ui/a", **{"from": start.isoformat(), "to": end.isoformat()}) for _, start, end in ranges]
    return [
        (words, link, (start, end) == (first, last)) for (words, start, end), link in zip(ranges, links, strict=True)
    ]


def _bars(first: date, last: date, by: str = "") -> tuple[Each, list[date]]:
    """Unit of the bars, `by` or else the finest that fits, and the first day of each; no bars if the range has too many
    years."""
    if last.year - first.year < MAX_BARS["year"]:
        days = range(first.toordinal() + 1, last.toordinal() + 1)
        units: tuple[Each, ...] = (*(each for each in MAX_BARS if each == by), "day", "month", "year")
        for each in units:
            begins = [first, *islice(filter(STARTS[each], map(date.fromordinal, days)), MAX_BARS[each])]
            if len(begins) <= MAX_BARS[each]:
                return each, begins
    return "year", []


async def _bar(visit: Visit, each: Each, at: date, days: int, bars: int) -> tuple[str, int, str]:
    """A bar for `charts.bars`: label, sales in `days` from `at` on, and both in words."""
    sold = await _sold(visit, at, days)
    text = at.isoformat()
    named = {
        "day": formats.day(text, visit.language),
        "week": visit.say("week of {day}", day=formats.day(text, visit.language)),
        "month": formats.month(text[:7], visit.language),
        "year": text[:4],
    }
    return _under(each, at, bars), sold, visit.say("{name}: {value}", name=named[each], value=money(sold))


def _under(each: Each, at: date, bars: int) -> str:
    """The label of a bar: each if there are few bars, otherwise only some."""
    if each == "week":
        return f"{at.day}/{at.month}" if bars < FEW or at.day <= DAYS_OF_A_WEEK else ""
    if each == "day":
        return str(at.day) if bars < FEW or at.day in NAMED_DAYS else ""
    if each == "month":
        return str(at.month) if bars < FEW else str(at.year) if at.month == 1 else ""
    return str(at.year) if bars < FEW or at.year % 5 == 0 else ""


async def _day(visit: Visit, day: date, found: Any) -> Day:
    start, end = visit.day_bounds(day)
    total = await _sold(visit, day)
    zs = [each.z_number for each in found if start <= each.created_at < end]
    return Day(day, total, tuple(zs), is_over=day < visit.today())


async def _sold(visit: Visit, day: date, days: int = 1) -> int:
    """Net sales in XOF from the start of `day` on."""
    return report.net_total(
        await visit.worker.ledger.read(tally_between, visit.worker.book, *visit.day_bounds(day, days))
    )


def _weeks(cells: list[Day]) -> list[list[Day | None]]:
    """Rows of seven days, Monday first; None outside the month."""
    padded: list[Day | None] = [None] * cells[0].date.weekday() + list(cells)
    padded += [None] * (-len(padded) % 7)
    return [padded[at : at + 7] for at in range(0, len(padded), 7)]


PER_PAGE: Final = 200
LONGEST_KEY: Final = 64


async def _cash(visit: Visit) -> Reply:
    first, last = range_of_a(visit, day_of(visit.query.get("to", "")) or visit.today())
    start, end = visit.day_bounds(first)[0], visit.day_bounds(last)[1]
    if not visit.may("report"):
        start = max(start, await report.period_start(visit.worker))
    cursor = parse_integer(visit.query.get("after", "")) or 0
    found = [await cash_moves(each, start, max(start, end), cursor, PER_PAGE) for each in visit.worker.pair]
    moves = sorted((move for each in found for move in each.movements), key=lambda move: move.id)[:PER_PAGE]
    more = {"from": first.isoformat(), "to": last.isoformat(), "after": moves[-1].id if moves else 0}
    return await render(
        visit,
        "cash.html",
        done=visit.say("Noted.") if visit.query.get("noted") else "",
        found=found,
        rows=[(millis(datetime.fromisoformat(each.at)), each) for each in reversed(moves)],
        more=visit.link("/ui/cash", **more) if len(moves) == PER_PAGE else "",
        drawer=report.drawer(await report.open_periods(visit.worker)) if visit.may("report") else None,
        first=first,
        last=last,
        form=visit.form,
        key=secrets.token_urlsafe(18),
    )


cash = screen("/ui/cash", "look")(_cash)


@screen("/ui/cash", "certify", change=True, form=_cash, faults=(InvalidRequest, TooManyActs, StorageError))
async def note(visit: Visit) -> Reply:
    """A repeated form notes one movement; a changed form is another one."""
    form = visit.form
    body = {
        "kind": form.get("kind", ""),
        "amount": _whole(visit),
        "reason": form.get("reason", ""),
        "operatorName": visit.session.name,
    }
    key = form.get("key", "")[:LONGEST_KEY] or secrets.token_urlsafe(18)
    content = f"page cash {visit.worker.book.id} {body['kind']} {body['amount']} {body['reason']}"
    digest = hashlib.sha256(content.encode()).hexdigest()[:32]
    await move_cash(visit.worker, body, visit.call(f"page {key} {digest}", content))
    return redirect(visit.link("/ui/cash", noted="1"))


def _whole(visit: Visit) -> int:
    """The movement's amount, as it may be written ("15 000"); whether it is above 0 is checked for tills too."""
    number = whole_amount(visit.form.get("amount", ""))
    if number is None:
        raise InvalidRequest.at("amount", visit.say("must be a whole number of francs, above 0"))
    return number


@screen("/ui/vat", "report")
async def vat(visit: Visit) -> Reply:
    month, found = await _month(visit)
    return await render(
        visit,
        "vat.html",
        month_text=month,
        report=found,
        elsewhere=await _elsewhere(visit, _bounds(visit, month)),
        before=visit.link("/ui/vat", month=month_after(month, -1)),
        after=visit.link("/ui/vat", month=month_after(month, 1)),
        is_over=_is_over(visit, month),
    )


@screen("/ui/vat/{form:str}", "report", whole=False)
async def vat_file(visit: Visit) -> Reply:
    month, found = await _month(visit)
    name = f"tva-{visit.worker.book.nim}-{month}"
    if visit.request.path_params["form"] == "csv":
        rows: list[tuple[Cell, ...]] = [
            (visit.say("Group"), visit.say("without VAT"), visit.say("VAT"), visit.say("with VAT")),
            *((each.group, each.ht, each.tva, each.ttc) for each in found.by_group),
        ]
        rows.append((visit.say("Total"), found.total_ht, found.total_tva, found.total_ttc))
        return Answer(csv_of(visit, rows), media_type=b"text/csv; charset=utf-8", headers=(as_file(f"{name}.csv"),))
    if visit.request.path_params["form"] != "pdf":
        raise NotFound("there is no such file")
    await inspect.learn_taxpayer(visit.worker)
    title = visit.say("VAT of {month}", month=formats.month(month, visit.language))
    elements = tuple(_document(visit, title, month, found, await _elsewhere(visit, _bounds(visit, month))))
    return await pdf_answer(visit.deps, visit.holder, Document(title, visit.language, elements), name)


def _is_over(visit: Visit, month: str) -> bool:
    return days_of(month)[-1] < visit.today()


async def _month(visit: Visit) -> tuple[str, AReport]:
    month = month_of(visit.query.get("month", ""), visit.today())
    return month, await report.a_report(visit.worker, *_bounds(visit, month))


def _bounds(visit: Visit, month: str) -> tuple[int, int]:
    days = days_of(month)
    return visit.day_bounds(days[0], len(days))


async def _elsewhere(visit: Visit, bounds: tuple[int, int]) -> str:
    """Names machines whose sales in this time are in another book (the spare, or the machine it replaced); empty if
    none."""
    ledger = visit.worker.ledger
    others = [
        book.nim
        for book in ledger.peek(take_overs.sharing, visit.worker.book)
        if await ledger.read(tally_between, book, *bounds)
    ]
    return certified_too(visit, others)


def certified_too(visit: Visit, nims: Sequence[str]) -> str:
    """That these machines have figures of the same time; empty without any."""
    if not nims:
        return ""
    return visit.say(
        "{nim} has certified in this time as well: its figures stand on a page of their own, and both are declared.",
        nim=", ".join(nims),
    )


def _document(visit: Visit, title: str, month: str, found: AReport, elsewhere: str) -> Iterator[Element]:
    say, language, shop = visit.say, visit.language, visit.deps.paper.shop(visit.worker, visit.language)
    yield TextLine(shop.name, align="center", bold=True)
    yield TextLine(f"IFU {shop.ifu}   NIM {shop.nim}", align="center")
    yield Title(title)
    yield from mark_of_test(shop, Style(language), is_test=False)
    if not _is_over(visit, month):
        yield TextLine(say("This month is not over."), align="center", bold=True)
    if elsewhere:
        yield TextLine(elsewhere, bold=True)
    yield Table(
        (say("Group"), say("without VAT"), say("VAT"), say("with VAT")),
        tuple((each.group, *map(amount, (each.ht, each.tva, each.ttc))) for each in found.by_group),
    )
    yield Rule()
    yield Pair(say("without VAT"), amount(found.total_ht), bold=True)
    yield Pair(say("VAT"), amount(found.total_tva), bold=True)
    yield Pair(say("with VAT"), amount(found.total_ttc), bold=True)
    if found.test is not msgspec.UNSET:
        yield Pair(say("of which in test mode, without fiscal value"), str(found.test), bold=True)
    yield TextLine(
        say("Made on {day}, in F CFA, net of credit notes", day=formats.day(date.isoformat(visit.today()), language))
    )
