"""What people and tills decide on a sale that waits: it is taken back, or it waits again after an older ledger was put back."""

from __future__ import annotations

import structlog

from common.language.reasons import SALE_TAKEN_BACK
from daemon.core.audit import Actor
from daemon.core.call import key_hash_of
from daemon.core.ledger.deferred import DeferredSale, NotWaiting
from daemon.store.tables.book import deferred
from daemon.usecases.certification.requests import FoundRequest, find_request
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)


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
