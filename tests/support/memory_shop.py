"""The use cases, the driver, the store and the simulator in one loop: a shop without processes, for what needs big numbers
or a hand on everything. What only a kill can show is in tests/acceptance.

async with in_service(tmp_path / "ledger") as shop:
    answered = await shop.certify("F-1")
"""

import asyncio
import hashlib
import inspect
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from support.shop import NIM, invoice

from bridge.commands import USUAL, MachineHabits
from bridge.errors import PortUnavailable
from bridge.link import Port, Timers
from daemon.core.audit import Call
from daemon.core.clock import zone
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book, Closure
from daemon.core.ledger.decision import Case, Decision
from daemon.core.ledger.paper import PaperInvoice
from daemon.machines.line import LineSettings, run_line
from daemon.store.ledger import Ledger
from daemon.store.store import Store
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import open_book
from daemon.store.tables.book.settlements import read_evidence
from daemon.usecases.certification.certify import certify
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.line_events import LineEvents
from daemon.usecases.outages import OutageWatch
from daemon.usecases.reports.close_period import close_period
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import Limits, MachineWorker
from daemon.usecases.worker.machine_workers import begin
from simulator.line.faults import FaultPlan
from simulator.line.memory_port import MemoryPort, PortLost
from simulator.line.session import Direction, LineSession, Point, When
from simulator.machine.fiscal_memory import CertifiedInvoice, Snapshot
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import MachineClock, SimulatorOptions


def quick(factor: float = 1.0) -> Timers:
    """Twelve times as fast as on the protocol page: a memory port has no wire. `factor` makes them slower or faster still."""
    return Timers(
        first_byte=0.04 * factor,
        first_byte_close=0.08 * factor,
        first_byte_credit=0.5 * factor,
        byte_gap=0.03 * factor,
        syn_gap=0.04 * factor,
        quiet=0.005 * factor,
        overall=2.0 * factor,
        overall_credit=4.0 * factor,
        pending_every=0.02 * factor,
        pending_close=0.5 * factor,
        pending_credit=2.0 * factor,
    )


PATIENCE = 60.0
LAST = 6
"""38h of an invoice with one item, counted from C3h."""


DEFAULTS = Defaults("1", "Caisse 1", "1")
SECOND = "EL02000015-2"
"""The machine's name after its next activation."""


class LooksApart(LineEvents):
    """Looks at the machine that do not come between the frames that a test counts."""

    is_put_off = is_at_it = False

    async def heartbeat(self) -> None:
        if not self.is_put_off:
            self.is_at_it = True
            try:
                await super().heartbeat()
            finally:
                self.is_at_it = False


class MemoryShop:
    """`session` is the machine: it outlives `crash` and a new shop made `on` it."""

    def __init__(
        self,
        path: Path,
        *,
        on: LineSession | None = None,
        nim: str = NIM,
        faults: str = "",
        seed: int = 0,
        options: SimulatorOptions | None = None,
        timers: Timers | None = None,
        limits: Limits | None = None,
        habits: MachineHabits = USUAL,
        box: BoxClock | None = None,
        retry: float = 0.01,
        heartbeat: float = 0.05,
        keeps_register: bool = False,
        defaults: Defaults = DEFAULTS,
        timezone: str = "UTC",
    ) -> None:
        """`keeps_register`: of outages. `timers` outlast a ledger that a busy machine lets wait; `quick()` is for tests in which many run out."""
        self.defaults = defaults
        self.timezone = timezone
        self.path = path
        self.keeps_register = keeps_register
        self.register: asyncio.Task[None] | None = None
        self.nim = nim
        self.habits = habits
        self.retry, self.heartbeat = retry, heartbeat
        self.clock = MachineClock()
        self.box_offset = 0
        """Milliseconds by which the box's clock is wrong."""
        self.synchronised = False
        self.box = box or BoxClock(lambda: time.time_ns() // 1_000_000 + self.box_offset, lambda: self.synchronised)
        self.session = on or LineSession(
            SimulatedMachine(options or SimulatorOptions(nim=nim), self.clock), plan=FaultPlan(faults, seed)
        )
        self.limits = limits or Limits(doubt_patience=5.0, patience=5.0, aggregation_delay=0.01)
        self.timers = timers or quick(10)
        self.ports: list[MemoryPort] = []
        self.calls = 0

    async def __aenter__(self) -> Self:
        store = await Store.open(self.path, timezone=zone(self.timezone), reserve_bytes=0)
        try:
            await self.begin(store)
        except BaseException:
            await store.close()
            raise
        return self

    async def begin(self, store: Store) -> None:
        """At work on its book in a store that others may work in too."""
        self.store = store
        book = await self.store.ledger.write(open_book, self.nim, "live")
        self.worker = MachineWorker(
            book,
            self.store.ledger,
            self.store.journal,
            self.store.events,
            self.box,
            self.defaults,
            self.limits,
            configured_nim=self.nim,
        )
        await begin(self.worker)
        if self.keeps_register:
            watch = OutageWatch(self.worker)
            await watch.begin()
            self.register = asyncio.get_running_loop().create_task(watch.run(), name="outages")
        settings = LineSettings(self.nim, self._open_port, self.timers, self.habits, self.retry, self.heartbeat)
        self.keeper = LooksApart(self.worker)
        self.line = asyncio.get_running_loop().create_task(run_line(settings, self.keeper), name="line")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A task that is cancelled here, or while it opens, still closes the ledger."""
        try:
            await self.end()
        finally:
            await self.store.close()

    async def end(self) -> None:
        """Everything but the store."""
        tasks = [self.line, *([self.register] if self.register else [])]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.wait(tasks)
        finally:
            await self.worker.close(0)
            for port in self.ports:
                port.close()
        if not self.line.cancelled():
            self.line.result()

    def _open_port(self) -> Port:
        try:
            port = MemoryPort(self.session)
        except PortLost as error:
            raise PortUnavailable("memory", "missing", str(error)) from error
        self.ports.append(port)
        return port

    @property
    def port(self) -> MemoryPort:
        return self.ports[-1]

    # -- the till -----------------------------------------------------------------------------------------------------

    def call(self, body: object, key: str = "") -> Call:
        self.calls += 1
        return Call(f"request-{self.calls}", key, hashlib.sha256(repr(body).encode()).digest()[:16])

    async def certify(
        self, number: str, *prices: int, key: str = "", credit: bool = False, **changes: Any
    ) -> Answered[Record]:
        body = invoice(number, *prices, **changes)
        return await certify(self.worker, body, self.call(body, key), credit=credit)

    async def close_period(self, key: str = "") -> Answered[Closure]:
        return await close_period(self.worker, self.call({}, key))

    # -- what is there ------------------------------------------------------------------------------------------------

    async def connected(self) -> None:
        await self.until(lambda: self.worker.connected, "the machine in service")

    async def intents(self, count: int) -> None:
        """So many attempts are begun in the ledger."""
        while len(self.store.ledger.peek(attempts.unfinished, self.worker.book)) < count:  # noqa: ASYNC110  another thread writes them
            await asyncio.sleep(0.002)

    async def disk(self, *, writable: bool) -> None:
        """What a disk that is full or read-only does: SQLite refuses every write."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(f"PRAGMA query_only = {'OFF' if writable else 'ON'}")

        await self.store._open.writer._connection.run(job)

    async def stop_at(self, next_frame: int, when: When = "before", direction: Direction = "in") -> None:
        """The machine stands at that point of the `next_frame`-th frame from now on; `resume` lets it go on. Frames of a look are none of them."""
        self.keeper.is_put_off = True
        if self.keeper.is_at_it:
            with self.worker.queue.join_first() as entry:
                await entry.wait_turn(asyncio.get_running_loop().time() + PATIENCE)
        passed = self.session.frames_in if direction == "in" else self.session.frames_out
        point = Point(passed + next_frame, when, direction)
        self.session.pause_at(point)
        await self.until(lambda: self.session.stop_point == point, f"the machine at {point}")
        self.keeper.is_put_off = False

    async def disk_lost_at(self, next_frame: int) -> None:
        """The disk refuses every write from the moment on at which that frame is about to reach the machine."""
        await self.stop_at(next_frame)
        await self.disk(writable=False)
        self.resume()

    async def stop_until(self, next_frame: int, let_go: Callable[[], object]) -> None:
        """From one point to the next."""
        task = asyncio.ensure_future(self.stop_at(next_frame))
        await asyncio.sleep(0)
        let_go()
        await task

    async def slow_disk(self, seconds: float) -> None:
        """Writing takes that long, once."""
        await self.store._open.writer._connection.run(lambda _: time.sleep(seconds))

    async def case(self) -> Case:
        """What a person is asked, once the machine has said its word."""
        read, book = self.store.ledger.peek, self.worker.book
        await self.until(lambda: self.worker.attention and read(read_evidence, book), "a question")
        return await self.store.decisions.case(book)

    async def decide(self, decision: Decision, paper: PaperInvoice | None = None) -> None:
        """As `mcfd machine settle`; the worker serves again."""
        at = self.worker.now()
        await self.store.decisions.carry_out(await self.case(), decision, reason="looked at", at=at, paper=paper)
        await self.until(lambda: not self.worker.attention and self.worker.connected, "service")

    def resume(self) -> None:
        self.session.resume()
        self.port.pump()

    def unplug(self, seconds: float) -> None:
        """Also a machine that stands at a point."""
        self.session.unplug(asyncio.get_running_loop().time(), seconds)
        self.resume()

    async def until(
        self, condition: Callable[[], Any], what: str = "the condition", patience: float = PATIENCE
    ) -> None:
        deadline = asyncio.get_running_loop().time() + patience
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, f"{what} did not come true within {patience} s"
            await asyncio.sleep(0.002)

    @property
    def on_machine(self) -> list[CertifiedInvoice]:
        return list(self.session.machine.fiscal.log)

    @property
    def counters(self) -> tuple[int, int, int]:
        fiscal = self.session.machine.fiscal
        return fiscal.tc, fiscal.fvc, fiscal.frc

    async def certified(self, book: Book | None = None) -> list[Record]:
        """Everything that the ledger holds as certified, in its book of now or in that one, oldest first."""
        return [
            record
            async for record in self.store.journal.iterate(book or self.worker.book, 0, 1 << 60, 0)
            if record.state == "certified"
        ]


def activated(session: LineSession, nim: str = SECOND, *, reset: bool, **changes: Any) -> None:
    """What an authorised technician does: the counter goes up; a reset erases the memory. `changes` are options of the machine."""
    session.cut_power(0.0, 0.0)
    session.machine.change(nim=nim, **changes)
    if reset:
        session.machine.restore(Snapshot())


@asynccontextmanager
async def in_service(path: Path, **options: Any) -> AsyncIterator[MemoryShop]:
    """A shop whose machine is connected."""
    async with MemoryShop(path, **options) as shop:
        await shop.connected()
        yield shop


def broken_once(monkeypatch: pytest.MonkeyPatch, step: str) -> list[str]:
    """The first such write to the ledger raises an unexpected error; the list is empty from then on."""
    left = [step]

    async def broken(write: Callable[[], Awaitable[Any]]) -> Any:
        if left:
            left.clear()
            raise ZeroDivisionError(step)
        return await write()

    around_write(monkeypatch, step, broken)
    return left


def around_write(
    monkeypatch: pytest.MonkeyPatch, step: str, around: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
) -> None:
    """Each write of that function to the ledger, or call of that method of it, goes through `around`, which is given what does it."""
    if hasattr(Ledger, step) and inspect.iscoroutinefunction(getattr(Ledger, step)):
        real = getattr(Ledger, step)

        async def method(*arguments: Any, **named: Any) -> Any:
            return await around(lambda: real(*arguments, **named))

        monkeypatch.setattr(Ledger, step, method)
        return
    submits = Ledger.submit

    def submit(ledger: Ledger, function: Any, *arguments: Any, **named: Any) -> asyncio.Future[Any]:
        if getattr(function, "__name__", "") == step:
            return asyncio.ensure_future(around(lambda: submits(ledger, function, *arguments, **named)))
        return submits(ledger, function, *arguments, **named)

    monkeypatch.setattr(Ledger, "submit", submit)
