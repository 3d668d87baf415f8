import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import BinaryIO, get_args

import click

from common.language import Counted, Text, ambient, tr
from daemon.cli.book import BookReader, read_book
from daemon.cli.options import (
    examples,
    file_option,
    json_option,
    limit_option,
    nim_argument_option,
    range_options,
    settings_option,
    test_option,
)
from daemon.cli.output import Progress, moment, output_file, print_json, print_table, say
from daemon.core.errors import NotFound
from daemon.core.invoice.number import normalised
from daemon.core.ledger.attempt import AttemptState, Record
from daemon.core.ledger.entries import CashMove, readable_move
from daemon.core.report.acts import JournalCash, journal_cash
from daemon.core.report.journal import JournalRecord, Page, journal_record, reason_text
from daemon.core.report.ranges import EVER, read_range
from daemon.ledger_access import read_ledger
from daemon.settings import Settings
from daemon.store.store import Store
from daemon.store.tables.book.acts import newest_moves, periods_of_moves
from daemon.store.tables.journal import extent
from daemon.usecases.reports.journal import dated, find
from daemon.usecases.reports.journal_files import FORMATS, Line, journal_pieces
from daemon.usecases.reports.report import a_report

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


@click.command(
    "journal",
    epilog=examples(
        "mcfd journal",
        "mcfd journal --number FV-2026-0001",
        "mcfd journal --from 2026-11-20 --to 2026-11-20 --state refused",
        "mcfd journal --from 2026-01-01 --output journal.csv --format excel-fr",
    ),
)
@settings_option
@nim_argument_option
@click.option("--number", default="", help=tr("The attempts of this invoice number."))
@click.option("--code", default="", help=tr("The certification of this code."))
@range_options
@click.option("--state", type=click.Choice(get_args(AttemptState)), default=None, help=tr("Only what ended so."))
@limit_option(10_000, tr("Lines at the most."))
@test_option
@file_option("--output", tr("Write the whole range into this file instead, oldest first."), dir_okay=False)
@click.option("--format", "form", type=click.Choice(FORMATS), default=None, help=tr("With --output; otherwise csv."))
@json_option
def command(
    *,
    settings: Settings,
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

    def page_of(reader: BookReader) -> Page:
        start, end = EVER
        if from_ or to or not (number or code):
            start, end = read_range(from_, to, now=reader.now(), timezone=settings.reports.timezone)
        return Page(start, end, number=normalised(number), state=state, limit=limit)

    if output is not None:
        with output_file(output) as file:
            write = partial(
                _write, settings=settings, nim=nim, test=test, page_of=page_of, file=file, form=form or "csv"
            )
            lines = read_ledger(settings, write)
        say(Counted("written: {path} ({count} line)", "written: {path} ({count} lines)", lines, path=output))
        return

    async def job(store: Store) -> tuple[str, list[Line]]:
        reader = await read_book(store, settings, nim, test=test)
        page = page_of(reader)
        if code:
            return reader.book.nim, [*await dated(reader, await _of_code(reader, code))]
        upto_z = (await reader.journal.read(extent, reader.book)).z_number
        lines: list[Line] = [*await dated(reader, await reader.journal.page(reader.book, page), upto_z)]
        if not (number or state):
            lines += await _moved(reader, page, upto_z)
        return reader.book.nim, sorted(lines, key=_place, reverse=True)[:limit]

    ledger_nim, found = read_ledger(settings, job)
    if as_json:
        print_json([_json_record(line, ledger_nim) for line in found])
        return
    zone = settings.reports.zone
    heads = (tr("TIME"), tr("NUMBER"), tr("TYPE"), tr("TOTAL"), tr("STATE"), "Z", tr("CODE OR REASON"))
    print_table(heads, [_row(line, zone) for line in found])


async def _of_code(reader: BookReader, code: str) -> Sequence[Record]:
    try:
        return [await find(reader, code)]
    except NotFound:
        return []


async def _moved(reader: BookReader, page: Page, upto_z: int) -> list[Line]:
    book, ledger = reader.book, reader.ledger
    moves = await ledger.read(newest_moves, book, start=page.start, end=page.end, limit=page.limit)
    periods = await ledger.read(periods_of_moves, book, moves)
    return [(readable_move(move, book.nim), z if z <= upto_z else 0) for move, z in zip(moves, periods, strict=True)]


def _place(line: Line) -> tuple[int, int]:
    """Sorts by the order of the book; entries that have not ended are the newest."""
    entry, _ = line
    return (entry.seq or sys.maxsize, 0) if isinstance(entry, Record) else (entry.after_seq, entry.id)


def _json_record(line: Line, nim: str) -> JournalRecord | JournalCash:
    entry, z_number = line
    return journal_record(entry, z_number) if isinstance(entry, Record) else journal_cash(entry, z_number, nim)


def _row(line: Line, zone: tzinfo) -> tuple[object, ...]:
    entry, z_number = line
    if not isinstance(entry, Record):
        move = entry.entry_of(CashMove)
        amount = move.amount if move.kind == "deposit" else -move.amount
        return moment(entry.at, zone), "", "", amount, tr(STATES[move.kind]), z_number or "", move.reason
    at, state = moment(entry.ended_at or entry.begun_at, zone), tr(STATES[entry.state])
    what = entry.code or reason_text(entry, ambient())
    return at, entry.number, entry.type, entry.total_ttc, state, z_number or "", what


async def _write(
    store: Store,
    *,
    settings: Settings,
    nim: str,
    test: bool,
    page_of: Callable[[BookReader], Page],
    file: BinaryIO,
    form: str,
) -> int:
    """Returns the number of lines without the headings."""
    reader = await read_book(store, settings, nim, test=test)
    page = page_of(reader)
    expected = 0 if page.number else (await a_report(reader, page.start, page.end)).certs_count
    written = 0
    with Progress() as progress:
        async with aclosing(journal_pieces(reader, page, form, settings.reports.zone)) as pieces:
            async for piece in pieces:
                file.write(piece)
                written += piece.count(b"\n")
                progress(written, max(expected, written))
    return written - (form != "jsonl")
