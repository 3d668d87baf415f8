"""Certifies deferred sales in their order, as any other sale, when the machine is ready and no till is waiting."""

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
from daemon.core.invoice.items import at_present_rates
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.deferred import AMBER, DeferredSale, NotWaiting
from daemon.store.tables.book import deferred
from daemon.usecases.certification.certify import certify_invoice
from daemon.usecases.deferred.accept import withdraw
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

LOOK: Final = 0.25
"""Seconds between two checks for a deferred sale."""
PAUSE, LONGEST = 1.0, 600.0
"""Shortest and longest pause of the tills, in seconds, after which a deferred sale is certified."""
FACTOR: Final = 4
UNMET: Final = 200
"""Number of live sales that meet no deferred one at the machine, after which the pause becomes shorter again."""
SPACING, SPACING_LATE = 60.0, 3.0
"""Seconds between deferred sales while tills never pause; the second once the oldest has waited for a day."""
IN_A_RUSH: Final = 1.5
"""Factor on the spacing, after which one is certified even between tills."""
ENOUGH: Final = 2
"""Number of sales refused in a row that shows a fault of the machine."""
PAUSES = (60.0, 300.0, 900.0)
"""Seconds until refused sales are tried again."""
AFTER_ERROR, AFTER_FAILURE = 5.0, 60.0


@dataclass
class SalesThatWait:
    """The deferred sales of one worker; `run` runs until cancelled."""

    worker: MachineWorker
    refused: dict[int, int] = field(default_factory=dict)
    """The machine's number of invoices at the refusal, by sale id. Another refusal after a certification means a fault
    of the sale, not of the machine."""
    pauses: int = 0
    not_before: float = 0.0
    again_at: float = 0.0
    quiet_since: float = 0.0
    last_at: float = 0.0
    count: int = 0
    """The machine's number of invoices at the last check: it tells whether a till has sold since."""
    pause: float = PAUSE
    """Grows when a till had to wait for a deferred sale: that is how the shop's pauses are learned."""
    unmet: int = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.step()
            except McfdError as error:  # the machine is lost or the disk full: tried again later
                rest = AFTER_ERROR
                log.info("sale.put_off", **self.worker.names, cause=str(error))
            except Exception:
                rest = AFTER_FAILURE
                log.exception("sale.failed", **self.worker.names)
            else:
                continue
            self.not_before = self._now() + rest

    async def step(self) -> None:
        """Certifies one sale at most."""
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
            await self._certify(sale, at_present_rates(sale.invoice, worker.rates))
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
            await worker.run_to_end(work, "certify")
        except NotWaiting:
            return  # it was withdrawn meanwhile
        except DuplicateInvoice as error:
            # After a restore: the machine had certified that number already.
            await withdraw(worker, sale, sentence(error), by=DAEMON)
            return
        except (MachineRefused, MachineNonsense) as error:
            if sale.invoice is None or at_present_rates(sale.invoice, worker.rates) == invoice:
                await self._refused(sale, error)
            return  # else with the rates that the machine has now
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
        """The oldest that the machine has not refused since its last certification; while it refuses all of them, the
        oldest when it is time to try again."""
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
