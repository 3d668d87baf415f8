from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from daemon.cli.commands.records.journal_file import FORMATS, write_journal
from daemon.cli.commands.records.report import find_book
from daemon.cli.options import config_option, examples, json_option, nim_argument_option
from daemon.cli.output import moment, print_json, print_table
from daemon.core.invoice.number import normalised
from daemon.core.ledger.attempt import AttemptState, Record
from daemon.core.ledger.entries import Placed
from daemon.core.ledger.unreadable import readable_move
from daemon.core.report.cash import JournalCash, journal_cash, move_of
from daemon.core.report.journal import JournalRecord, Page, journal_record, told_reason
from daemon.core.report.ranges import read_range
from daemon.language import Text, ambient, tr
from daemon.ledger_access import now, with_ledger
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
    "damaged": Text("damaged"),
    "deposit": Text("deposit"),
    "withdrawal": Text("withdrawal"),
}
Line = tuple[Record | Placed, int]
"""An attempt or a movement of cash, and its Z number, 0 while its period is open."""


@click.command(
    "journal",
    epilog=examples(
        "mcfd journal",
        "mcfd journal --number FV-2026-0001",
        "mcfd journal --from 2026-11-20 --to 2026-11-20 --state refused",
        "mcfd journal --from 2026-01-01 --output journal.csv --format excel-fr",
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
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar=tr("FILE"),
    help=tr("Write the whole range into this file instead, oldest first."),
)
@click.option("--format", "form", type=click.Choice(FORMATS), default=None, help=tr("With --output; otherwise csv."))
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
    output: Path | None,
    form: str | None,
    as_json: bool,
) -> None:
    if output is None and form is not None:
        raise click.UsageError(tr("means something only with {other}", other="--output"))
    if output is not None and (code or as_json):
        raise click.UsageError(tr("a file holds a range: not with --code or --json"))
    settings = load(config)
    start, end = EVER
    if from_ or to or not (number or code):
        start, end = read_range(from_, to, now=now(), timezone=settings.reports.timezone)
    page = Page(start, end, number=normalised(number), state=state, limit=limit)
    if output is not None:
        write_journal(settings, nim, page, output, form or "csv", test=test)
        return

    async def job(store: Store) -> tuple[Book, list[Line]]:
        book = await find_book(store, settings, nim, test=test)
        upto_z = (await store.journal.extent(book)).z_number
        if code:
            found = await store.journal.by_code(book, code.replace("-", ""))
            known = [await store.journal.with_counter(book, found)] if found else []
            return book, await _dated(store, book, known, upto_z)
        lines = await _dated(store, book, await store.journal.page(book, page), upto_z)
        if not (number or state):
            lines = [*lines, *await _moved(store, book, page, upto_z)]
        return book, sorted(lines, key=_place, reverse=True)[:limit]

    book, found = with_ledger(settings, job)
    if as_json:
        print_json([_told(line, book.nim) for line in found])
        return
    zone = settings.reports.zone
    heads = (tr("TIME"), tr("NUMBER"), tr("TYPE"), tr("TOTAL"), tr("STATE"), "Z", tr("CODE OR REASON"))
    print_table(heads, [_row(line, zone) for line in found])


async def _dated(store: Store, book: Book, records: Sequence[Record], upto_z: int) -> list[Line]:
    periods = await store.journal.periods(book, records) if records else ()
    return [(record, z if z <= upto_z else 0) for record, z in zip(records, periods, strict=True)]


async def _moved(store: Store, book: Book, page: Page, upto_z: int) -> list[Line]:
    moves = await store.ledger.newest_moves(book, start=page.start, end=page.end, limit=page.limit)
    periods = await store.ledger.periods_of_moves(book, moves)
    return [(readable_move(move, book.nim), z if z <= upto_z else 0) for move, z in zip(moves, periods, strict=True)]


def _place(line: Line) -> tuple[int, int]:
    """In the order of the book; what has not ended is the newest."""
    entry, _ = line
    return (entry.seq or sys.maxsize, 0) if isinstance(entry, Record) else (entry.after_seq, entry.id)


def _told(line: Line, nim: str) -> JournalRecord | JournalCash:
    entry, z_number = line
    return journal_record(entry, z_number) if isinstance(entry, Record) else journal_cash(entry, z_number, nim)


def _row(line: Line, zone: tzinfo) -> tuple[object, ...]:
    entry, z_number = line
    if not isinstance(entry, Record):
        move = move_of(entry)
        amount = move.amount if move.kind == "deposit" else -move.amount
        return moment(entry.at, zone), "", "", amount, tr(STATES[move.kind]), z_number or "", move.reason
    return (
        moment(entry.ended_at or entry.begun_at, zone),
        entry.number,
        entry.type,
        entry.total_ttc,
        tr(STATES[entry.state]),
        z_number or "",
        entry.code or told_reason(entry, ambient()),
    )
