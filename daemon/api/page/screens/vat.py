"""The VAT of a month, ready to be declared: base and tax of each group, on the screen, as PDF and for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, Final

from common.numbers import amount
from common.web import formats
from common.web.formats import beside, days_of
from daemon.api.http.answers import Answer, Reply
from daemon.api.page.days import month_of
from daemon.api.page.downloads import as_file
from daemon.api.page.screens.files import csv_of
from daemon.api.page.screens.paper import pdf_answer
from daemon.api.page.visit import Visit, screen, shown
from daemon.core.errors import NotFound
from daemon.core.report.fiscal_reports import AReport
from daemon.core.report.journal_csv import Cell
from daemon.paper.elements import Document, Element, Pair, Rule, Table, TextLine, Title
from daemon.usecases.reports import inspect, report

COLUMNS: Final = ("group", "base", "vat", "total")


@screen("/ui/vat", "report")
async def vat(visit: Visit) -> Reply:
    month, found = await _month(visit)
    return await shown(
        visit,
        "vat.html",
        month_text=month,
        report=found,
        before=visit.link("/ui/vat", month=beside(month, -1)),
        after=visit.link("/ui/vat", month=beside(month, 1)),
        is_over=days_of(month)[-1] < visit.today(),
    )


@screen("/ui/vat/{form:str}", "report", whole=False)
async def vat_file(visit: Visit) -> Reply:
    month, found = await _month(visit)
    name = f"tva-{visit.worker.book.nim}-{month}"
    if visit.request.path_params["form"] == "csv":
        rows: list[tuple[Cell, ...]] = [
            COLUMNS,
            *((each.group, each.ht, each.tva, each.ttc) for each in found.by_group),
        ]
        rows.append(("", found.total_ht, found.total_tva, found.total_ttc))
        return Answer(csv_of(visit, rows), media_type=b"text/csv; charset=utf-8", headers=(as_file(f"{name}.csv"),))
    if visit.request.path_params["form"] != "pdf":
        raise NotFound("there is no such file")
    await inspect.learn_taxpayer(visit.worker)
    title = visit.say("VAT of {month}", month=formats.month(month, visit.language))
    document = Document(title, visit.language, tuple(_document(visit, title, found)))
    return await pdf_answer(visit.deps, visit.holder, document, name)


async def _month(visit: Visit) -> tuple[str, AReport]:
    month = month_of(visit.query.get("month", ""), visit.today())
    first, *_, last = days_of(month)
    start, _ = visit.day_bounds(first)
    return month, await report.a_report(visit.worker, start, visit.day_bounds(last)[1])


def _document(visit: Visit, title: str, found: AReport) -> Iterator[Element]:
    say, language, shop = visit.say, visit.language, visit.deps.paper.shop(visit.worker, visit.language)
    yield TextLine(shop.name, align="center", bold=True)
    yield TextLine(f"IFU {shop.ifu}   NIM {shop.nim}", align="center")
    yield Title(title)
    yield Table(
        (say("Group"), say("without VAT"), say("VAT"), say("with VAT")),
        tuple((each.group, *_amounts(each, language)) for each in found.by_group),
    )
    yield Rule()
    for words, value in (
        (say("without VAT"), found.total_ht),
        (say("VAT"), found.total_tva),
        (say("with VAT"), found.total_ttc),
    ):
        yield Pair(words, amount(value, language), bold=True)
    yield TextLine(
        say("Made on {day}, in F CFA, net of credit notes", day=formats.day(date.isoformat(visit.today()), language))
    )


def _amounts(each: Any, language: Any) -> tuple[str, str, str]:
    return amount(each.ht, language), amount(each.tva, language), amount(each.ttc, language)


HANDLERS = (vat, vat_file)
