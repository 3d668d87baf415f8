"""Reading the electronic journal. A till that certifies always goes first: a long reading works in slices of a
millisecond or so, and rests between them while somebody is at the machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from daemon.core.certification import Record
from daemon.core.errors import NotFound
from daemon.core.journal import JournalPage, JournalRecord, Page, journal_entry, journal_record
from daemon.usecases.desk import Desk

BATCH = 64
SLICE = 16
"""Records worked on in one go of the loop."""
REST = 0.01
"""Seconds left to the tills after each slice, while there are any."""

Dated = tuple[Record, int]
"""A record and its Z number, 0 while its period is open."""


async def read_page(desk: Desk, page: Page) -> JournalPage:
    """Newest first; `next` is the `before_seq` of the page after this one."""
    records = await desk.ledger.journal(desk.book, page)
    entries = []
    for part in _slices(await _dated(desk, records)):
        entries += [journal_entry(record, z_number) for record, z_number in part]
        await _make_way(desk)
    more = len(records) == page.limit and records[-1].seq > 1
    return JournalPage(desk.book.nim, len(entries), str(records[-1].seq) if more else None, tuple(entries))


async def find(desk: Desk, code: str) -> Record:
    """The certification of that code; some firmware prints it with dashes (protocol 4)."""
    record = await desk.ledger.by_code(desk.book, code.replace("-", ""))
    if record is None:
        raise NotFound("there is no certification of this code")
    return record


async def read_record(desk: Desk, code: str) -> JournalRecord:
    record = await find(desk, code)
    (z_number,) = await desk.ledger.periods(desk.book, [record])
    return journal_record(record, z_number, desk.book.nim)


async def walk(desk: Desk, page: Page) -> AsyncGenerator[Sequence[Dated], None]:
    """All that `page` asks for but its limit, oldest first, in flat memory: slice by slice."""
    batch: list[Record] = []
    async for record in _all(desk, page):
        batch.append(record)
        if len(batch) == BATCH:
            for part in _slices(await _dated(desk, batch)):
                yield part
                await _make_way(desk)
            batch.clear()
    for part in _slices(await _dated(desk, batch)):
        yield part


async def _all(desk: Desk, page: Page) -> AsyncIterator[Record]:
    if page.number or page.state in ("begun", "disputed"):
        for record in reversed(await desk.ledger.journal(desk.book, page)):
            yield record
        return
    async for record in desk.ledger.iterate(desk.book, page.start, page.end):
        if page.state in (None, record.state):
            yield record


async def _dated(desk: Desk, records: Sequence[Record]) -> list[Dated]:
    return list(zip(records, await desk.ledger.periods(desk.book, records), strict=True)) if records else []


def _slices(dated: list[Dated]) -> list[list[Dated]]:
    return [dated[at : at + SLICE] for at in range(0, len(dated), SLICE)]


async def _make_way(desk: Desk) -> None:
    await asyncio.sleep(REST if desk.waiting else 0)
