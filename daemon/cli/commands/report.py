"""`mcfd report`: X, Z and A as they would be printed; `mcfd poster`: the sign for each till."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from common.language import ambient, tr
from common.wire.instants import now_millis
from daemon.cli.book import BookReader, read_book
from daemon.cli.options import (
    ROW_NUMBER,
    explained,
    json_option,
    nim_argument_option,
    range_options,
    settings_option,
    test_option,
)
from daemon.cli.output import Failure
from daemon.company import shop_of
from daemon.core.clock import millis_text
from daemon.core.report.fiscal_reports import XReport, ZReport
from daemon.core.report.ranges import read_range
from daemon.core.report.report_parts import read_letterhead
from daemon.ledger_access import read_ledger
from daemon.paper.layout import Document, as_text
from daemon.paper.reports import report_document
from daemon.paper.shop import Shop, Style
from daemon.range_reports.table import RANGE_REPORTS, RangeReport
from daemon.settings import Settings
from daemon.store.store import Store
from daemon.store.tables.book.calendar_closures import newest_letterhead
from daemon.usecases.reports.inspect import letterhead_of
from daemon.usecases.reports.report import closure, x_between, x_report

if TYPE_CHECKING:
    from daemon.paper.pdf import PaperSize
command = click.Group("report")


def options(*, ranged: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if ranged:
            function = range_options(function)
        width = click.option(
            "--width", type=click.Choice(["32", "42", "48"]), default="48", show_default=True, help=tr("Columns.")
        )
        return settings_option(nim_argument_option(test_option(width(json_option(function)))))

    return decorate


@command.command(
    "x",
    **explained(
        "The open period; with --from or --to a periodic X.", "mcfd report x", "mcfd report x --from 2026-11-01"
    ),
)
@options(ranged=True)
def x(
    settings: Settings, nim: str, *, test: bool, width: str, as_json: bool, from_: str | None, to: str | None
) -> None:
    ranged = from_ is not None or to is not None

    async def read(reader: BookReader) -> XReport | ZReport:
        return await (x_between(reader, *_range(reader, settings, from_, to)) if ranged else x_report(reader))

    document = partial(report_document, periodic=ranged)
    show(settings, nim, read, document, test=test, width=width, as_json=as_json)


@command.command(
    "z",
    **explained("A stored Z by its number; otherwise the last one.", "mcfd report z", "mcfd report z 12"),
)
@options(ranged=False)
@click.argument("number", type=ROW_NUMBER, required=False, metavar=f"[{tr('NUMBER')}]")
def z(settings: Settings, nim: str, number: int | None, *, test: bool, width: str, as_json: bool) -> None:

    async def read(reader: BookReader) -> XReport | ZReport:
        wanted = number or reader.state().z_number
        if not wanted:
            raise Failure("there is no Z yet")
        return msgspec.json.decode((await closure(reader, str(wanted))).body, type=ZReport)

    show(settings, nim, read, report_document, test=test, width=width, as_json=as_json)


def _add(each: RangeReport) -> None:
    @command.command(each.name, **explained(each.help, f"mcfd report {each.name} --from 2026-11-01 --to 2026-11-30"))
    @options(ranged=True)
    def of_range(
        settings: Settings, nim: str, *, test: bool, width: str, as_json: bool, from_: str | None, to: str | None
    ) -> None:

        async def read(reader: BookReader) -> msgspec.Struct:
            report: msgspec.Struct = await each.read(reader, *_range(reader, settings, from_, to))
            return report

        show(settings, nim, read, each.document, test=test, width=width, as_json=as_json)


for each in RANGE_REPORTS:
    _add(each)


def _range(reader: BookReader, settings: Settings, from_: str | None, to: str | None) -> tuple[int, int]:
    return read_range(from_, to, now=reader.now(), timezone=settings.reports.timezone)


def show(
    settings: Settings,
    nim: str,
    read: Callable[[BookReader], Awaitable[msgspec.Struct]],
    paper: Callable[..., Document],
    *,
    test: bool,
    width: str,
    as_json: bool,
) -> None:
    language = ambient()

    async def both(store: Store) -> tuple[msgspec.Struct, Shop]:
        """Report and shop as on paper: a closed report has the letterhead of its time."""
        reader = await read_book(store, settings, nim, test=test)
        report, ledger, book = await read(reader), reader.ledger, reader.book
        newest = await ledger.read(newest_letterhead, book)
        taxpayer = read_letterhead(newest[1]).taxpayer if newest else ()
        digest = report.letterhead if isinstance(report, ZReport) else ""
        letterhead = await letterhead_of(ledger, book, bytes.fromhex(digest))
        return report, shop_of(settings, book, reader.state().ifu, taxpayer, language, letterhead=letterhead)

    report, shop = read_ledger(settings, both)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return
    document = paper(report, shop, Style(language), printed_at=millis_text(now_millis()))
    click.echo(as_text(document, int(width)), nl=False)


@click.command(
    "poster",
    **explained(
        "The sign that the law wants at each till, as a PDF: EXIGEZ LA FACTURE ELECTRONIQUE CERTIFIEE.",
        "mcfd poster > poster.pdf",
        "mcfd poster --size A5 > poster.pdf",
    ),
)
@click.option("--size", type=click.Choice(("A4", "A5")), default="A4", show_default=True, help=tr("Of the paper."))
def poster(size: str) -> None:
    from daemon.paper.pdf import poster as poster_pdf

    click.echo(poster_pdf(cast("PaperSize", size)), nl=False)
