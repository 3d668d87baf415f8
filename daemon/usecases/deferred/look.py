"""What waits, for reports, screens and metrics."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.core.ledger.attempt import Record
from daemon.core.ledger.deferred import DeferredBacklog, DeferredSale
from daemon.store.tables.book import attempts, deferred
from daemon.usecases.worker.machine_worker import MachineWorker


async def backlog(worker: MachineWorker) -> DeferredBacklog:
    return await worker.ledger.read(deferred.backlog, worker.book)


async def open_sales(worker: MachineWorker, after: int, limit: int) -> Sequence[DeferredSale]:
    """Those that are not certified yet, oldest first, from the one after the id `after`."""
    return await worker.ledger.read(deferred.open_sales, worker.book, after, limit)


async def find_sale(worker: MachineWorker, sale_id: int) -> DeferredSale | None:
    return worker.ledger.peek(deferred.by_id, worker.book, sale_id)


async def certified_record(worker: MachineWorker, sale: DeferredSale) -> Record:
    return worker.ledger.peek(attempts.find_record, worker.book, sale.attempt_id)
