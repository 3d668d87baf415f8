from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from daemon.cli.failures import Failure, find_machine
from daemon.cli.options import config_option, described, json_option, nim_argument_option
from daemon.core.clock import millis_text
from daemon.core.machine.nim import same_machine
from daemon.core.report.fiscal_reports import AReport, XReport, ZReport, a_report, x_report
from daemon.core.report.ranges import read_range
from daemon.language import ambient, tr
from daemon.ledger_access import now, with_ledger
from daemon.settings import Settings, load

if TYPE_CHECKING:
    from daemon.core.ledger.book import Book
    from daemon.store import Store

Report = XReport | ZReport | AReport


command = click.Group("report")


def options(*, ranged: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if ranged:
            function = click.option("--to", default=None, help=tr("Last day, or an instant; otherwise now."))(function)
            function = click.option("--from", "from_", default=None, help=tr("First day, or an instant."))(function)
        width = click.option(
            "--width", type=click.Choice(["32", "42", "48"]), default="48", show_default=True, help=tr("Columns.")
        )
        test = click.option("--test", is_flag=True, help=tr("Those of the sandbox."))
        return config_option(nim_argument_option(test(width(json_option(function)))))

    return decorate


@command.command(
    "x",
    **described(
        tr("The open period; with --from or --to a periodic X."), "mcfd report x", "mcfd report x --from 2026-11-01"
    ),
)
@options(ranged=True)
def x(
    config: Path | None, nim: str, *, test: bool, width: str, as_json: bool, from_: str | None, to: str | None
) -> None:
    settings = load(config)

    async def job(store: Store) -> Report:
        book = await find_book(store, settings, nim, test=test)
        if from_ is None and to is None:
            aggregate = await store.ledger.aggregated(book)
            cash = await store.ledger.cash_of_period(book, aggregate.period_start)
            return x_report(book, aggregate, now(), cash=cash, labels=settings.payment_labels())
        start, end = read_range(from_, to, now=now(), timezone=settings.reports.timezone)
        aggregate = await store.ledger.aggregate_between(book, start, end)
        cash = await store.ledger.cash_between(book, start, end)
        return x_report(book, aggregate, end, cash=cash, labels=settings.payment_labels())

    show(settings, nim, job, test=test, width=width, as_json=as_json, periodic=bool(from_ or to))


@command.command(
    "z",
    **described(tr("A stored Z by its number; otherwise the last one."), "mcfd report z", "mcfd report z 12"),
)
@options(ranged=False)
@click.argument("number", type=int, required=False)
def z(config: Path | None, nim: str, number: int | None, *, test: bool, width: str, as_json: bool) -> None:
    settings = load(config)

    async def job(store: Store) -> Report:
        book = await find_book(store, settings, nim, test=test)
        wanted = number or (await store.ledger.state(book)).z_number
        if not wanted:
            raise Failure(tr("there is no Z yet"))
        return msgspec.json.decode((await store.ledger.closure(book, wanted)).body, type=ZReport)

    show(settings, nim, job, test=test, width=width, as_json=as_json)


@command.command(
    "a",
    **described(
        tr("Totals and closures of a range; otherwise the last 31 days."),
        "mcfd report a --from 2026-11-01 --to 2026-11-30",
    ),
)
@options(ranged=True)
def a(
    config: Path | None, nim: str, *, test: bool, width: str, as_json: bool, from_: str | None, to: str | None
) -> None:
    settings = load(config)

    async def job(store: Store) -> Report:
        book = await find_book(store, settings, nim, test=test)
        start, end = read_range(from_, to, now=now(), timezone=settings.reports.timezone)
        tally = await store.ledger.tally_between(book, start, end)
        closures = await store.ledger.closures(book, start=start, end=end, limit=None)
        cash = await store.ledger.cash_between(book, start, end)
        return a_report(book, tally, closures, start, end, cash=cash, labels=settings.payment_labels())

    show(settings, nim, job, test=test, width=width, as_json=as_json)


async def find_book(store: Store, settings: Settings, nim: str, *, test: bool) -> Book:
    """The book of that machine, also of one that is no longer in the configuration; Failure names those that there are."""
    mode = "test" if test else "live"
    all_books = [book for book in await store.journal.books() if book.mode == mode]
    books = [book for book in all_books if nim and same_machine(book.nim, nim)]
    if not books:
        nim = find_machine(settings, nim).nim
        books = [book for book in all_books if same_machine(book.nim, nim)]
    if books:
        # Another activation has renamed the book since; of two taxpayers' books the newer one, or the one that is named.
        return next((book for book in books if book.nim == nim), books[-1])
    raise Failure(tr("nothing has been certified on {nim} yet", nim=nim))


def show(
    settings: Settings,
    nim: str,
    job: Callable[[Store], Any],
    *,
    test: bool,
    width: str,
    as_json: bool,
    periodic: bool = False,
) -> None:
    async def both(store: Store) -> tuple[Report, Book, str]:
        book = await find_book(store, settings, nim, test=test)
        return await job(store), book, (await store.ledger.state(book)).ifu

    report, book, ifu = with_ledger(settings, both)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return
    from daemon.company import shop_of
    from daemon.paper.layout import as_text
    from daemon.paper.reports import report_document
    from daemon.paper.shop import Style

    language = ambient()
    shop = shop_of(settings, book, ifu, (), language)
    document = report_document(report, shop, Style(language), printed_at=millis_text(now()), periodic=periodic)
    click.echo(as_text(document, int(width)), nl=False)
