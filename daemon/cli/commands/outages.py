from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import get_args

import click

from common.language import ambient, tr
from common.wire.instants import now_millis
from daemon.cli.book import read_book
from daemon.cli.options import (
    ROW_NUMBER,
    examples,
    json_option,
    limit_option,
    nim_argument_option,
    range_options,
    settings_option,
)
from daemon.cli.output import moment, print_json, print_table
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import Recipient
from daemon.core.ledger.outage import Outage
from daemon.core.report.outages import outage_word, read_notice
from daemon.core.report.ranges import EVER, read_range
from daemon.ledger_access import change, read_ledger, read_rows
from daemon.operations import NoteNotified
from daemon.paper.reports import REASONS, RECIPIENTS, duration_text
from daemon.paper.shop import Style
from daemon.settings import Settings
from daemon.store.store import Store
from daemon.store.tables.book.books import all_books
from daemon.store.tables.book.outages import find_outage, newest_outages


@click.command(
    "outages",
    epilog=examples(
        "mcfd outages",
        "mcfd outages --from 2026-01-01 --json",
        'mcfd outages 3 --notified administration --reference "DGI-2026-118"',
    ),
)
@settings_option
@click.argument("number", type=ROW_NUMBER, required=False, metavar=f"[{tr('NUMBER')}]")
@nim_argument_option
@range_options
@limit_option(10_000, tr("Outages of a machine at the most."))
@click.option(
    "--notified",
    type=click.Choice(get_args(Recipient)),
    default=None,
    help=tr("Note that the tax administration, or the distributor, was notified of that outage."),
)
@click.option("--reference", default="", help=tr("With --notified: under which it was filed, or how."))
@click.option("--at", default=None, help=tr("With --notified: when, as 2026-11-25T08:30:00Z; otherwise now."))
@json_option
def command(
    *,
    settings: Settings,
    number: int | None,
    nim: str,
    from_: str | None,
    to: str | None,
    limit: int,
    notified: Recipient | None,
    reference: str,
    at: str | None,
    as_json: bool,
) -> None:
    _check_use(number, is_ranged=bool(from_ or to), notified=notified, reference=reference, at=at)
    start, end = read_range(from_, to, now=now_millis(), timezone=settings.reports.timezone) if from_ or to else EVER

    async def listed(store: Store) -> list[Outage]:
        found = [
            outage
            for book in await _books(store, settings, nim)
            for outage in await store.ledger.read(newest_outages, book, start=start, end=end, limit=limit)
        ]
        return sorted(found, key=lambda outage: outage.since, reverse=True)

    if number is None:
        found = read_ledger(settings, listed)
    else:
        book = read_ledger(settings, lambda store: _book(store, settings, nim))
        if notified is not None:
            notice = read_notice({"who": notified, "reference": reference, "at": at}, now=now_millis(), strict=False)
            change(settings, NoteNotified(book, number, notice))
        found = [read_rows(settings, find_outage, book, number)]
    if as_json:
        print_json([outage_word(outage) for outage in found])
        return
    heads = (
        *(tr("No."), "NIM", tr("SINCE"), tr("UNTIL"), tr("DURATION"), tr("REASON")),
        *(tr("SOLD MEANWHILE"), tr("NOTIFIED")),
    )
    print_table(heads, [_row(outage, settings.reports.zone) for outage in found])


def _check_use(
    number: int | None, *, is_ranged: bool, notified: Recipient | None, reference: str, at: str | None
) -> None:
    if number is not None and is_ranged:
        raise click.UsageError(tr("a number names one outage: not with --from or --to"))
    if notified is None and (reference or at):
        raise click.UsageError(tr("means something only with {other}", other="--notified"))
    if notified is not None and number is None:
        raise click.UsageError(tr("--notified: of which outage? Its number stands in the list"))


async def _books(store: Store, settings: Settings, nim: str) -> Sequence[Book]:
    if nim:
        return [await _book(store, settings, nim)]
    return [book for book in await store.journal.read(all_books) if book.mode == "live"]


async def _book(store: Store, settings: Settings, nim: str) -> Book:
    return (await read_book(store, settings, nim, test=False)).book


def _row(outage: Outage, zone: tzinfo) -> tuple[object, ...]:
    notices = (f"{tr(RECIPIENTS[each.who])} ({each.reference}, {moment(each.at, zone)})" for each in outage.notices)
    return (
        outage.number,
        outage.nim,
        moment(outage.since, zone),
        moment(outage.until, zone) or tr("lasts still"),
        duration_text(outage.duration(now_millis()), Style(ambient())),
        tr(REASONS[outage.reason]),
        f"{outage.sales} · {outage.sales_total} XOF" if outage.sales else "–",
        ", ".join(notices) or tr("no one"),
    )
