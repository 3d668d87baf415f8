"""Reads and searches the electronic journal. Live sales go first: a long read works in slices of about a millisecond
and pauses between them while a till waits. A search looks for a number or a part of one, a code, a customer or an
amount."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec

from common.language import Language, Text
from daemon.core.errors import NotFound
from daemon.core.invoice.invoice import without_accents
from daemon.core.invoice.number import normalised
from daemon.core.ledger.attempt import OPEN, Record
from daemon.core.ledger.book import Aggregate, Book
from daemon.core.report.journal import (
    Extent,
    JournalEntry,
    JournalPage,
    JournalRecord,
    Page,
    is_credited,
    journal_entry,
    journal_record,
)
from daemon.store.journal import Journal
from daemon.store.ledger import Ledger
from daemon.store.tables.book import take_overs
from daemon.store.tables.book.acts import copies
from daemon.store.tables.book.closures import periods_of
from daemon.store.tables.book.originals import taken_of
from daemon.store.tables.journal import credits_on, find_code, of_customer, reach
from daemon.store.tables.journal import extent as read_extent
from daemon.usecases.worker.machine_worker import MachineWorker

BATCH = 64
SLICE = 16
SLICE_ITEMS = 128
"""Greatest number of records, and of their items, in one step of the loop."""
STRETCH = 5_000
"""Entries that one query reads when few may match; other readers come in between."""
REST = 0.01
"""Pause in seconds after each slice while a till waits."""
Dated = tuple[Record, int]
"""A record and its Z number, 0 while its period is open."""
SEARCH_SLICE = 200
BUDGET = 20_000
"""Records whose customer is compared for one answer; the next answer continues."""
SIFTED = 40
"""Stretches that are read for one answer to a search by amount, type or state."""


class ReportSource(Protocol):
    """The source of reports and of the journal: the worker of a book, or a command beside the daemon. `till_waits`:
    whether a till waits for any machine."""

    aggregate: Aggregate | None

    @property
    def book(self) -> Book: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def till_waits(self) -> Callable[[], bool]: ...
    def now(self) -> int: ...


async def read_page(worker: MachineWorker, page: Page, language: Language = "en") -> JournalPage:
    """One page, newest first. `next` is the cursor of the following page: `before_seq` and `upto_z`, so that all pages
    of one walk show a record in the same period. Records are read in batches, since a large invoice takes much more
    memory than its entry on the page."""
    entries: list[JournalEntry] = []
    last_seq = 0
    extent = await worker.journal.read(read_extent, worker.book)
    upto_z = extent.z_number if page.upto_z is None else page.upto_z
    async for records in _batches(worker, page):
        credited = await _credited(worker, records)
        for part in _slices(await dated(worker, records, upto_z)):
            entries += [
                journal_entry(record, z_number, language, credited=credited.get(record.id)) for record, z_number in part
            ]
            await make_way(worker)
        last_seq = records[-1].seq
    more = len(entries) == page.limit and last_seq > 1
    return JournalPage(worker.book.nim, len(entries), f"{last_seq}.{upto_z}" if more else None, tuple(entries))


async def _batches(worker: MachineWorker, page: Page) -> AsyncIterator[Sequence[Record]]:
    if _comes_at_once(page):
        if records := await worker.journal.page(worker.book, page):
            yield records
        return
    left = page.limit
    for number, piece in enumerate(await stretches(worker, page) if page.state else (page,)):
        if number:
            await make_way(worker)
        before = piece.before_seq
        while left:
            limit = min(left, BATCH)
            part = msgspec.structs.replace(piece, limit=limit, before_seq=before)
            if records := await worker.journal.page(worker.book, part):
                yield records
            left -= len(records)
            if len(records) < limit:
                break
            before = records[-1].seq
        if not left:
            return


async def stretches(worker: ReportSource, page: Page) -> Iterator[Page]:
    """Splits `page` into pages of `STRETCH` ended entries, newest first; call `make_way` between them."""
    after, newest = await worker.journal.read(reach, worker.book, page)
    return (
        msgspec.structs.replace(page, before_seq=upto + 1, after_seq=max(after, upto - STRETCH))
        for upto in range(newest, after, -STRETCH)
    )


def _comes_at_once(page: Page) -> bool:
    """Whether one query reads the whole result: the entries of a number, and open attempts, which have no seq yet."""
    return bool(page.number) or page.state in OPEN


async def find(worker: ReportSource, code: str) -> Record:
    """The certification with that code, of the machine or its spare; some firmware prints dashes in it (protocol 4)."""
    return (await _locate(worker, code))[1]


async def _locate(worker: ReportSource, code: str) -> tuple[Book, Record]:
    for book in (worker.book, *worker.ledger.peek(take_overs.sharing, worker.book)):
        if (record := await worker.journal.read(find_code, book, code.replace("-", ""))) is not None:
            return book, await worker.journal.with_counter(book, record)
    raise NotFound(Text("there is no certification of this code"))


async def read_record(worker: MachineWorker, code: str, language: Language = "en") -> JournalRecord:
    book, record = await _locate(worker, code)
    (z_number,) = await worker.journal.read(periods_of, book, [record])
    number_of_copies = await worker.ledger.read(copies, worker.book, record.code)
    credited = await _credited(worker, [record])
    return journal_record(record, z_number, language, copies=number_of_copies, credited=credited.get(record.id))


async def _credited(worker: MachineWorker, records: Sequence[Record]) -> dict[int, int]:
    """The credited amount by sale id."""
    ids = [record.id for record in records if is_credited(record)]
    return dict(zip(ids, await worker.journal.read(taken_of, ids), strict=True))


async def credits_of(worker: MachineWorker, record: Record) -> Sequence[Record]:
    """The credit notes on a certified sale, oldest first; empty for anything else."""
    return await worker.journal.read(credits_on, record.id)


async def read_in_slices(worker: ReportSource, page: Page, extent: Extent) -> AsyncGenerator[Sequence[Dated], None]:
    """All records of `page` without its limit, oldest first, slice by slice in constant memory. The result is the book
    as of `extent`, whatever is sold or closed meanwhile."""
    batch: list[Record] = []
    async for record in _all(worker, page):
        if record.seq > extent.seq:
            break
        batch.append(record)
        if len(batch) == BATCH:
            for part in _slices(await dated(worker, batch, extent.z_number)):
                yield part
                await make_way(worker)
            batch.clear()
    for part in _slices(await dated(worker, batch, extent.z_number)):
        yield part


async def _all(worker: ReportSource, page: Page) -> AsyncGenerator[Record, None]:
    if _comes_at_once(page):
        everything = msgspec.structs.replace(page, limit=sys.maxsize)
        for record in reversed(await worker.journal.page(worker.book, everything)):
            yield record
        return
    async for record in worker.journal.iterate(worker.book, page.start, page.end, page.after_seq):
        if page.state in (None, record.state):
            yield record
        elif record.seq % BATCH == 0:
            await make_way(worker)


async def dated(worker: ReportSource, records: Sequence[Record], upto_z: int = sys.maxsize) -> list[Dated]:
    """The records with their Z; a Z after `upto_z` counts as 0, since its records were in the open period then."""
    periods = await worker.journal.read(periods_of, worker.book, records)
    return [(record, z if z <= upto_z else 0) for record, z in zip(records, periods, strict=True)]


def _slices(dated: list[Dated]) -> list[list[Dated]]:
    """Parts of at most `SLICE` records and `SLICE_ITEMS` items."""
    slices: list[list[Dated]] = []
    items = SLICE_ITEMS + 1  # the first begins a slice
    for each in dated:
        items += len(each[0].invoice.items)
        if items > SLICE_ITEMS or len(slices[-1]) == SLICE:
            slices.append([])
            items = len(each[0].invoice.items)
        slices[-1].append(each)
    return slices


async def make_way(worker: ReportSource) -> None:
    """Lets live sales go first; called between two slices."""
    await asyncio.sleep(REST if worker.till_waits() else 0)


class Found(msgspec.Struct, frozen=True):
    """Records with their Z (0: open), newest first. `next`: the `before_seq` of the following page, 0 at the end.
    `complete`: false if older entries were not searched yet."""

    records: Sequence[Dated]
    next: int
    complete: bool


async def search(worker: MachineWorker, page: Page) -> Found:
    """Searches numbers and codes by index first, then customers by reading, in slices that let tills go first."""
    if not page.text and _is_sifting(page):
        return await _sifted(worker, page)
    if not page.text:
        return await _found(worker, await worker.journal.page(worker.book, page), page)
    if (exact := await search_exactly(worker, page)).records:
        return exact
    with_part = msgspec.structs.replace(page, part=normalised(page.text))
    if records := await worker.journal.with_part(worker.book, with_part, partial(make_way, worker)):
        return await _found(worker, records, page)
    if page.state in OPEN:
        open_ones = await worker.journal.page(worker.book, page)
        plain = without_accents(page.text)
        named = [record for record in open_ones if record.invoice.customer.is_named(plain)]
        return await _found(worker, named, page)
    return await _of_customer(worker, page)


async def search_exactly(worker: MachineWorker, page: Page) -> Found:
    """Entries with exactly that number or code."""
    code = page.text.replace("-", "").replace(" ", "").upper()
    if code and (record := await worker.journal.read(find_code, worker.book, code)):
        return await _found(worker, [record] if page.fits(record) else [], page)
    of_number = msgspec.structs.replace(page, number=normalised(page.text), before_seq=0)
    return await _found(worker, await worker.journal.page(worker.book, of_number), page)


def _is_sifting(page: Page) -> bool:
    """Whether many entries have to be read for few results; open attempts are few."""
    return page.state not in OPEN and (page.amount is not None or bool(page.type) or page.state is not None)


async def _sifted(worker: MachineWorker, page: Page) -> Found:
    """Searches backwards, `STRETCH` entries at a time; other screens read in between."""
    found: list[Record] = []
    for number, piece in enumerate(await stretches(worker, page)):
        if number == SIFTED:
            return Found(await dated(worker, found), piece.before_seq, complete=False)
        rest = msgspec.structs.replace(piece, limit=page.limit - len(found))
        found += await worker.journal.page(worker.book, rest)
        if len(found) == page.limit:
            return Found(await dated(worker, found), found[-1].seq if found[-1].seq > 1 else 0, complete=True)
        await make_way(worker)
    return Found(await dated(worker, found), 0, complete=True)


async def _of_customer(worker: MachineWorker, page: Page) -> Found:
    """Searches customers, `SEARCH_SLICE` invoices at a time, since each invoice has to be unpacked."""
    found: list[Record] = []
    looked = 0
    for piece in await stretches(worker, page):
        before = piece.before_seq
        while before > piece.after_seq + 1:
            if looked >= BUDGET or len(found) >= page.limit:
                return Found(await dated(worker, found), before, complete=False)
            part = msgspec.structs.replace(piece, before_seq=before, limit=SEARCH_SLICE)
            records, before = await worker.journal.read(of_customer, worker.book, part)
            found += records
            looked += SEARCH_SLICE
            await make_way(worker)
    return Found(await dated(worker, found), 0, complete=True)


async def _found(worker: MachineWorker, records: Sequence[Record], page: Page) -> Found:
    more = len(records) == page.limit and records[-1].seq > 1
    return Found(await dated(worker, records), records[-1].seq if more else 0, complete=True)
