"""What is given out and has to be on record: duplicates, reports on paper, and the report of articles that is closed (SFE 2.11, 2.23, 5.1)."""

from __future__ import annotations

import msgspec

from daemon.core.call import Call
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import KeyUse
from daemon.core.ledger.entries import Placed, ReportGiven, ReportKind
from daemon.core.report.articles import ArticlesReport
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.reports.articles import articles_since
from daemon.usecases.worker.machine_worker import MachineWorker

_encoder = msgspec.json.Encoder(decimal_format="number")


async def make_copy(worker: MachineWorker, record: Record, call: Call) -> int:
    """Which duplicate it is, from 1."""
    await worker.ledger.check_free_space(worker.book)
    return await worker.ledger.make_copy(worker.book, record.code, record.number, at=worker.now(), call=call)


async def give_report(worker: MachineWorker, kind: ReportKind, report: msgspec.Struct, call: Call) -> None:
    await worker.ledger.check_free_space(worker.book)
    given = ReportGiven(kind, _encoder.encode(report).decode())
    await worker.ledger.give_report(worker.book, given, at=worker.now(), call=call)


async def close_articles(worker: MachineWorker, call: Call) -> Answered[bytes]:
    """The report of articles since the one before: numbered, kept, in the journal."""

    async def run() -> bytes:
        await worker.ledger.check_free_space(worker.book)
        return await _close(worker, call)

    return await worker.see_through(once(worker, call, run, _replay), "close articles")


def _replay(use: KeyUse) -> bytes | None:
    return use.answer or None


async def _close(worker: MachineWorker, call: Call) -> bytes:
    async with worker.acts_lock:
        articles, report = await articles_since(worker)

        def answer(number: int) -> bytes:
            return _encoder.encode(msgspec.structs.replace(report, number=number))

        upto = ReportGiven("articles", "", upto_seq=articles.upto_seq, upto_at=articles.upto_at)
        given = await worker.ledger.give_report(worker.book, upto, at=worker.now(), call=call, answer=answer)
        return given.body.encode()


def articles_of(placed: Placed) -> ArticlesReport:
    return msgspec.json.decode(body_of(placed), type=ArticlesReport)


def body_of(placed: Placed) -> bytes:
    """The report as it was given out; TypeError for an entry of another kind."""
    if not isinstance(placed.entry, ReportGiven):
        raise TypeError(f"entry {placed.id} is no report")
    return placed.entry.body.encode()
