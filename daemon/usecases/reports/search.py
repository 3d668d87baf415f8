"""A search through the journal as a person types it: a number or a part of one, a code, a customer, an amount."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from daemon.core.ledger.attempt import Record
from daemon.core.report.journal import Page
from daemon.usecases.reports.journal import Dated, dated, make_way
from daemon.usecases.worker.machine_worker import MachineWorker

SLICE = 200
BUDGET = 20_000
"""Records whose customer is looked at for one answer; the next answer goes on."""
STRETCH = 5_000
SIFTED = 200_000
"""Entries gone through for an amount, a type or a state: at a time, and for one answer."""
CODE_LENGTH = 24


class Search(msgspec.Struct, frozen=True):
    page: Page
    text: str = ""
    """looked for in numbers, codes and customers"""
    amount: int | None = None
    """whole XOF; None for any"""
    type: str = ""


class Found(msgspec.Struct, frozen=True):
    """Records with their Z (0: open), newest first. `next` is the `before_seq` to go on with, 0 at the end; `complete` is false when
    the rest has not been looked at yet."""

    records: Sequence[Dated]
    next: int
    complete: bool


async def search(worker: MachineWorker, asked: Search) -> Found:
    """Numbers and codes by their index first; customers by reading on, in slices that let tills go first."""
    page = msgspec.structs.replace(asked.page, type=asked.type, amount=asked.amount, part=asked.text)
    if asked.text and (exact := await _exact(worker, asked)):
        return await _found(worker, exact, page, complete=True)
    if not asked.text and _is_sifting(page):
        return await _sifted(worker, page)
    if not asked.text:
        return await _found(worker, await worker.journal.page(worker.book, page), page, complete=True)
    if records := await worker.journal.with_part(worker.book, page, partial(make_way, worker)):
        return await _found(worker, records, page, complete=True)
    return await _of_customer(worker, asked, msgspec.structs.replace(page, part=""))


async def _exact(worker: MachineWorker, asked: Search) -> list[Record]:
    code = asked.text.replace("-", "").replace(" ", "").upper()
    if len(code) == CODE_LENGTH and (record := await worker.journal.by_code(worker.book, code)):
        return [record] if asked.page.start <= record.ended_at < asked.page.end else []
    page = msgspec.structs.replace(asked.page, number=asked.text, before_seq=0)
    return list(await worker.journal.page(worker.book, page))


def _is_sifting(page: Page) -> bool:
    """Whether most entries may have to be gone through for a few; what has not ended is little, and found at once."""
    return page.state not in ("begun", "disputed") and (
        page.amount is not None or bool(page.type) or page.state is not None
    )


async def _sifted(worker: MachineWorker, page: Page) -> Found:
    """Stretch by stretch on the way back: other screens read in between."""
    newest = await worker.journal.page(worker.book, Page(page.start, page.end, before_seq=page.before_seq, limit=1))
    before = newest[0].seq + 1 if newest else 1
    ends = before - SIFTED
    found: list[Record] = []
    while before > max(ends, 1):
        stretch = msgspec.structs.replace(
            page, before_seq=before, after_seq=max(0, before - 1 - STRETCH), limit=page.limit - len(found)
        )
        found += await worker.journal.page(worker.book, stretch)
        if len(found) == page.limit:
            return Found(await dated(worker, found), found[-1].seq if found[-1].seq > 1 else 0, complete=True)
        before -= STRETCH
        await make_way(worker)
    return Found(await dated(worker, found), before if before > 1 else 0, complete=before <= 1)


async def _of_customer(worker: MachineWorker, asked: Search, page: Page) -> Found:
    found: list[Record] = []
    looked, before = 0, page.before_seq
    while looked < BUDGET and len(found) < page.limit:
        piece = msgspec.structs.replace(page, before_seq=before, limit=SLICE)
        records, before = await worker.journal.of_customer(worker.book, piece, asked.text)
        found += records
        looked += SLICE
        if not before:
            return Found(await dated(worker, found), 0, complete=True)
        await make_way(worker)
    return Found(await dated(worker, found), before, complete=False)


async def _found(worker: MachineWorker, records: Sequence[Record], page: Page, *, complete: bool) -> Found:
    more = len(records) == page.limit and records[-1].seq > 1
    return Found(await dated(worker, records), records[-1].seq if more else 0, complete=complete)
