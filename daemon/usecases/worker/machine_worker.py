"""The worker of one book: its machine while connected, its queue, its attempts and the machine's known state.

Nothing here is durable: after a crash all of it is read from the ledger and the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any, NamedTuple, TypeVar

import msgspec
import structlog

from common.language import NO_TEXT, Text, reasons
from common.language.reasons import from_stored
from daemon.core.errors import LineLost, MachineAttention, MachineBusy, MachineOffline, StorageError
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
from daemon.store.tables.book.books import read_head
from daemon.usecases.worker.attempts import Attempts, WorkerStatistics
from daemon.usecases.worker.book_clock import BookClock, BoxClock
from daemon.usecases.worker.machine_pair import MachinePair
from daemon.usecases.worker.machine_queue import MachineQueue, QueueEntry

log = structlog.get_logger(__name__)

T = TypeVar("T")

ANSWERS_FIRST = 0.002
"""Seconds by which work after an answer is delayed; the answer needs half of that."""


class Limits(NamedTuple):
    """Bounds for waiting; all but `queue` in seconds."""

    queue: int = 256
    patience: float = 25.0
    """wait for a turn at the machine"""
    doubt_patience: float = 20.0
    """wait for an outcome that became unknown while the till waited"""
    aggregation_delay: float = 2.0
    outage: float = LIMIT
    """after which a machine that cannot certify enters the register of outages"""


async def _no_register(reason: OutageReason) -> int:
    del reason
    return 0


class BookEvent(msgspec.Struct, frozen=True):
    """A change that screens show at once; `type` is a public event name."""

    type: str
    book: Book
    ref: int = 0
    detail: str = ""


class MachineReading(msgspec.Struct, frozen=True):
    """The machine's state as last read for people; `at` in loop time, `read_at` in ms since 1970."""

    state: MachineState
    link: ServerLink
    at: float
    read_at: int


@dataclass(repr=False)
class MachineWorker(MachinePair):
    book: Book
    ledger: Ledger
    journal: Journal
    events: EventLog
    clock: BoxClock
    defaults: Defaults
    limits: Limits = field(default_factory=Limits)
    configured_nim: str = ""
    """The NIM in the configuration; the book has the one that the machine sends."""
    machine_zone: tzinfo = UTC
    """Time zone of the machine's clock."""
    labels: Labels = field(default_factory=lambda: PAYMENT_LABELS)
    compose_letterhead: Callable[[tuple[str, ...]], Letterhead] | None = None
    """Makes the present letterhead from `taxpayer`."""
    on_event: Callable[[BookEvent], None] = lambda _: None
    till_waits: Callable[[], bool] = lambda: False
    """Whether a till waits for any real machine of this box: then a long read of a book pauses."""
    note_incident: Callable[[str], str] = lambda _: ""
    """Records an incident in the line's recording; returns its name, empty without a recorder."""

    register_outage: Callable[[OutageReason], Awaitable[int]] = _no_register
    """A till is refused or its sale deferred: registers the outage durably; returns its number, 0 for a sandbox."""
    defers: bool = False
    """While the machine is out of order, sales are accepted for later, even if the till did not request it."""
    refused_numbers: set[str] = field(default_factory=set)
    """Numbers of invoices that the machine refused to open since its last certification."""
    is_retired: bool = False
    """The machine is no longer configured or has another taxpayer: its book is read and closed without it."""

    spare: MachineWorker | None = None
    """The spare of this machine in the configuration."""
    first: MachineWorker | None = None
    """Of a spare: the machine that it may replace."""

    machine: ConnectedMachine | None = None
    rates: dict[str, int] = field(default_factory=dict)
    ifu: str = ""
    offline_reason: Text = reasons.NOT_YET_CONNECTED
    offline_since: int | None = None
    """When it stopped answering, in ms since 1970; None while it answers and before the first try."""
    returning: bool = False
    """It answers again, and `recover` settles unfinished attempts before any new one."""
    test_mode_allowed: bool = False
    """The configuration lets a machine in test mode certify."""
    machine_code: str = ""
    """The newest code that the machine has sent, also of a foreign invoice; empty before any."""
    ledger_code: str = ""
    """The newest code of the present activation in the ledger."""
    is_habit_logged: bool = False
    """Whether it was logged how this machine's VAT differs from ours."""
    accepted_differences: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Differences of TC and FC in C0h from the known counters, by invoice type, that were checked by C1h."""
    reading: MachineReading | None = None
    taxpayer: tuple[str, ...] = ()
    """I0…I5 of 2Bh, read once."""
    stored_taxpayer: tuple[str, ...] = ()
    """The same from the ledger, for paper while the machine has not been read yet."""
    server_link: ServerLink | None = None
    """C2h as last read, at least hourly."""
    aggregate: Aggregate | None = None
    statistics: WorkerStatistics = field(default_factory=WorkerStatistics)

    def __post_init__(self) -> None:
        self.queue = MachineQueue(self.limits.queue)
        self.queue.pause()  # until the machine is connected and unfinished attempts are settled
        self.attempts = Attempts()
        self.time = BookClock(self.clock, self.book, self.machine_zone)
        self.reading_lock, self.acts_lock = asyncio.Lock(), asyncio.Lock()
        self.closing = False
        self.former: list[MachineWorker] = []
        """Workers of the machine's former taxpayers."""
        self._tick: asyncio.TimerHandle | None = None
        self._afterwards: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        return self.machine is not None

    @property
    def names(self) -> dict[str, str]:
        """The book's names as log fields."""
        return {"nim": self.book.nim, "mode": self.book.mode}

    @property
    def counters(self) -> FiscalCounters:
        return self.attempts.counters

    @property
    def attention(self) -> Text:
        """Why an operator has to decide; empty if there is nothing to decide."""
        return from_stored(self.attempts.attention)

    @property
    def waiting(self) -> int:
        return len(self.queue)

    @property
    def unfinished(self) -> Sequence[Record]:
        """Begun attempts in the ledger."""
        return self.ledger.peek(attempts.unfinished, self.book)

    def apply_state(self, state: BookState) -> None:
        """Takes over the state from the ledger."""
        is_news = state.attention != self.attempts.attention
        self.attempts.apply(state)
        self.rates = dict(state.rates)
        self.ifu = state.ifu
        self.ledger_code = state.last_code
        self.time.apply_book(state)
        if is_news and state.attention:
            self.publish("mcf.attention", detail=state.attention)

    def apply_name(self, nim: str) -> None:
        """Takes over the NIM of the last certification, with which the ledger has begun a new epoch."""
        if nim != self.book.nim:
            log.warning("machine.activated", nim=nim, mode=self.book.mode, before=self.book.nim)
            self.book = msgspec.structs.replace(self.book, nim=nim)

    def change_book(self, book: Book) -> None:
        """The machine has another taxpayer; attempts that wait belong to the former book and are refused."""
        self.book = book
        self.attempts.forget()
        self.machine_code = self.ledger_code = ""
        self.time.change_book(book)
        self.aggregate = None
        self.taxpayer = self.stored_taxpayer = ()
        self.series_floor.clear()
        self.defaults = msgspec.structs.replace(self.defaults, letterhead=b"")

    def check_book(self, book: Book) -> None:
        """MachineOffline if the machine has got another taxpayer since `book` was read."""
        if book.id != self.book.id:
            raise MachineOffline(reasons.OTHER_TAXPAYER)

    def now(self) -> int:
        """The time for the ledger (decision 21); never before anything the book already holds."""
        with contextlib.suppress(StorageError):
            self.time.apply_time(self.ledger.peek(read_head, self.book.id).at)
        return self.time.now()

    @property
    def obstacle(self) -> Text:
        """Why nothing is certified until an operator acts; empty if there is no obstacle."""
        of_the_machine = self.attention or self.time.question() or self.refused_test_mode or self.wrong_taxpayer
        return of_the_machine or self.not_compared

    @property
    def refuses_all(self) -> bool:
        """Whether the machine refuses every invoice, as a blocked one does."""
        return len(self.refused_numbers) > 1

    @property
    def in_test_mode(self) -> bool:
        """Whether the real machine's newest code is a test code; false for a sandbox, which has no others."""
        return self.book.mode == "live" and is_test_code(self.machine_code or self.ledger_code)

    @property
    def refused_test_mode(self) -> Text:
        return reasons.TEST_MODE_REFUSED if self.in_test_mode and not self.test_mode_allowed else NO_TEXT

    def apply_code(self, code: str) -> None:
        """Takes over the code of the machine's last invoice; empty changes nothing."""
        was, self.machine_code = self.in_test_mode, code or self.machine_code
        if self.in_test_mode and not was:
            log.warning("machine.test_mode", allowed=self.test_mode_allowed, **self.names)

    # -- the machine ------------------------------------------------------------------------------------------------

    def ready(self) -> ConnectedMachine:
        """The machine; MachineAttention, PairNotCompared or MachineOffline if it may not certify now."""
        if obstacle := self.obstacle:
            raise (PairNotCompared if obstacle == self.not_compared else MachineAttention)(obstacle)
        return self.present()

    def present(self) -> ConnectedMachine:
        """The machine for reading, also in attention; MachineOffline if it is not connected."""
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
        """MachineAttention or MachineOffline if waiting for a turn is pointless. A returning machine is worth waiting
        for: a till may get the answer on its doubt, and send its next sale, before the machine is free. Not with a
        restored ledger, which takes nothing new until it was compared with the machine."""
        if self.returning and not self.obstacle and not self.attempts.is_restored:
            return
        self.ready()

    async def turn(
        self, entry: QueueEntry, deadline: float, get: Callable[[], ConnectedMachine] | None = None
    ) -> ConnectedMachine:
        """The machine, at this entry's turn and before `deadline` (loop time); else MachineAttention, MachineOffline or
        MachineBusy, and nothing was sent. `get`: `self.present` if a machine in attention will do."""
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
        if self.offline_since is None:  # further failed tries belong to the same absence
            self.offline_since = self.now()
        self.queue.pause()
        if was_connected:
            self.publish("mcf.disconnected", detail=reason)

    def drop(self, machine: ConnectedMachine, reason: Text) -> None:
        """Ends this connection: `recover` settles unfinished attempts at the next one."""
        if self.machine is machine:
            self.lost(reason)
        machine.hang_up(reason)

    # -- work that outlives its caller --------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=f"{name} {self.book.nim} {self.book.mode}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def run_to_end(
        self, work: Coroutine[Any, Any, T], name: str, ended: Callable[[asyncio.Task[T]], object] = lambda _: None
    ) -> T:
        """Awaits `work`, which continues to its end even if the caller is cancelled. `ended` is called with its task."""
        task: asyncio.Task[T] = self.spawn(work, name)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # retrieved even without a caller
        task.add_done_callback(ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # the daemon stops
                raise LineLost(reasons.STOPPED) from None
            raise
        finally:
            del task  # breaks the cycle task, error, traceback, frame, which keeps the request's body in memory

    def after_answers(self, work: Callable[[], None]) -> None:
        """Runs `work` after pending answers have been sent, at the stop at the latest."""
        if not self._afterwards:
            asyncio.get_running_loop().call_later(ANSWERS_FIRST, self._do_afterwards)
        self._afterwards.append(work)

    def _do_afterwards(self) -> None:
        works, self._afterwards = self._afterwards, []
        for work in works:
            asyncio.get_running_loop().call_soon(work)  # separately, so that one failure stops no other

    def schedule_tick(self, tick: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Runs `tick` once, `aggregation_delay` after the first call; not while the daemon stops."""
        if self._tick is None and not self.closing:
            loop = asyncio.get_running_loop()
            self._tick = loop.call_later(self.limits.aggregation_delay, self._run_tick, tick)

    def _run_tick(self, tick: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._tick = None
        self.spawn(tick(), "aggregate")

    def publish(self, kind: str, ref: int = 0, detail: str = "") -> None:
        self.on_event(BookEvent(kind, self.book, ref, detail))

    async def close(self, grace: float = 10.0) -> None:
        """Completes the attempt on the line (at most `grace` seconds), refuses those that wait, cancels all tasks."""
        self.queue.close(reasons.STOPPING)
        self.closing = True
        self.attempts.wake()
        try:
            async with asyncio.timeout(grace):
                await self.queue.drained()
                while self._tasks:  # until all outcomes are stored and answered
                    await asyncio.wait(list(self._tasks))
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
