"""Accepts sales for later certification: for a till that does not wait, or while the machine is out of order. Also ends
them without certification: by the till, by a person, or after another taxpayer."""

import asyncio
import secrets
from functools import partial

import msgspec
import structlog

from common.language import Text
from common.language.reasons import NOT_SENT_BECAUSE, OTHER_TAXPAYER, SALE_TAKEN_BACK
from daemon.core.audit import Actor, Call, key_hash_of
from daemon.core.errors import MachineOffline, NothingDone
from daemon.core.events import DEFERRED
from daemon.core.invoice.invoice import Deferral, Invoice
from daemon.core.invoice.number import Series
from daemon.core.ledger.attempt import DuplicateInvoice, Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import REQUESTED, DeferredSale, KeyRequired, NotWaiting, NumberWaits
from daemon.core.ledger.entries import OutageReason
from daemon.store.tables.book import attempts, deferred, outages, take_overs
from daemon.usecases.certification import numbers
from daemon.usecases.certification.certify import certify_body, number_decided, read_body, refuse_duplicate
from daemon.usecases.certification.enter_invoice import check_expiry
from daemon.usecases.certification.idempotency import Answered, FoundRequest, find_request, once
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import out_of_order, register_refusal

log = structlog.get_logger(__name__)

ADDRESS_BYTES = 16
NO_KEY = Text("has to be given with Prefer: respond-async")


async def certify_or_defer(
    worker: MachineWorker, body: object, call: Call, *, is_async: bool, series: Series | None = None
) -> Answered[Record | DeferredSale]:
    """`is_async`: the till does not wait (Prefer: respond-async). `series`: see `certify`. A deferred sale with that key
    is the answer."""
    if is_async and not call.key:
        raise KeyRequired.at("Idempotency-Key", NO_KEY)

    async def run() -> Record | DeferredSale:
        if is_async and not worker.is_retired:
            return await _defer(worker, book, body, call, out_of_order(worker), series=series)
        reason = out_of_order(worker) if worker.defers else None
        if reason is None:
            try:
                return await certify_body(worker, body, call, arrived=arrived, series=series)
            except (MachineOffline, NothingDone):
                if not worker.defers:
                    raise
                reason = out_of_order(worker) or "line_lost"
        return await _defer(worker, book, body, call, reason, series=series)

    arrived, book = asyncio.get_running_loop().time(), worker.book
    work = once(worker, call, run, lambda use: use.sale or use.record)
    return await worker.run_to_end(work, "certify", partial(register_refusal, worker))


async def _defer(
    worker: MachineWorker,
    book: Book,
    body: object,
    call: Call,
    reason: OutageReason | None,
    *,
    series: Series | None,
) -> DeferredSale:
    """`reason`: why the machine is out of order; None for a till that does not wait."""
    arrived = asyncio.get_running_loop().time()
    if not call.key:  # the till sets no headers
        call = msgspec.structs.replace(call, key=f"mcfd-{secrets.token_hex(16)}")
    while True:
        check_expiry(call.expires)
        numbered, is_ours = numbers.numbered(worker, body, credit=False, series=series)
        invoice = read_body(worker, numbered, call, credit=False)
        while other := worker.attempts.find(invoice.number):
            await number_decided(worker, other, arrived + worker.limits.patience)
        try:
            refuse_duplicate(worker, invoice)
            await worker.ledger.check_free_space(worker.book)
            taken = worker.defaults.numbers.taken_from(worker.now())
            outage = await _outage(worker, reason)
            worker.check_book(book)
            waiting = _sale(worker, invoice, call, reason, outage)
            sale = await worker.ledger.defer(book, waiting, reason or REQUESTED, taken)
            break
        except (DuplicateInvoice, NumberWaits):
            if not is_ours:
                raise
            # a number of the box: another sale got it meanwhile, so the next one is tried
    log.info(
        "sale.deferred",
        **worker.names,
        invoice_number=sale.number,
        reason=reason or REQUESTED,
        outage=outage or None,
        request_id=call.request_id,
    )
    worker.publish(DEFERRED, ref=sale.id)
    return sale


async def _outage(worker: MachineWorker, reason: OutageReason | None) -> int:
    """The number of the outage during which it was sold, 0 for none; the first such sale begins the outage."""
    if reason is not None:
        return await worker.register_outage(reason)
    lasting = worker.ledger.peek(outages.open_outage, worker.book)
    return lasting.number if lasting else 0


def _sale(
    worker: MachineWorker, invoice: Invoice, call: Call, reason: OutageReason | None, outage: int
) -> DeferredSale:
    sold_at = worker.now()
    deferral = Deferral(sold_at, reason or REQUESTED, outage, worker.book.nim if outage else "")
    return DeferredSale(
        id=0,
        key=call.key,
        fingerprint=call.fingerprint,
        request_id=call.request_id,
        number=invoice.number,
        type=invoice.type,
        total_ttc=invoice.total_ttc,
        sold_at=sold_at,
        address=secrets.token_urlsafe(ADDRESS_BYTES),
        outage=outage,
        invoice=msgspec.structs.replace(invoice, deferred=deferral),
    )


async def take_back(worker: MachineWorker, key: str, *, by: Actor) -> FoundRequest | None:
    """Withdraws the deferred sale with that key; its status, None for an unknown key; NotWaiting if too late, or
    doubtful: then a person decides."""
    sale = worker.ledger.peek(deferred.by_key, worker.book, key_hash_of(key))
    if sale is None or sale.state != "waiting":
        found = await find_request(worker, key)
        if found is None or found.status == "abandoned":
            return found
        raise NotWaiting
    await withdraw(worker, sale, str(SALE_TAKEN_BACK), by=by)
    return await find_request(worker, key)


async def withdraw(worker: MachineWorker, sale: DeferredSale, reason: str, *, by: Actor) -> None:
    await worker.ledger.write(deferred.withdraw, worker.book, sale, reason, at=worker.now(), by=by)
    worker.series_floor.clear()  # its number may be given again
    log.info("sale.withdrawn", **worker.names, invoice_number=sale.number, reason=reason)


async def release(worker: MachineWorker, sale: DeferredSale, reason: str, *, by: Actor) -> None:
    """A person has checked that the machine has not certified the sale."""
    await worker.ledger.write(deferred.release, worker.book, sale, reason, at=worker.now(), by=by)
    log.info("sale.released", **worker.names, invoice_number=sale.number, reason=reason)


async def refuse_former_sales(worker: MachineWorker) -> None:
    """Refuses the deferred sales of the machine's former taxpayers, which it cannot certify any more; a webhook reports
    each, and the till may sell it again. Exceptions: doubtful sales, which the machine may have certified, and those of
    a machine that a spare replaces."""
    for book in (former.book for former in worker.former):
        if worker.ledger.peek(take_overs.is_replaced, book):
            continue
        for record in worker.ledger.peek(attempts.unfinished, book):
            if not worker.attempts.is_ours(record):  # its process ended before its turn, so it was not sent
                why = NOT_SENT_BECAUSE(cause=OTHER_TAXPAYER)
                await worker.ledger.write(worker.ledger.end, book, record.id, "abandoned", why, at=worker.now())
        for sale in worker.ledger.peek(deferred.waiting_sales, book):
            await worker.ledger.refuse_sale(book, sale, OTHER_TAXPAYER, at=worker.now())
            log.warning("sale.refused", nim=book.nim, mode=book.mode, invoice_number=sale.number, reason=OTHER_TAXPAYER)
