"""What is given out and has to be on record: duplicates, reports on paper, and the report of articles that is closed (SFE 2.11, 2.23, 5.1).
Cash into the drawer and out of it: written to the book, never sent to the machine (decision 34)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import structlog

from daemon.core.audit import Call
from daemon.core.errors import NothingToClose
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import Placed, ReportAct, ReportKind
from daemon.core.report.acts import (
    COPIES_AN_HOUR,
    MOVES_AN_HOUR,
    REPORTS_AN_HOUR,
    CashMovements,
    moved,
    movements,
    read_move,
)
from daemon.core.report.articles import ArticlesReport
from daemon.store.tables import z_papers
from daemon.store.tables.book import acts
from daemon.store.tables.book.acts import ActLimit
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.reports.report import articles_since, closure
from daemon.usecases.worker.aggregate import tick
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

_encoder = msgspec.json.Encoder(decimal_format="number")


async def make_copy(worker: MachineWorker, record: Record, call: Call) -> int:
    """Which duplicate it is, from 1, after one that is in the printer. TooManyActs."""
    async with worker.copy_lock(record.code):
        await worker.ledger.check_free_space(worker.book)
        return await _store_copy(worker, record, call, ActLimit(COPIES_AN_HOUR, worker.clock.millis()))


@asynccontextmanager
async def printed_copy(worker: MachineWorker, record: Record | None, call: Call) -> AsyncIterator[int]:
    """Which duplicate of `record` is printed meanwhile, 0 without a record. Only a successful print counts, whatever
    the limit of an hour, so the next one waits for its number."""
    if record is None:
        yield 0
        return
    async with worker.copy_lock(record.code):
        await worker.ledger.check_free_space(worker.book)
        yield 1 + await worker.ledger.read(acts.copies, worker.book, record.code)
        await _store_copy(worker, record, call, None)


async def _store_copy(worker: MachineWorker, record: Record, call: Call, limit: ActLimit | None) -> int:
    code, number = record.code, record.number
    return await worker.ledger.write(acts.make_copy, worker.book, code, number, at=worker.now(), call=call, limit=limit)


async def store_report(worker: MachineWorker, kind: ReportKind, report: msgspec.Struct, call: Call) -> None:
    """TooManyActs."""
    await worker.ledger.check_free_space(worker.book)
    act, limit = ReportAct(kind, _encoder.encode(report).decode()), ActLimit(REPORTS_AN_HOUR, worker.clock.millis())
    await worker.ledger.write(acts.insert_report, worker.book, act, at=worker.now(), call=call, limit=limit)


async def note_z_paper(worker: MachineWorker, reference: str) -> None:
    """The paper of a Z, by its number or `report_id`, was made: it is not announced any more if it had not printed itself."""
    unprinted = [(each, number) for each in worker.pair for number in each.ledger.peek(z_papers.unprinted, each.book)]
    if reference and unprinted:
        found = await closure(worker, reference)
        for each, number in unprinted:
            if (await closure(each, str(number))).report_id == found.report_id:
                await each.ledger.write(z_papers.note, each.book, number, is_printed=True)


async def close_articles(worker: MachineWorker, call: Call) -> Answered[bytes]:
    """The report of articles since the one before: numbered, stored, in the journal. NothingToClose."""

    async def run() -> bytes:
        await worker.ledger.check_free_space(worker.book)
        return await _close(worker, call)

    return await worker.run_to_end(once(worker, call, run, lambda use: use.answer or None), "close articles")


async def _close(worker: MachineWorker, call: Call) -> bytes:
    async with worker.acts_lock:
        await tick(worker)  # what was certified before is in it
        articles, report = await articles_since(worker)
        if not report.certs_count:
            raise NothingToClose

        def answer(number: int) -> bytes:
            closed = msgspec.structs.replace(report, number=number, letterhead=worker.defaults.letterhead.hex())
            return _encoder.encode(closed)

        upto = ReportAct("articles", "", upto_seq=articles.upto_seq)
        act = await worker.ledger.write(
            acts.insert_report, worker.book, upto, at=worker.now(), call=call, answer=answer
        )
        return act.body.encode()


def articles_of(placed: Placed) -> ArticlesReport:
    return msgspec.json.decode(placed.entry_of(ReportAct).body, type=ArticlesReport)


async def move_cash(worker: MachineWorker, body: dict[str, object], call: Call) -> Answered[bytes]:
    """The answer's bytes. Needs no machine; InvalidRequest, TooManyActs, StorageFull."""
    move, warnings = read_move(body, defaults=worker.defaults, strict=call.strict)

    def answer(placed: Placed) -> bytes:
        return msgspec.json.encode(moved(placed, worker.book.nim, warnings))

    async def run() -> bytes:
        await worker.ledger.check_free_space(worker.book)
        limit = ActLimit(MOVES_AN_HOUR, worker.clock.millis())
        body = await worker.ledger.write(
            acts.move_cash, worker.book, move, at=worker.now(), answer=answer, call=call, limit=limit
        )
        log.info("cash.moved", **worker.names, kind=move.kind, amount=move.amount, request_id=call.request_id)
        return body

    return await worker.run_to_end(once(worker, call, run, lambda use: use.answer or None), "move cash")


async def cash_moves(worker: MachineWorker, start: int, end: int, after: int, limit: int) -> CashMovements:
    """Those of `start <= t < end` (ms), oldest first, from the one after the id `after`."""
    total = await worker.ledger.read(acts.cash_between, worker.book, start, end)
    listed = await worker.ledger.read(acts.cash_moves, worker.book, start=start, end=end, after=after, limit=limit)
    return movements(worker.book.nim, start, end, total, listed)
