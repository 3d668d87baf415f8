"""One book at work: its machine while there is one, who waits for it, and what is known and in flight.

Nothing here is durable: after a crash everything is read back from the ledger and from the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog

from daemon.core.certification import Counters, MachineState, Mode, ServerLink
from daemon.core.clock import bounded, machine_millis
from daemon.core.closure import Aggregate, Book, BookState
from daemon.core.errors import LineLost, MachineAttention, MachineBusy, MachineOffline, StorageFull
from daemon.core.intake import Defaults
from daemon.core.reports import PAYMENT_LABELS, Labels
from daemon.usecases.meters import Meters
from daemon.usecases.ports import Clock, FiscalMachine, Ledger
from daemon.usecases.turns import Turns

log = structlog.get_logger(__name__)

T = TypeVar("T")

STOPPING = "mcfd is stopping; nothing was sent"
COUNTERS_WENT_DOWN = "the machine's counters went down"
NO_COUNTERS = Counters(0, 0, 0)
DRIFT_ALERT = 120.0
"""Seconds between the box's clock and the machine's beyond which the operator is told."""
ANSWERS_FIRST = 0.002
"""Seconds; a till's answer leaves in half of that."""


@dataclass(frozen=True)
class Limits:
    """`patience`: seconds a till waits for its turn; `settle`: for an outcome that became unknown while it waited."""

    queue: int = 256
    patience: float = 25.0
    settle: float = 20.0
    aggregation_delay: float = 2.0


@dataclass(frozen=True)
class DeskEvent:
    """Something a screen wants to know at once; `type` as the public event names have it."""

    type: str
    book: Book
    ref: int = 0
    detail: str = ""


@dataclass
class InFlight:
    """A request that runs now under an Idempotency-Key."""

    fingerprint: bytes
    done: asyncio.Future[None]


@dataclass
class MachineTime:
    """The machine's clock as last read, and when that was by the loop's clock."""

    millis: int
    read_at: float
    drift: float


@dataclass(frozen=True)
class Reading:
    """One look at the machine for people; `at` in loop time, `read_at` in milliseconds since 1970."""

    state: MachineState
    link: ServerLink
    at: float
    read_at: int


@dataclass
class Desk:
    book: Book
    ledger: Ledger
    clock: Clock
    defaults: Defaults
    limits: Limits = field(default_factory=Limits)
    labels: Labels = field(default_factory=lambda: PAYMENT_LABELS)
    on_event: Callable[[DeskEvent], None] = lambda _: None

    machine: FiscalMachine | None = None
    known: Counters = NO_COUNTERS
    rates: dict[str, int] = field(default_factory=dict)
    ifu: str = ""
    attention: str = ""
    offline_reason: str = "the machine has not answered yet"
    last_at: int = 0
    met_machine: bool = False
    """Whether this process has reconciled with the machine once (a ledger that is behind can only show before that)."""
    machine_time: MachineTime | None = None
    reading: Reading | None = None
    taxpayer: tuple[str, ...] = ()
    """I0…I5 of 2Bh, asked once."""
    server_link: ServerLink | None = None
    """C2h as last read: hourly at the least."""
    aggregate: Aggregate | None = None
    meters: Meters = field(default_factory=Meters)
    held: set[int] = field(default_factory=set)
    """Attempts that this process sees to: begun in the ledger, and no concern of `recover`."""
    unstored: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    """Attempts whose end is known and not durable yet."""
    keys: dict[bytes, InFlight] = field(default_factory=dict)
    numbers: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    doubts: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    """Attempts whose outcome somebody waits for; resolved when there is something new to see in the ledger."""

    def __post_init__(self) -> None:
        self.turns = Turns(self.limits.queue)
        self.looking = asyncio.Lock()
        self.settling = asyncio.Lock()
        """Held by whoever asks the machine what became of an attempt."""
        self.closing = False
        self._usable = asyncio.Event()
        self._tick: asyncio.TimerHandle | None = None
        self._afterwards: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        return self.machine is not None

    @property
    def waiting(self) -> int:
        return len(self.turns)

    @property
    def drift_seconds(self) -> float | None:
        return self.machine_time.drift if self.machine_time else None

    def take_state(self, state: BookState) -> None:
        """What the ledger knows becomes what the desk knows."""
        self.known = state.known or NO_COUNTERS
        self.rates = dict(state.rates)
        self.ifu = state.ifu
        self.last_at = max(self.last_at, state.last_at)
        if state.attention != self.attention:
            self.attention = state.attention
            if state.attention:
                self.tell("mcf.attention", detail=state.attention)

    def take_machine_time(self, state: MachineState) -> None:
        millis = machine_millis(state.time)
        if millis is None:
            return
        drift = (self.clock() - millis) / 1000
        if abs(drift) > DRIFT_ALERT and abs(self.drift_seconds or 0.0) <= DRIFT_ALERT:
            log.warning("clock.drift", nim=self.book.nim, mode=self.book.mode, seconds=round(drift))
        self.machine_time = MachineTime(millis, asyncio.get_running_loop().time(), drift)

    def now(self) -> int:
        """The time for the ledger (decision 21); never before anything the book already holds."""
        machine = None
        if self.machine_time:
            elapsed = asyncio.get_running_loop().time() - self.machine_time.read_at
            machine = self.machine_time.millis + int(elapsed * 1000)
        at = bounded(self.clock(), self.last_at, machine)
        if (
            machine is not None
        ):  # else nobody vouches for the box's clock: a wrong one must not stay behind in `last_at`
            self.last_at = at
        return at

    # -- the machine ------------------------------------------------------------------------------------------------

    def ready(self) -> FiscalMachine:
        """The machine, if it may be given work now."""
        if self.attention:
            raise MachineAttention(self.attention)
        return self.present()

    def present(self) -> FiscalMachine:
        """The machine, if it answers, also one in attention: it may be looked at."""
        if self.machine is None:
            raise MachineOffline(
                f"the machine {self.book.nim} is not connected ({self.offline_reason}); nothing was sent"
            )
        return self.machine

    async def wait_ready(self, deadline: float) -> FiscalMachine:
        """The machine, waiting for its return until `deadline` (loop time)."""
        loop = asyncio.get_running_loop()
        while self.machine is None and not self.attention:
            if self.closing:
                raise MachineBusy(STOPPING)
            try:
                async with asyncio.timeout_at(max(deadline, loop.time())):
                    await self._usable.wait()
            except TimeoutError:
                break
        return self.ready()

    def opened(self, machine: FiscalMachine) -> None:
        self.machine = machine
        self.offline_reason = ""
        self._usable.set()
        self.tell("mcf.connected")

    def lost(self, reason: str) -> None:
        was_connected = self.machine is not None
        self.machine = None
        self.offline_reason = reason
        self._usable.clear()
        if was_connected:
            self.tell("mcf.disconnected", detail=reason)

    def drop(self, machine: FiscalMachine, reason: str) -> None:
        """Nobody gets this connection any more: what the machine did is to be asked at the next one, by `recover`."""
        if self.machine is machine:
            self.lost(reason)
        machine.hang_up(reason)

    # -- what is not in the ledger yet ----------------------------------------------------------------------------------

    async def outcome_durable(self, patience: float = 2.0) -> None:
        """Waits for the commit of whatever ended before: the machine remembers only its last invoice, so nothing may be
        certified after it until the ledger has it."""
        if not self.unstored:
            return
        _, late = await asyncio.wait(list(self.unstored.values()), timeout=patience)
        if late:
            raise StorageFull("the invoice before this one could not be stored yet")

    def begin_storing(self, attempt_id: int) -> None:
        self.unstored[attempt_id] = asyncio.get_running_loop().create_future()

    def settled(self, attempt_id: int) -> None:
        """The ledger has something new to say of this attempt: whoever waits for that may look."""
        self.held.discard(attempt_id)
        for waited in (self.unstored.pop(attempt_id, None), self.doubts.pop(attempt_id, None)):
            if waited is not None and not waited.done():
                waited.set_result(None)

    # -- work that outlives its caller --------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=f"{name} {self.book.nim} {self.book.mode}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def see_through(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """`work` goes on to its end even when its caller goes away."""
        task: asyncio.Task[T] = self.spawn(work, name)
        task.add_done_callback(_seen)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # not the caller went away, but the daemon
                raise LineLost("mcfd was stopped before the outcome was known") from None
            raise

    def after_answers(self, work: Callable[[], None]) -> None:
        """What nobody at a till should wait for: done once the answers that are due have left, at the stop at the latest."""
        if not self._afterwards:
            asyncio.get_running_loop().call_later(ANSWERS_FIRST, self._do_afterwards)
        self._afterwards.append(work)

    def _do_afterwards(self) -> None:
        works, self._afterwards = self._afterwards, []
        for work in works:
            asyncio.get_running_loop().call_soon(work)  # each for itself, should one of them fail

    def schedule_tick(self, tick: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """One tick, `aggregation_delay` after the first thing it will bring in; none once the daemon stops: the next start sees to it."""
        if self._tick is None and not self.closing:
            loop = asyncio.get_running_loop()
            self._tick = loop.call_later(self.limits.aggregation_delay, self._run_tick, tick)

    def _run_tick(self, tick: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._tick = None
        self.spawn(tick(), "aggregate")

    def tell(self, kind: str, ref: int = 0, detail: str = "") -> None:
        self.on_event(DeskEvent(kind, self.book, ref, detail))

    async def close(self, grace: float = 10.0) -> None:
        """Finishes what is on the line (at most `grace` seconds), sends the others away, stops the rest."""
        self.turns.close(STOPPING)
        self.closing = True
        self._usable.set()
        for attempt_id in list(self.doubts):
            self.settled(attempt_id)
        try:
            async with asyncio.timeout(grace):
                await self.turns.drained()
                await self._finished()
        except TimeoutError:
            log.warning("desk.close_incomplete", nim=self.book.nim, mode=self.book.mode)
        self._do_afterwards()
        await asyncio.sleep(0)
        if self._tick is not None:
            self._tick.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _finished(self) -> None:
        """What left the line is stored, and its caller has been told."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # whether or not the caller is still there to get it


class Desks:
    """Every book of this daemon, by NIM and mode."""

    def __init__(self, desks: Sequence[Desk]) -> None:
        self._desks = {(desk.book.nim, desk.book.mode): desk for desk in desks}

    def get(self, nim: str, mode: Mode) -> Desk | None:
        return self._desks.get((nim, mode))

    def all(self) -> Sequence[Desk]:
        return list(self._desks.values())
