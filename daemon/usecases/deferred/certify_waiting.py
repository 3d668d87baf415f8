"""Sales that wait are certified in their order, by the same way as all others, as soon as the machine can and no till is there."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Final

import structlog

from common.language import sentence
from daemon.core.audit import DAEMON, Call
from daemon.core.errors import MachineNonsense, MachineRefused, McfdError
from daemon.core.events import REFUSED
from daemon.core.invoice.invoice import Invoice
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.deferred import AMBER, DeferredSale, NotWaiting
from daemon.store.tables.book import deferred
from daemon.usecases.certification.certify import certify_invoice
from daemon.usecases.deferred.accept import withdraw
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

LOOK: Final = 0.25
"""Seconds between two looks at what waits."""
PAUSE, LONGEST = 1.0, 600.0
"""Seconds without any till after which one of them goes: as short as the shop lets it be, at most that of a closed shop."""
FACTOR: Final = 4
UNMET: Final = 200
"""Tills' sales without a sale that waits at the machine, after which the pause becomes shorter again."""
SPACING, SPACING_LATE = 60.0, 3.0
"""Seconds from one of them to the next in a shop that never pauses; the second once the oldest has waited for a day."""
IN_A_RUSH: Final = 1.5
"""Times that spacing, after which one goes even between tills."""
ENOUGH: Final = 2
"""Sales refused one after the other, by which it is the machine."""
PAUSES = (60.0, 300.0, 900.0)
"""Seconds after which what was refused is tried again."""
AFTER_ERROR, AFTER_FAILURE = 5.0, 60.0


@dataclass
class SalesThatWait:
    """Those of one worker; `run` until cancelled."""

    worker: MachineWorker
    refused: dict[int, int] = field(default_factory=dict)
    """By the sale's id, the machine's invoices at its refusal: a second one after the machine has certified something is about the sale."""
    pauses: int = 0
    not_before: float = 0.0
    again_at: float = 0.0
    quiet_since: float = 0.0
    last_at: float = 0.0
    count: int = 0
    """The machine's invoices at the last look: a till may have come and gone since."""
    pause: float = PAUSE
    """Longer once a till has met one of them: what a shop's pauses are is seen from that alone."""
    unmet: int = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.step()
            except McfdError as error:  # the machine went away, the disk is full: it waits again
                self.not_before = self._now() + AFTER_ERROR
                log.info("sale.put_off", **self.worker.names, cause=str(error))
            except Exception:
                log.exception("sale.failed", **self.worker.names)
                self.not_before = self._now() + AFTER_FAILURE

    async def step(self) -> None:
        """At the most one sale."""
        worker, now = self.worker, self._now()
        self._look_for_tills(now)
        if now < self.not_before or not worker.connected or worker.obstacle or worker.closing:
            return
        if not worker.is_in_use:
            return
        sale = self._next(now)
        if sale is None or sale.invoice is None or not self._is_time(now, sale):
            return
        try:
            await self._certify(sale, sale.invoice)
        finally:
            self.last_at, self.count = self._now(), self._certified_count()
            if worker.queue.invoices:
                self.pause, self.unmet = min(self.pause * FACTOR, LONGEST), 0

    def _look_for_tills(self, now: float) -> None:
        worker, count = self.worker, self._certified_count()
        if worker.queue.invoices or count != self.count or (worker.book.mode == "test" and worker.till_waits()):
            self.quiet_since = now
        self.unmet, self.count = max(0, self.unmet + count - self.count), count
        if self.unmet >= UNMET:
            self.pause, self.unmet = max(PAUSE, self.pause / FACTOR), 0

    def _is_time(self, now: float, sale: DeferredSale) -> bool:
        quiet, since = now - self.quiet_since, now - self.last_at
        spacing = SPACING_LATE if self.worker.now() - sale.sold_at >= AMBER else SPACING
        return quiet >= self.pause or since >= spacing * (1 if quiet >= PAUSE else IN_A_RUSH)

    async def _certify(self, sale: DeferredSale, invoice: Invoice) -> None:
        worker, now = self.worker, self._now()
        call = Call(sale.request_id, sale.key, sale.fingerprint)
        try:
            work = certify_invoice(
                worker, invoice, call, arrived=now, deadline=now + worker.limits.patience, deferred_id=sale.id
            )
            await worker.see_through(work, "certify")
        except NotWaiting:
            return  # it was taken back in this moment
        except DuplicateInvoice as error:
            # The machine had certified that number already, and an older copy of the ledger was put back.
            await withdraw(worker, sale, sentence(error), by=DAEMON)
            return
        except (MachineRefused, MachineNonsense) as error:
            await self._refused(sale, error)
            return
        self.refused.pop(sale.id, None)
        self.pauses = 0

    async def _refused(self, sale: DeferredSale, error: MachineRefused | MachineNonsense) -> None:
        worker, count = self.worker, self._certified_count()
        is_open, why = (error.is_open, error.text) if isinstance(error, MachineRefused) else (False, sentence(error))
        if is_open or count > self.refused.get(sale.id, count):
            self.refused.pop(sale.id, None)
            with contextlib.suppress(NotWaiting):
                await worker.ledger.refuse_sale(worker.book, sale, why, at=worker.now())
                worker.publish(REFUSED)
            worker.series_floor.clear()  # its number may be given again
            log.warning("sale.refused", **worker.names, invoice_number=sale.number, reason=why)
            return
        self.refused[sale.id] = count
        self.again_at = self._now() + PAUSES[min(self.pauses, len(PAUSES) - 1)]
        self.pauses += 1
        log.warning("sale.put_off", **worker.names, invoice_number=sale.number, cause=why)

    def _next(self, now: float) -> DeferredSale | None:
        """The oldest, but behind those that the machine has not refused since it certified something; nothing while it refuses them all."""
        worker, count = self.worker, self._certified_count()
        put_off = [sale_id for sale_id, at in self.refused.items() if at == count]
        if len(put_off) < ENOUGH and (sale := worker.ledger.peek(deferred.next_waiting, worker.book, put_off)):
            return sale
        return worker.ledger.peek(deferred.next_waiting, worker.book, ()) if put_off and now >= self.again_at else None

    def _certified_count(self) -> int:
        counters = self.worker.counters
        return counters.fvc + counters.frc

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
