from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from daemon.cli.commands.records.report import find_book
from daemon.cli.ledger import now, with_ledger
from daemon.cli.shared import (
    config_option,
    examples,
    json_option,
    moment,
    nim_argument_option,
    print_json,
    print_table,
)
from daemon.core.ledger.attempt import AttemptState, Record
from daemon.core.report.journal import Page, journal_record, told_reason
from daemon.core.report.ranges import read_range
from daemon.language import Text, ambient, tr
from daemon.settings import load

if TYPE_CHECKING:
    from daemon.core.ledger.book import Book
    from daemon.store import Store

EVER = (0, 1 << 53)
STATES = {
    "begun": Text("begun"),
    "certified": Text("certified"),
    "refused": Text("refused"),
    "abandoned": Text("abandoned"),
    "disputed": Text("disputed"),
}


@click.command(
    "journal",
    help=tr("The electronic journal, newest first: every attempt to certify, and what became of it."),
    epilog=examples(
        "mcfd journal",
        "mcfd journal --number FV-2026-0001",
        "mcfd journal --from 2026-11-20 --to 2026-11-20 --state refused",
    ),
)
@config_option
@nim_argument_option
@click.option("--number", default="", help=tr("The attempts of this invoice number."))
@click.option("--code", default="", help=tr("The certification of this code."))
@click.option("--from", "from_", default=None, help=tr("First day, or an instant."))
@click.option("--to", default=None, help=tr("Last day, or an instant; otherwise now."))
@click.option("--state", type=click.Choice(get_args(AttemptState)), default=None, help=tr("Only what ended so."))
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help=tr("Lines at the most."))
@click.option("--test", is_flag=True, help=tr("Those of the sandbox."))
@json_option
def command(
    *,
    config: Path | None,
    nim: str,
    number: str,
    code: str,
    from_: str | None,
    to: str | None,
    state: AttemptState | None,
    limit: int,
    test: bool,
    as_json: bool,
) -> None:
    settings = load(config)
    start, end = EVER
    if from_ or to or not (number or code):
        start, end = read_range(from_, to, now=now(), timezone=settings.reports.timezone)

    async def job(store: Store) -> tuple[Book, list[tuple[Record, int]]]:
        book = await find_book(store, settings, nim, test=test)
        if code:
            found = await store.journal.by_code(book, code.replace("-", ""))
            records = [found] if found else []
        else:
            page = Page(start, end, number=number, state=state, limit=limit)
            records = list(await store.journal.page(book, page))
        periods = await store.journal.periods(book, records) if records else ()
        return book, list(zip(records, periods, strict=True))

    book, found = with_ledger(settings, job)
    if as_json:
        print_json([journal_record(record, z_number, book.nim) for record, z_number in found])
        return
    zone = settings.reports.zone
    rows = [
        (
            moment(record.ended_at or record.begun_at, zone),
            record.number,
            record.type,
            record.total_ttc,
            tr(STATES[record.state]),
            z_number or "",
            record.code or told_reason(record, ambient()),
        )
        for record, z_number in found
    ]
    print_table((tr("TIME"), tr("NUMBER"), tr("TYPE"), tr("TOTAL"), tr("STATE"), "Z", tr("CODE OR REASON")), rows)
