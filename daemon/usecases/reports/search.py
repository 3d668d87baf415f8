"""A search through the journal as a person types it: a number or a part of one, a code, a customer, an amount."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from daemon.core.invoice.number import normalised
from daemon.core.ledger.attempt import OPEN, Record
from daemon.core.report.journal import Page
from daemon.usecases.reports.journal import Dated, dated, make_way, stretches
from daemon.usecases.worker.machine_worker import MachineWorker

SLICE = 200
BUDGET = 20_000
"""Records whose customer is looked at for one answer; the next answer goes on."""
SIFTED = 200_000
"""Entries gone through for an amount, a type or a state, for one answer."""
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
    page = msgspec.structs.replace(asked.page, type=asked.type, amount=asked.amount)
    if not asked.text and _is_sifting(page):
        return await _sifted(worker, page)
    if not asked.text:
        return await _found(worker, await worker.journal.page(worker.book, page), page)
    if exact := await _exact(worker, asked.text, msgspec.structs.replace(page, before_seq=0)):
        return await _found(worker, exact, page)
    with_part = msgspec.structs.replace(page, part=normalised(asked.text))
    if records := await worker.journal.with_part(worker.book, with_part, partial(make_way, worker)):
        return await _found(worker, records, page)
    if page.state in OPEN:
        open_ones = await worker.journal.page(worker.book, page)
        named = [record for record in open_ones if record.invoice.customer.is_named(asked.text.casefold())]
        return await _found(worker, named, page)
    return await _of_customer(worker, asked.text, page)


async def _exact(worker: MachineWorker, text: str, page: Page) -> list[Record]:
    code = text.replace("-", "").replace(" ", "").upper()
    if len(code) == CODE_LENGTH and (record := await worker.journal.by_code(worker.book, code)):
        return [record] if page.fits(record) else []
    return list(await worker.journal.page(worker.book, msgspec.structs.replace(page, number=normalised(text))))


def _is_sifting(page: Page) -> bool:
    """Whether most entries may have to be gone through for a few; what has not ended is little, and found at once."""
    return page.state not in OPEN and (page.amount is not None or bool(page.type) or page.state is not None)


async def _sifted(worker: MachineWorker, page: Page) -> Found:
    """Stretch by stretch on the way back: other screens read in between."""
    found: list[Record] = []
    looked = 0
    for piece in await stretches(worker, page):
        if looked >= SIFTED:
            return Found(await dated(worker, found), piece.before_seq, complete=False)
        asked = msgspec.structs.replace(piece, limit=page.limit - len(found))
        found += await worker.journal.page(worker.book, asked)
        if len(found) == page.limit:
            return Found(await dated(worker, found), found[-1].seq if found[-1].seq > 1 else 0, complete=True)
        looked += piece.before_seq - 1 - piece.after_seq
        await make_way(worker)
    return Found(await dated(worker, found), 0, complete=True)


async def _of_customer(worker: MachineWorker, text: str, page: Page) -> Found:
    """Within a stretch slice by slice: an invoice has to be read for its customer."""
    found: list[Record] = []
    looked = 0
    for piece in await stretches(worker, page):
        before = piece.before_seq
        while before > piece.after_seq + 1:
            if looked >= BUDGET or len(found) >= page.limit:
                return Found(await dated(worker, found), before, complete=False)
            part = msgspec.structs.replace(piece, before_seq=before, limit=SLICE)
            records, before = await worker.journal.of_customer(worker.book, part, text)
            found += records
            looked += SLICE
            await make_way(worker)
    return Found(await dated(worker, found), 0, complete=True)


async def _found(worker: MachineWorker, records: Sequence[Record], page: Page) -> Found:
    more = len(records) == page.limit and records[-1].seq > 1
    return Found(await dated(worker, records), records[-1].seq if more else 0, complete=True)
