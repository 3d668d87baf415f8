"""Announces an attempt's end; and the tick (decision 13): ended attempts enter the totals and close months."""

import structlog

from common.language.reasons import from_stored
from daemon.core.errors import StorageError
from daemon.core.events import CERTIFIED, REFUSED
from daemon.core.ledger.attempt import Record
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)


async def tick(worker: MachineWorker) -> None:
    """Adds everything that has ended to the totals; on a failure the next tick does it. For a machine that is not in
    use, as an idle spare, the tick also closes the year of its last Z, which needs an archive and no sale will close:
    as far as the other machine of the pair has come, since a clock alone may be fast."""
    try:
        worker.aggregate = await worker.ledger.aggregate(worker.book)
        worker.time.apply_time(worker.aggregate.at)
        await worker.ledger.close_over_months(worker.book, worker.aggregate.at)
        if (worker.is_retired or not worker.is_in_use) and not worker.time.question():
            other = worker.first or worker.in_use
            at = worker.now() if other is worker else min(worker.now(), other.time.last_at)
            await worker.ledger.close_over_months(worker.book, at, upto_z=True)
    except StorageError as error:
        log.warning("aggregate.failed", nim=worker.book.nim, mode=worker.book.mode, cause=str(error))
        worker.schedule_tick(lambda: tick(worker))


def announce(worker: MachineWorker, record: Record) -> None:
    """Logs the end of an attempt, publishes the event for screens and schedules the tick."""
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
