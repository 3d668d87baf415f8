"""One book at work: its machine while there is one, who waits for it, and what is known and in flight.

Nothing here is durable: after a crash everything is read back from the ledger and from the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any, NamedTuple, TypeVar

import msgspec
import structlog

from common.language import NO_TEXT, Text
from common.language.reasons import (
    NOT_YET_CONNECTED,
    OTHER_TAXPAYER,
    STOPPED,
    STOPPING,
    TEST_MODE_REFUSED,
    from_stored,
)
from daemon.core.errors import LineLost, MachineAttention, MachineBusy, MachineOffline
from daemon.core.invoice.intake import Defaults
from daemon.core.invoice.invoice import PAYMENT_LABELS
from daemon.core.ledger.attempt import Record, is_test_code
from daemon.core.ledger.book import Aggregate, Book, BookState
from daemon.core.ledger.entries import OutageReason
from daemon.core.ledger.outage import LIMIT
from daemon.core.ledger.take_over import PairNotCompared
from daemon.core.machine.state import FiscalCounters, MachineState, ServerLink
from daemon.core.report.fiscal_reports import Labels
from daemon.core.report.report_parts import Letterhead
from daemon.machines.adapter import ConnectedMachine
from daemon.store.journal import EventLog, Journal
from daemon.store.ledger import Ledger
from daemon.store.tables.book import attempts
from daemon.usecases.worker.attempts import Attempts, WorkerStatistics
from daemon.usecases.worker.book_clock import BookClock, BoxClock
from daemon.usecases.worker.machine_pair import MachinePair
from daemon.usecases.worker.machine_queue import MachineQueue, QueueEntry

log = structlog.get_logger(__name__)

T = TypeVar("T")

ANSWERS_FIRST = 0.002
"""Seconds; a till's answer leaves in half of that."""


class Limits(NamedTuple):
    """How many tills may wait, and how long; seconds."""

    queue: int = 256
    patience: float = 25.0
    """for a turn at the machine"""
    doubt_patience: float = 20.0
    """for an outcome that became unknown while the till waited"""
    aggregation_delay: float = 2.0
    outage: float = LIMIT
    """after which a machine that cannot certify is in the register of outages"""


async def _no_register(reason: OutageReason) -> int:
    del reason
    return 0


class BookEvent(msgspec.Struct, frozen=True):
    """Something a screen wants to know at once; `type` as the public event names have it."""

    type: str
    book: Book
    ref: int = 0
    detail: str = ""


class MachineReading(msgspec.Struct, frozen=True):
    """One look at the machine for people; `at` in loop time, `read_at` in milliseconds since 1970."""

    state: MachineState
    link: ServerLink
    at: float
    read_at: int


@dataclass
class MachineWorker(MachinePair):
    book: Book
    ledger: Ledger
    journal: Journal
    events: EventLog
    clock: BoxClock
    defaults: Defaults
    limits: Limits = field(default_factory=Limits)
    configured_nim: str = ""
    """What the configuration calls the machine; the book has it as the machine tells it."""
    machine_zone: tzinfo = UTC
    """Of the machine's own clock."""
    labels: Labels = field(default_factory=lambda: PAYMENT_LABELS)
    compose_letterhead: Callable[[tuple[str, ...]], Letterhead] | None = None
    """What stands on paper now, from `taxpayer`."""
    on_event: Callable[[BookEvent], None] = lambda _: None
    till_waits: Callable[[], bool] = lambda: False
    """Whether a till waits for any real machine of this box: a long reading of one machine's book makes way for all."""
    note_odd: Callable[[str], str] = lambda _: ""
    """Tells the line's recorder of something that went wrong above the line; the name of the incident, empty without a recorder."""

    register_outage: Callable[[OutageReason], Awaitable[int]] = _no_register
    """A till is refused, or its sale taken on for later: the number of the outage, durable in the register; 0 for a sandbox, which has none."""
    defers: bool = False
    """While its machine is out of order, sales are taken on to be certified later, also where a till did not ask for that."""
    refused_numbers: set[str] = field(default_factory=set)
    """Of invoices that it refused before they were open, since it certified last."""
    is_retired: bool = False
    """Its machine is no longer in the configuration, or has another taxpayer: its book is read, and closed without it."""

    spare: MachineWorker | None = field(default=None, repr=False)
    """The spare that the configuration has for it."""
    first: MachineWorker | None = field(default=None, repr=False)
    """Of a spare: the machine for which it may stand."""

    machine: ConnectedMachine | None = None
    rates: dict[str, int] = field(default_factory=dict)
    ifu: str = ""
    offline_reason: Text = NOT_YET_CONNECTED
    offline_since: int | None = None
    """When it was found not to answer, in milliseconds since 1970; None while it answers and before it was looked for."""
    returning: bool = False
    """It answers again: `recover` reads what became of unfinished attempts before any attempt may have it."""
    test_mode_allowed: bool = False
    """The configuration lets a machine in test mode certify."""
    machine_code: str = ""
    """The newest code that the machine has sent, also of a foreign invoice; empty before any."""
    ledger_code: str = ""
    """The newest of its present activation in the ledger."""
    is_habit_logged: bool = False
    """Whether the log has how this machine's VAT differs from ours."""
    accepted_differences: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By how much TC and FC of C0h are apart from those known, by invoice type, on a machine that was found to be the right one."""
    longest_close: dict[bool, float] = field(default_factory=dict)
    """Seconds that 38h took at the longest since the start: of sales, and, under True, of credit notes."""
    reading: MachineReading | None = None
    taxpayer: tuple[str, ...] = ()
    """I0…I5 of 2Bh, read once."""
    stored_taxpayer: tuple[str, ...] = ()
    """The same as the ledger has it, for paper while the machine has not been read yet."""
    server_link: ServerLink | None = None
    """C2h as last read: hourly at the least."""
    aggregate: Aggregate | None = None
    statistics: WorkerStatistics = field(default_factory=WorkerStatistics)

    def __post_init__(self) -> None:
        self.queue = MachineQueue(self.limits.queue)
        self.queue.hold()  # until the machine is there and what became of unfinished attempts is known
        self.attempts = Attempts()
        self.time = BookClock(self.clock, self.book, self.machine_zone)
        self.reading_lock, self.acts_lock = asyncio.Lock(), asyncio.Lock()
        self.closing = False
        self.former: list[MachineWorker] = []
        """Of the taxpayers that its machine had before."""
        self._tick: asyncio.TimerHandle | None = None
        self._afterwards: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        return self.machine is not None

    @property
    def names(self) -> dict[str, str]:
        """Its book, for the log."""
        return {"nim": self.book.nim, "mode": self.book.mode}

    @property
    def counters(self) -> FiscalCounters:
        return self.attempts.counters

    @property
    def attention(self) -> Text:
        """Why an operator has to decide; empty when nothing waits for that."""
        return from_stored(self.attempts.attention)

    @property
    def waiting(self) -> int:
        return len(self.queue)

    @property
    def drift_seconds(self) -> float | None:
        return self.time.drift

    @property
    def unfinished(self) -> Sequence[Record]:
        """Attempts that are begun in the ledger."""
        return self.ledger.peek(attempts.unfinished, self.book)

    def take_state(self, state: BookState) -> None:
        """What the ledger knows becomes what the worker knows."""
        is_news = state.attention != self.attempts.attention
        self.attempts.take(state)
        self.rates = dict(state.rates)
        self.ifu = state.ifu
        self.ledger_code = state.last_code
        self.time.take_book(state)
        if is_news and state.attention:
            self.publish("mcf.attention", detail=state.attention)

    def take_name(self, nim: str) -> None:
        """The machine was called that when it certified last, and the ledger has begun that epoch with the outcome."""
        if nim != self.book.nim:
            log.warning("machine.activated", nim=nim, mode=self.book.mode, before=self.book.nim)
            self.book = msgspec.structs.replace(self.book, nim=nim)

    def change_book(self, book: Book) -> None:
        """The machine has another taxpayer: what waits belongs to the other book, and is refused at its turn."""
        self.book = book
        self.attempts.forget()
        self.machine_code = self.ledger_code = ""
        self.time.change_book(book)
        self.aggregate = None
        self.taxpayer = self.stored_taxpayer = ()
        self.series_floor.clear()
        self.defaults = msgspec.structs.replace(self.defaults, letterhead=b"")

    def check_book(self, book: Book) -> None:
        """MachineOffline where the machine has had another taxpayer since: what was sent for that book belongs to the one before."""
        if book.id != self.book.id:
            raise MachineOffline(OTHER_TAXPAYER)

    def now(self) -> int:
        """The time for the ledger (decision 21); never before anything the book already holds."""
        return self.time.now()

    @property
    def obstacle(self) -> Text:
        """Why an operator has to say something before anything is certified; empty when nothing is in the way."""
        of_the_machine = self.attention or self.time.question() or self.refused_test_mode or self.wrong_taxpayer
        return of_the_machine or self.not_compared

    @property
    def refuses_all(self) -> bool:
        """Whether its machine refuses one invoice after the other, as a blocked one does."""
        return len(self.refused_numbers) > 1

    @property
    def in_test_mode(self) -> bool:
        """Whether the newest code of the real machine is one of a test; a sandbox has no others."""
        return self.book.mode == "live" and is_test_code(self.machine_code or self.ledger_code)

    @property
    def refused_test_mode(self) -> Text:
        return TEST_MODE_REFUSED if self.in_test_mode and not self.test_mode_allowed else NO_TEXT

    def take_code(self, code: str) -> None:
        """The machine has sent it, of its last invoice."""
        was, self.machine_code = self.in_test_mode, code or self.machine_code
        if self.in_test_mode and not was:
            log.warning("machine.test_mode", allowed=self.test_mode_allowed, **self.names)

    # -- the machine ------------------------------------------------------------------------------------------------

    def ready(self) -> ConnectedMachine:
        """The machine, if it may be given work now."""
        if obstacle := self.obstacle:
            raise (PairNotCompared if obstacle == self.not_compared else MachineAttention)(obstacle)
        return self.present()

    def present(self) -> ConnectedMachine:
        """The machine, if it answers, also one in attention: it may be looked at."""
        if self.machine is None:
            raise MachineOffline(
                Text(
                    "the machine {nim} is not connected ({offline_reason}); nothing was sent",
                    nim=self.book.nim,
                    offline_reason=self.offline_reason,
                )
            )
        return self.machine

    def check_turn(self) -> None:
        """MachineAttention or MachineOffline where a turn would be waited for in vain. A till whose invoice was in doubt may have its answer
        before a returning machine is free, and sends its next one: that one waits. Not so where an older ledger was put back: it holds nothing but what it was put back with until it was compared with
        the machine."""
        if self.returning and not self.obstacle and not self.attempts.is_restored:
            return
        self.ready()

    async def turn(
        self, entry: QueueEntry, deadline: float, get: Callable[[], ConnectedMachine] | None = None
    ) -> ConnectedMachine:
        """The machine once it is there and it is this entry's turn, until `deadline` (loop time); MachineAttention, MachineOffline or MachineBusy
        otherwise, and then nothing was sent. `get`: `present` where it may be one in attention."""
        get = get or self.ready
        while True:
            try:
                await entry.wait_turn(deadline)
            except MachineBusy:
                if not self.closing:
                    get()  # raises when the machine itself is the reason
                raise
            if self.connected:
                return get()
            entry.step_back()

    def opened(self, machine: ConnectedMachine) -> None:
        self.machine = machine
        self.offline_reason, self.offline_since = NO_TEXT, None
        self.queue.release()
        self.publish("mcf.connected")

    def lost(self, reason: Text) -> None:
        was_connected = self.machine is not None
        self.machine = None
        self.offline_reason = reason
        if self.offline_since is None:  # each further look that fails is of the same absence
            self.offline_since = self.now()
        self.queue.hold()
        if was_connected:
            self.publish("mcf.disconnected", detail=reason)

    def drop(self, machine: ConnectedMachine, reason: Text) -> None:
        """No attempt gets this connection any more: `recover` reads at the next one what the machine did."""
        if self.machine is machine:
            self.lost(reason)
        machine.hang_up(reason)

    # -- work that outlives its caller --------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=f"{name} {self.book.nim} {self.book.mode}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def see_through(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """`work` goes on to its end even when its caller goes away."""
        task: asyncio.Task[T] = self.spawn(work, name)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, also where the caller is gone
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # not the caller went away, but the daemon
                raise LineLost(STOPPED) from None
            raise
        finally:
            del task  # its error's traceback has this frame: together they would keep the request's body until the collector comes

    def after_answers(self, work: Callable[[], None]) -> None:
        """Work that no till should wait for: done once the answers that are due have left, at the stop at the latest."""
        if not self._afterwards:
            asyncio.get_running_loop().call_later(ANSWERS_FIRST, self._do_afterwards)
        self._afterwards.append(work)

    def _do_afterwards(self) -> None:
        works, self._afterwards = self._afterwards, []
        for work in works:
            asyncio.get_running_loop().call_soon(work)  # each for itself, should one of them fail

    def schedule_tick(self, tick: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """One tick, `aggregation_delay` after the first thing it will bring in; none once the daemon stops."""
        if self._tick is None and not self.closing:
            loop = asyncio.get_running_loop()
            self._tick = loop.call_later(self.limits.aggregation_delay, self._run_tick, tick)

    def _run_tick(self, tick: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._tick = None
        self.spawn(tick(), "aggregate")

    def publish(self, kind: str, ref: int = 0, detail: str = "") -> None:
        self.on_event(BookEvent(kind, self.book, ref, detail))

    async def close(self, grace: float = 10.0) -> None:
        """Finishes what is on the line (at most `grace` seconds), sends the others away, stops the rest."""
        self.queue.close(STOPPING)
        self.closing = True
        self.attempts.wake()
        try:
            async with asyncio.timeout(grace):
                await self.queue.drained()
                await self._finished()
        except TimeoutError:
            log.warning("worker.close_incomplete", nim=self.book.nim, mode=self.book.mode)
        self._do_afterwards()
        await asyncio.sleep(0)
        if self._tick is not None:
            self._tick.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _finished(self) -> None:
        """What left the line is stored, and its caller has the answer."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))
