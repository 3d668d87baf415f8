"""The end of an attempt, announced once, however it was found out; and the aggregation tick (decision 13): what has ended enters the totals, and
closes the months before it."""

from __future__ import annotations

import structlog

from common.language.reasons import from_stored
from daemon.core.errors import StorageError
from daemon.core.events import CERTIFIED, REFUSED
from daemon.core.ledger.attempt import Record
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)


async def tick(worker: MachineWorker) -> None:
    """Brings in everything that has ended. One that cannot be stored is made up for by the next: nothing waits for it. Of a machine with which nobody sells
    now, as a spare in the cupboard, no sale to come closes the year of its last Z, of which there has to be an archive."""
    try:
        worker.aggregate = await worker.ledger.aggregate(worker.book)
        await worker.ledger.close_over_months(worker.book, worker.aggregate.at)
        if (worker.is_retired or not worker.is_in_use) and not worker.time.question():
            await worker.ledger.close_over_months(worker.book, worker.now(), upto_z=True)
    except StorageError as error:
        log.warning("aggregate.failed", nim=worker.book.nim, mode=worker.book.mode, cause=str(error))
        worker.schedule_tick(lambda: tick(worker))


def announce(worker: MachineWorker, record: Record) -> None:
    """The log line of an attempt's end, the event for screens, and the tick that brings it into the totals."""
    log.info(
        "certification.ended",
        outcome=record.state,
        **worker.names,
        invoice_number=record.number,
        invoice_type=record.type,
        total_ttc=record.total_ttc,
        reason=str(from_stored(record.reason)) or None,
        line_ms=record.line_ms,
        duration_ms=record.duration_ms,
        request_id=record.request_id,
    )
    worker.statistics.note(record)
    if record.state == "certified":
        worker.publish(CERTIFIED, ref=record.id)
    elif record.state == "refused" and not record.invoice.deferred:
        worker.publish(REFUSED, ref=record.id)
    worker.schedule_tick(lambda: tick(worker))
