"""One round in one loop: a machine that does everything wrong, a disk that comes and goes, a daemon that is thrown away and made
again in the middle, tills that sell, credit and close meanwhile. Everything is drawn from the round's seed."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from support.hostile import FAMILY, nothing_lost_nothing_doubled
from support.memory_shop import MemoryShop, quick
from support.shop import NIM

from daemon.core.errors import CreditExceedsOriginal, MachineError, StorageError
from daemon.core.ledger.attempt import Record
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book.closures import closures_between
from daemon.usecases.worker.machine_worker import Limits
from simulator.line.faults import FaultPlan
from simulator.line.session import LineSession
from simulator.machine.options import SimulatorOptions

LIMITS = Limits(doubt_patience=1.0, patience=2.0, aggregation_delay=0.01)


@dataclass
class Round:
    folder: Path
    seed: int
    invoices: int = 60
    shop: MemoryShop | None = None
    answers: dict[str, Record] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    starts: int = 0

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.ledger = self.folder / f"ledger-{self.seed}"

    async def run(self) -> str:
        """What was done, in a line. AssertionError when something was lost or doubled."""
        tills = self.draw.randint(1, 6)
        options = SimulatorOptions(
            nim=NIM,
            credit_check=self.draw.choice((0.0, 0.03, 0.1)),
            credit_style=self.draw.choice(("pending", "silent", "syn")),
            short_nim=self.draw.random() < 0.3,
            dashed_codes=self.draw.random() < 0.3,
            close_prefix=self.draw.random() < 0.3,
            close_number=self.draw.random() < 0.3,
        )
        lines = self.draw.sample(sorted(FAMILY), self.draw.randint(1, 4))
        machine = MemoryShop(
            self.ledger, faults=",".join(FAMILY[line] for line in lines), seed=self.seed, options=options
        )
        house = asyncio.create_task(self._keep_house(machine.session))
        try:
            await asyncio.gather(*(self._sell(at, tills) for at in range(tills)), self._close(self.draw.randint(0, 3)))
        finally:
            house.cancel()
            await asyncio.wait([house])
        await self._check(machine.session)
        return f"{len(self.answers)} invoices, {tills} tills, {len(self.closed)} Z, {self.starts} starts; {', '.join(lines)}"

    async def _keep_house(self, session: LineSession) -> None:
        """The daemon: some live long, some do not; some have a disk that stops taking anything for a while."""
        while True:
            self.starts += 1
            shop = MemoryShop(self.ledger, on=session, limits=LIMITS, timers=quick(self.draw.choice((0.5, 1.0))))
            async with shop:
                self.shop = shop
                try:
                    ends_at = asyncio.get_running_loop().time() + self.draw.expovariate(1.0)
                    while asyncio.get_running_loop().time() < ends_at:
                        await asyncio.sleep(self.draw.uniform(0.01, 0.3))
                        if self.draw.random() < 0.2:
                            await shop.disk(writable=False)
                            await asyncio.sleep(self.draw.uniform(0.01, 0.3))
                            await shop.disk(writable=True)
                finally:
                    self.shop = None

    async def _sell(self, at: int, tills: int) -> None:
        for each in range(at, self.invoices, tills):
            number = f"F-{each}"
            original = self._original() if self.draw.random() < 0.15 else None
            if original is None:
                self.answers[number] = await self._insist(
                    number, *range(100 + each, 101 + each + self.draw.randint(0, 3))
                )
            else:
                await self._credit(number, original)

    def _original(self) -> Record | None:
        sales = [record for record in self.answers.values() if not record.invoice.is_credit]
        return self.draw.choice(sales) if sales else None

    async def _credit(self, number: str, original: Record) -> None:
        assert original.counters
        reference = f"{NIM}-{original.counters.fvc}"
        amount = self.draw.randint(1, original.total_ttc)
        try:
            self.answers[number] = await self._insist(
                number, amount, credit=True, invoiceType="FA", creditNoteRef=reference
            )
        except CreditExceedsOriginal:
            return

    async def _insist(self, number: str, *prices: int, **changes: object) -> Record:
        while True:
            if self.shop is not None:
                try:
                    return (await self.shop.certify(number, *prices, key=f"key of {number}", **changes)).value
                except (MachineError, StorageError):
                    pass
            await asyncio.sleep(0.01)

    async def _close(self, count: int) -> None:
        for each in range(count):
            await asyncio.sleep(self.draw.uniform(0, 0.5))
            await self._insist_on_z(f"Z {each}")

    async def _insist_on_z(self, key: str) -> None:
        while key not in self.closed:
            if self.shop is not None:
                with suppress(MachineError, StorageError):
                    self.closed[key] = (await self.shop.close_period(key)).value.certs_count
            await asyncio.sleep(0.01)

    async def _check(self, session: LineSession) -> None:
        session.plan = FaultPlan()
        session.plug()
        async with MemoryShop(self.ledger, on=session) as shop:
            self.shop = shop
            await shop.connected()
            await self._insist_on_z("the last Z")
            await nothing_lost_nothing_doubled(shop, self.answers)
            closures = await shop.store.ledger.read(closures_between, shop.worker.book, start=0, end=1 << 60)
            assert [z.z_number for z in closures] == list(range(1, len(self.closed) + 1))
            assert [z.certs_count for z in closures] == list(self.closed.values())
            assert sum(z.certs_count for z in closures) == len(self.answers)
            assert not any(z.unexplained for z in closures)
        findings = verify(self.ledger)
        assert findings.clean, findings.problems
