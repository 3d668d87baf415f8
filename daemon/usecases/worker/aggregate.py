"""The aggregation tick (decision 13): what has ended enters the totals, and closes the months before it."""

from __future__ import annotations

import structlog

from daemon.core.errors import StorageError
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)


async def tick(worker: MachineWorker) -> None:
    """Brings in everything that has ended. One that cannot be stored is made up for by the next: nothing waits for it."""
    try:
        worker.aggregate = await worker.ledger.aggregate(worker.book)
        await worker.ledger.close_over_months(worker.book, worker.aggregate.at)
    except StorageError as error:
        log.warning("aggregate.failed", nim=worker.book.nim, mode=worker.book.mode, cause=str(error))
        worker.schedule_tick(lambda: tick(worker))
