"""A machine and its spare on one ledger, in one loop.

async with paired(tmp_path / "ledger") as shop:
    await shop.take_over()
    answered = await shop.certify("F-1")
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.memory_shop import LAST, MemoryShop
from support.shop import NIM, invoice

from daemon.core.audit import Actor
from daemon.core.clock import zone
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.deferred import DeferredSale
from daemon.store.store import Store
from daemon.usecases.certification.certify import certify
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.deferred.accept import certify_or_defer
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from daemon.usecases.worker.machine_worker import Limits, MachineWorker
from daemon.usecases.worker.machine_workers import MachineWorkers

SPARE = "EL02000099-1"
PERSON = Actor("user:awa")


@dataclass
class PairedShop:
    store: Store
    first: MemoryShop
    spare: MemoryShop
    workers: MachineWorkers

    @property
    def in_use(self) -> MachineWorker:
        """As the API finds it for a key of the first machine."""
        return self.first.worker.in_use

    async def certify(
        self, number: str, *prices: int, key: str = "", credit: bool = False, **changes: Any
    ) -> Answered[Record]:
        body = invoice(number, *prices, **changes)
        return await certify(self.in_use, body, self.first.call(body, key), credit=credit)

    async def defer(self, number: str, key: str) -> DeferredSale:
        body = invoice(number)
        answered = await certify_or_defer(self.in_use, body, self.first.call(body, key), is_async=True)
        assert isinstance(answered.value, DeferredSale)
        return answered.value

    async def take_over(self, reason: str = "it does not start any more") -> None:
        pair = self.first.worker.book, self.spare.worker.book
        async with self.workers.at_rest(pair[:1]):
            await self.store.decisions.take_over(*pair, reason=reason, at=self.in_use.now(), by=PERSON)

    async def take_back(self, reason: str = "it was repaired") -> None:
        async with self.workers.at_rest((self.spare.worker.book,)):
            await self.store.decisions.take_back(self.first.worker.book, reason=reason, at=self.in_use.now(), by=PERSON)

    async def first_dies(self) -> None:
        await self.unplug(self.first)

    async def unplug(self, machine: MemoryShop) -> None:
        machine.unplug(1e9)
        await machine.until(lambda: not machine.worker.connected, "the machine away")

    async def first_returns(self) -> None:
        self.first.session.plug()
        await self.first.connected()

    async def first_returns_in_attention(self) -> None:
        self.first.session.plug()
        await self.first.until(lambda: self.first.worker.attention, "what the machine has certified found")

    async def dies_in_doubt(self, number: str, key: str = "", *, certified: bool) -> asyncio.Task[Answered[Record]]:
        """The first machine dies at 38h of that invoice; the till waits."""
        sale = asyncio.ensure_future(self.certify(number, key=key))
        await self.first.stop_at(LAST, "after" if certified else "before")
        await self.is_cut(self.first, certified=certified)
        return sale

    async def is_cut(self, at: MemoryShop, *, certified: bool = False) -> None:
        """That machine, which stands at 38h, is gone."""
        now = asyncio.get_running_loop().time()
        if not certified:
            at.session.cut_power(now, 0.0)
        at.session.unplug(now, 1e9)
        at.resume()
        await at.until(lambda: not at.worker.connected, "the machine away")


@asynccontextmanager
async def paired(path: Path, on: PairedShop | MemoryShop | None = None) -> AsyncIterator[PairedShop]:
    """`on`: the machines of a shop that was there before, plugged in or not as it has left them."""
    store = await Store.open(path, timezone=zone("UTC"), reserve_bytes=0)
    async with store:
        await store.ledger.open_pairs([(NIM, SPARE)], (NIM, SPARE))
        limits = Limits(doubt_patience=0.3, patience=5.0, aggregation_delay=0.01)
        before = (
            (on.session, None)
            if isinstance(on, MemoryShop)
            else (on.first.session, on.spare.session)
            if on
            else (None, None)
        )
        first, spare = (
            MemoryShop(path, nim=nim, limits=limits, on=session)
            for nim, session in zip((NIM, SPARE), before, strict=True)
        )
        await first.begin(store)
        await spare.begin(store)
        spare.worker.join(first.worker)
        waiting = [asyncio.ensure_future(SalesThatWait(each.worker).run()) for each in (first, spare)]
        for each in (first, spare):
            if each.session.is_plugged(asyncio.get_running_loop().time()):
                await each.until(
                    lambda each=each: each.worker.connected or each.worker.attention, "the machine looked at"
                )
        try:
            yield PairedShop(store, first, spare, MachineWorkers((first.worker, spare.worker)))
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            await first.end()
            await spare.end()
