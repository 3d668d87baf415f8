"""A range of the journal as one file, in pieces of some kilobytes, in flat memory, tills first: every attempt that ended, and the cash
that was moved between them, in the order of the book."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import tzinfo
from functools import partial
from typing import Final

import msgspec

from common.language import Language
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import Placed, readable_move
from daemon.core.report.acts import journal_act
from daemon.core.report.journal import Extent, Page, journal_record
from daemon.core.report.journal_csv import (
    Cell,
    csv_act,
    csv_header,
    csv_lines,
    csv_row,
    excel_header,
    excel_lines,
    excel_row,
)
from daemon.store.tables.book.acts import acts_between, periods_of_moves
from daemon.store.tables.journal import extent as read_extent
from daemon.usecases.reports.journal import BATCH, ReportSource, read_in_slices

EXCEL_FR: Final = "excel-fr"
FORMATS: Final = ("csv", EXCEL_FR, "jsonl")
PIECE: Final = 16 * 1024
"""Bytes given at once, at the least."""

Line = tuple[Record | Placed, int]
"""What stands on a line, and its Z number, 0 while its period is open."""


def journal_pieces(source: ReportSource, page: Page, form: str, zone: tzinfo) -> AsyncGenerator[bytes, None]:
    """`form` is csv, excel-fr or jsonl; headings first, where the form has them."""

    def excel(lines: list[Line]) -> bytes:
        return excel_lines(excel_row(_cells(line, "fr"), zone) for line in lines).encode()

    if form == EXCEL_FR:
        return _file(source, page, excel, header=excel_header())
    if form == "csv":
        return _file(source, page, lambda lines: csv_lines(map(_cells, lines)).encode(), header=csv_header())
    encoder = msgspec.json.Encoder(decimal_format="number")
    to_record = partial(_json_record, nim=source.book.nim)
    return _file(source, page, lambda lines: encoder.encode_lines([to_record(line) for line in lines]))


def _cells(line: Line, language: Language = "en") -> tuple[Cell, ...]:
    entry, z_number = line
    return csv_row(entry, z_number, language) if isinstance(entry, Record) else csv_act(entry, z_number)


def _json_record(line: Line, nim: str) -> msgspec.Struct:
    entry, z_number = line
    return journal_record(entry, z_number) if isinstance(entry, Record) else journal_act(entry, z_number, nim)


async def _file(
    source: ReportSource, page: Page, write: Callable[[list[Line]], bytes], *, header: str = ""
) -> AsyncGenerator[bytes, None]:
    piece = header.encode()
    async with aclosing(_lines(source, page)) as parts:
        async for part in parts:
            piece += write(part)
            if len(piece) >= PIECE:
                yield piece
                piece = b""
    yield piece


async def _lines(source: ReportSource, page: Page) -> AsyncGenerator[list[Line], None]:
    """A movement stands after the last record that was there before it. All is as it was when the file was begun."""
    extent = await source.journal.read(read_extent, source.book)
    async with aclosing(_moves(source, page, extent)) as moves, aclosing(read_in_slices(source, page, extent)) as parts:
        move = await anext(moves, None)
        async for part in parts:
            lines: list[Line] = []
            for record, z_number in part:
                while move is not None and move[0].after_seq < record.seq:
                    lines.append(_line(move, source))
                    move = await anext(moves, None)
                lines.append((record, z_number))
            yield lines
        while move is not None:
            yield [_line(move, source)]
            move = await anext(moves, None)


def _line(move: tuple[Placed, int], source: ReportSource) -> Line:
    placed, z_number = move
    return readable_move(placed, source.book.nim), z_number


async def _moves(source: ReportSource, page: Page, extent: Extent) -> AsyncGenerator[tuple[Placed, int], None]:
    """None with a number or a state, which only attempts have."""
    after, ledger, book = 0, source.ledger, source.book
    while not (page.number or page.state):
        moves = await ledger.read(acts_between, book, start=page.start, end=page.end, after=after, limit=BATCH)
        for move, z_number in zip(moves, await ledger.read(periods_of_moves, book, moves), strict=True):
            if move.id > extent.entry_id:
                return
            yield move, z_number if z_number <= extent.z_number else 0
        if len(moves) < BATCH:
            return
        after = moves[-1].id
