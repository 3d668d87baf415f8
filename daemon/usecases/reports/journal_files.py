"""A range of the journal as one file, in pieces of some kilobytes, in flat memory, tills first."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import tzinfo
from typing import Final

import msgspec

from daemon.core.report.journal import Page, journal_record
from daemon.core.report.journal_csv import csv_header, csv_lines, csv_row
from daemon.core.report.journal_excel import excel_header, excel_lines, excel_row
from daemon.usecases.reports import journal
from daemon.usecases.worker.machine_worker import MachineWorker

PIECE: Final = 16 * 1024
"""Bytes given at once, at the least."""


async def as_excel(worker: MachineWorker, page: Page, *, zone: tzinfo) -> AsyncGenerator[bytes, None]:
    yield excel_header().encode()
    async with aclosing(journal.read_in_slices(worker, page)) as parts:
        async for part in parts:
            yield excel_lines(excel_row(csv_row(record, z_number), zone) for record, z_number in part).encode()


async def as_csv(worker: MachineWorker, page: Page) -> AsyncGenerator[bytes, None]:
    lines = csv_header()
    async with aclosing(journal.read_in_slices(worker, page)) as parts:
        async for part in parts:
            lines += csv_lines(csv_row(record, z_number) for record, z_number in part)
            if len(lines) >= PIECE:
                yield lines.encode()
                lines = ""
    yield lines.encode()


async def as_jsonl(worker: MachineWorker, page: Page) -> AsyncGenerator[bytes, None]:
    encoder = msgspec.json.Encoder(decimal_format="number")
    lines = b""
    async with aclosing(journal.read_in_slices(worker, page)) as parts:
        async for part in parts:
            lines += encoder.encode_lines([journal_record(*dated, worker.book.nim) for dated in part])
            if len(lines) >= PIECE:
                yield lines
                lines = b""
    yield lines
