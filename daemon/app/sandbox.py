"""The sandbox machine (decision 23): the simulator in memory behind the real driver and the same use cases, with the
failures that a test requests (decision 40). It waits while a till sells: tills go before the box's own work."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, Self

from bridge.errors import PortUnavailable
from bridge.link import Port, Timers
from bridge.machine import LinkedMachine
from common.language import Text
from common.language.reasons import SANDBOX_ATTENTION, SANDBOX_UNPLUGGED
from common.wire.instants import now_millis
from daemon.api.access.rehearsal import REHEARSED, Rehearsal, SandboxClock
from daemon.core.clock import millis_text
from daemon.core.errors import MachineBusy, StorageFull
from daemon.core.events import ATTENTION
from daemon.core.invoice.invoice import Invoice
from daemon.core.ledger.book import Book
from daemon.core.machine.state import Certified, FiscalCounters
from daemon.machines.adapter import Agree, ConnectedMachine
from daemon.machines.line import LineSettings
from daemon.store.ledger import SandboxLedger
from daemon.store.store import Store
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import book_state
from daemon.usecases.line_events import LineEvents
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import Limits, MachineWorker
from simulator.line.faults import FaultPlan
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.fiscal_memory import RememberedInvoice, Snapshot
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import MachineClock, SimulatorOptions

REST: Final = 0.001
"""Seconds before each command of a sandbox machine while a till waits for a real one: a trial of 1000 lines is 1000
commands and would otherwise take the whole loop for 250 ms."""
PATIENCE_STEP: Final = 0.005
LONGEST: Final = 0.25
"""Seconds that a sandbox request or write lets tills go first; it then goes on, even in a shop that always sells."""

AWAITED: Final = 5.0
"""Seconds that a start waits for the sandbox, at most."""
STEP: Final = 0.001
DOUBT_PATIENCE: Final = 3.0
RETRY: Final = 0.2
"""Seconds, both shorter than on a real line: developers of tills wait less."""

ATTENDED: Final = SANDBOX_ATTENTION
DISK_FULL: Final = Text("the disk is full: less than the reserve is free")

AT_ENTRY: Final[Mapping[str, str]] = {
    "refused": "refuse:Invoice refused by the test@C0",
    "blocked": "refuse:Machine blocked@C3",
}
AT_CLOSE: Final[Mapping[str, str]] = {
    "slow": "work:{seconds}@38",
    "line-lost-at-38h": "unplug:0.1@38",
    "unknown": "unplug:{seconds}@38",
}
"""Faults of the simulated line (docs/simulator.md), by the case of `Mcfd-Test`."""


class TillsFirst:
    """Tells whether a till waits for any real machine. Then a long read of the journal pauses between its slices, and
    the sandbox waits. Reading an invoice of 1000 lines blocks the loop for 20 ms; writing it blocks the ledger's one
    writer for up to 100 ms. A sale that meets both takes twice its time."""

    def __init__(self, workers: Sequence[MachineWorker]) -> None:
        self._workers = workers

    def till_waits(self) -> bool:
        return any(worker.waiting and worker.book.mode == "live" for worker in self._workers)

    def rest(self) -> float:
        """Seconds before the next command of a sandbox machine."""
        return REST if self.till_waits() else 0.0

    async def yield_to_tills(self) -> None:
        """Returns when no till waits for a real machine, or after `LONGEST`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST
        while self.till_waits() and loop.time() < until:  # noqa: ASYNC110  there is no event
            await asyncio.sleep(PATIENCE_STEP)


async def sandbox_answers(workers: Sequence[MachineWorker]) -> None:
    """Returns when each sandbox machine answers or has failed to open: the first request with a test key is not refused
    because a machine inside this daemon has not started. This takes a few loop steps and a few writes to the disk."""
    loop = asyncio.get_running_loop()
    until = loop.time() + AWAITED
    while loop.time() < until and any(map(_is_opening, workers)):  # noqa: ASYNC110  no event; only once
        await asyncio.sleep(STEP)


def _is_opening(worker: MachineWorker) -> bool:
    return worker.book.mode == "test" and not worker.connected and worker.offline_since is None


def sandbox_limits(limits: Limits) -> Limits:
    return limits._replace(doubt_patience=DOUBT_PATIENCE)


def sandbox_ledger(store: Store, tills_first: TillsFirst) -> SandboxLedger:
    """A sandbox ledger whose disk is full for a request with that test case."""

    async def yield_to_tills() -> None:
        await tills_first.yield_to_tills()
        if (rehearsal := REHEARSED.get()) and rehearsal.plays("storage-full"):
            raise StorageFull(DISK_FULL)

    return store.sandbox_ledger(yield_to_tills)


class SandboxTime:
    """The time of one test book: the box's clock plus the offset of tests. It only goes forward, as for any book."""

    def __init__(self, ledger: SandboxLedger, book: Book) -> None:
        self.machine = MachineClock(timedelta(milliseconds=ledger.time_ahead(book)))
        self.box = BoxClock(lambda: now_millis() + self.ahead, lambda: True)
        self._ledger, self._book = ledger, book

    @property
    def ahead(self) -> int:
        return self.machine.offset // timedelta(milliseconds=1)

    async def move(self, millis: int) -> None:
        """Stores the offset first: entries made at the later time are not in the future after a restart."""
        await self._ledger.keep_time_ahead(self._book, self.ahead + millis)
        self.machine.offset += timedelta(milliseconds=millis)


class RehearsingMachine(ConnectedMachine):
    """Applies the faults in an invoice's request to the commands of that invoice only."""

    def __init__(self, session: LineSession, machine: LinkedMachine, nim: str) -> None:
        super().__init__(machine, nim)
        self._session = session

    async def enter(self, invoice: Invoice, ifu: str, agree: Agree) -> None:
        with self._rehearsed(AT_ENTRY):
            await super().enter(invoice, ifu, agree)

    async def certify(self, invoice: Invoice, total_ttc: int, before: FiscalCounters) -> Certified:
        with self._rehearsed(AT_CLOSE):
            return await super().certify(invoice, total_ttc, before)

    @contextlib.contextmanager
    def _rehearsed(self, faults: Mapping[str, str]) -> Iterator[None]:
        rehearsal = REHEARSED.get()
        if rehearsal is None or not rehearsal.plays(*faults):
            yield
            return
        self._session.plan = FaultPlan(faults[rehearsal.case].format(seconds=rehearsal.seconds))
        try:
            yield
        finally:
            self._session.plan = FaultPlan()


class SandboxMachine:
    """The simulated machine of one test book, with its controls for tests
    (`daemon.api.access.rehearsal.SandboxControls`)."""

    def __init__(
        self, worker: MachineWorker, time: SandboxTime, machine: SimulatedMachine, tills_first: TillsFirst
    ) -> None:
        self.listener = LineEvents(worker)
        self._worker = worker
        self._time = time
        self._machine = machine
        self._session = LineSession(machine)
        self._rest = tills_first.rest
        self._port: MemoryPort | None = None
        self._cases: Mapping[str, Callable[[Rehearsal], Awaitable[Callable[[], None]]]] = {
            "offline": self._unplug,
            "late": self._unplug,
            "busy": self._fill_queue,
            "attention": self._attend,
        }

    @classmethod
    async def open(
        cls, store: Store, worker: MachineWorker, time: SandboxTime, ifu: str, tills_first: TillsFirst
    ) -> Self:
        """A machine that has certified exactly what is in the test book. It stores nothing itself, so that they cannot
        differ after a crash. `ifu` is the live machine's, empty while unknown."""
        options = SimulatorOptions(nim=worker.book.nim, test_mode=True, log_limit=0)
        if ifu:
            options = SimulatorOptions(nim=worker.book.nim, test_mode=True, log_limit=0, ifu=ifu)
        machine = SimulatedMachine(options, time.machine)
        machine.restore(await _certified_so_far(store, worker.book))
        return cls(worker, time, machine, tills_first)

    def line(self, nim: str) -> LineSettings:
        adapter = partial(RehearsingMachine, self._session)
        return LineSettings(nim, self._open_port, Timers(), retry=RETRY, adapter=adapter)

    def _open_port(self) -> Port:
        if not self._session.is_plugged(asyncio.get_running_loop().time()):
            raise PortUnavailable(self._worker.book.nim, "missing", SANDBOX_UNPLUGGED)
        self._port = MemoryPort(self._session, self._rest)
        return self._port

    # -- what a test may do --------------------------------------------------------------------------------------------

    async def prepare(self, rehearsal: Rehearsal) -> Callable[[], None]:
        case = self._cases.get(rehearsal.case)
        if case is None:
            return lambda: None
        rehearsal.plays(rehearsal.case)
        return await case(rehearsal)

    async def _unplug(self, rehearsal: Rehearsal) -> Callable[[], None]:
        worker, machine = self._worker, self._worker.machine
        self._session.unplug(asyncio.get_running_loop().time(), rehearsal.seconds)
        if self._port is not None:
            self._port.pump()
        if machine is not None:
            worker.drop(machine, SANDBOX_UNPLUGGED)
        return lambda: None

    async def _fill_queue(self, _: Rehearsal) -> Callable[[], None]:
        queue = self._worker.queue
        entries = contextlib.ExitStack()
        with contextlib.suppress(MachineBusy):
            while True:
                entries.enter_context(queue.join())
        return entries.close

    async def _attend(self, _: Rehearsal) -> Callable[[], None]:
        """Not an attempt in the ledger: no operator settles a sandbox."""
        worker = self._worker
        await worker.events.add(worker.book, ATTENTION, at=worker.now(), detail=ATTENDED)
        worker.attempts.attention = ATTENDED
        worker.publish(ATTENTION, detail=ATTENDED)

        def settled() -> None:
            worker.attempts.attention = ""

        return settled

    def now(self) -> int:
        return self._worker.now()

    async def move_clock(self, seconds: int, *, reachable: bool | None) -> SandboxClock:
        if reachable is not None:
            self._machine.fiscal.reachable = reachable
        await self._time.move(seconds * 1000)
        await self.listener.look_now()
        is_reachable = self._machine.fiscal.reachable
        return SandboxClock(
            millis_text(self.now()), self._time.ahead // 1000, "reachable" if is_reachable else "unreachable"
        )


async def _certified_so_far(store: Store, book: Book) -> Snapshot:
    state = store.ledger.peek(book_state, book)
    if state.counters is None:
        return Snapshot()
    record = store.ledger.peek(attempts.find_number, book, state.last_number) if state.last_number else None
    last = None
    if record is not None:
        last = RememberedInvoice(record.number, record.code, record.machine_time, record.type, record.total_ttc)
    return Snapshot(tc=state.counters.tc, fvc=state.counters.fvc, frc=state.counters.frc, last=last)
