"""What people and tills decide on a sale that waits: it is taken back, or it waits again after an older ledger was put back. What waits, for
reports, screens and metrics."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from common.language.reasons import SALE_TAKEN_BACK
from daemon.core.audit import Actor
from daemon.core.call import key_hash_of
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.deferred import DeferredBacklog, DeferredSale, NotWaiting
from daemon.store.tables.book import attempts, deferred
from daemon.usecases.certification.requests import FoundRequest, find_request
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)


async def backlog(worker: MachineWorker) -> DeferredBacklog:
    return await worker.ledger.read(deferred.backlog, worker.book)


async def open_sales(worker: MachineWorker, after: int, limit: int) -> Sequence[DeferredSale]:
    """Those that are not certified yet, oldest first, from the one after the id `after`."""
    return await worker.ledger.read(deferred.open_sales, worker.book, after, limit)


async def find_sale(worker: MachineWorker, sale_id: int) -> DeferredSale | None:
    return worker.ledger.peek(deferred.by_id, worker.book, sale_id)


async def certified_record(worker: MachineWorker, sale: DeferredSale) -> Record:
    return worker.ledger.peek(attempts.find_record, worker.book, sale.attempt_id)


async def take_back(worker: MachineWorker, key: str, *, by: Actor) -> FoundRequest | None:
    """None for a key that is not known; NotWaiting for what cannot be taken back any more. Done twice, it is done once."""
    sale = worker.ledger.peek(deferred.by_key, worker.book, key_hash_of(key))
    if sale is None or not sale.is_open:
        found = await find_request(worker, key)
        if found is None or found.status == "abandoned":
            return found
        raise NotWaiting
    await withdraw(worker, sale, str(SALE_TAKEN_BACK), by=by)
    return await find_request(worker, key)


async def withdraw(worker: MachineWorker, sale: DeferredSale, reason: str, *, by: Actor) -> None:
    await worker.ledger.withdraw_sale(worker.book, sale, reason, at=worker.now(), by=by)
    worker.series_floor.clear()  # its number may be given again
    log.info("sale.withdrawn", **worker.names, invoice_number=sale.number, reason=reason)


async def release(worker: MachineWorker, sale: DeferredSale, reason: str, *, by: Actor) -> None:
    """A person has looked: the machine has not certified it."""
    await worker.ledger.release_sale(worker.book, sale, reason, at=worker.now(), by=by)
    log.info("sale.released", **worker.names, invoice_number=sale.number, reason=reason)
