"""Builds workers, lines and ledger for every configured machine, and takes them down at the end."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version

import msgspec
import structlog

from bridge.commands import USUAL, MachineHabits
from bridge.link import LineStatistics, Timers
from bridge.port_network import open_line
from bridge.recording.recording import Recorder
from common.language import Text
from common.language.reasons import NOT_CONFIGURED, SWITCHED_OFF
from common.wire.instants import now_millis
from daemon.app.control import control_path
from daemon.app.sandbox import SandboxMachine, SandboxTime, TillsFirst, sandbox_ledger, sandbox_limits
from daemon.app.upkeep.housekeeping import ClockWatch
from daemon.company import letterhead_of
from daemon.core.clock import zone
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.core.machine.state import same_machine, short_nim
from daemon.machines.adapter import as_stored
from daemon.machines.line import LineSettings, run_line
from daemon.recording.writer import RecordingPlace, Recordings
from daemon.settings import Machine, Settings
from daemon.store.ledger import Ledger
from daemon.store.sqlite.disk_failure import disk_trouble, read_failures
from daemon.store.sqlite.free_space import BYTES_PER_MB, PAGES_PER_MB
from daemon.store.store import Store
from daemon.store.tables.book import take_overs
from daemon.store.tables.book.books import all_books, former_books, open_book
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from daemon.usecases.delivery.events import EventBus
from daemon.usecases.line_events import LineEvents
from daemon.usecases.outages import OutageWatch
from daemon.usecases.reports.inspect import load_letterhead
from daemon.usecases.worker.aggregate import tick
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import BookEvent, Limits, MachineWorker
from daemon.usecases.worker.machine_workers import begin, without_machine

log = structlog.get_logger(__name__)

NO_PAIR = str(Text("the configuration does not have it as its spare any more"))


class TaxpayerMismatch(Exception):
    """A spare and its machine have different taxpayers; the start is refused."""

    def __init__(self, spare: str, spare_ifu: str, first: str, first_ifu: str) -> None:
        super().__init__(
            Text(
                "{spare} cannot be the spare of {first}: its taxpayer is {spare_ifu}, that of {first} is {first_ifu}",
                spare=spare,
                first=first,
                spare_ifu=spare_ifu,
                first_ifu=first_ifu,
            )
        )


@dataclass
class Runtime:
    """The running workers with their lines and listeners. `listeners` are called at once, those of the event_bus after
    the event is in the ledger."""

    settings: Settings
    store: Store
    workers: list[MachineWorker] = field(default_factory=list)
    retired: list[MachineWorker] = field(default_factory=list)
    """Books of machines that are no longer in the configuration."""
    lines: list[asyncio.Task[None]] = field(default_factory=list)
    sandboxes: dict[int, SandboxMachine] = field(default_factory=dict)
    """By book id."""
    listeners: list[Callable[[BookEvent], None]] = field(default_factory=list)

    counters: dict[int, LineStatistics] = field(default_factory=dict)
    """Statistics of each line, by book id."""
    boot: str = field(default_factory=partial(secrets.token_hex, 4))
    """Identifies this run of the daemon; new at each start."""

    def __post_init__(self) -> None:
        self._disk_failures = read_failures(self.settings.storage.path)
        self.event_bus = EventBus(self.store.events, now_millis)
        self.recordings = Recordings()
        self.tills_first = TillsFirst(self.workers)
        self.clock_watch = ClockWatch()
        self.listeners.append(self.event_bus.on_event)

    @property
    def all_workers(self) -> tuple[MachineWorker, ...]:
        return (*self.workers, *self.retired)

    def disk_trouble(self) -> str:
        """The failures were read at the start: a new one ends the process."""
        return disk_trouble(self._disk_failures, now_millis())

    def publish(self, event: BookEvent) -> None:
        for listener in self.listeners:
            listener(event)


@asynccontextmanager
async def build(settings: Settings) -> AsyncIterator[Runtime]:
    async with AsyncExitStack() as stack:
        store = await Store.open(
            settings.storage.path,
            timezone=zone(settings.reports.timezone),
            labels=settings.payment_labels(),
            reserve_bytes=settings.storage.reserve_mb * BYTES_PER_MB,
            max_pages=None if settings.storage.max_size_mb is None else settings.storage.max_size_mb * PAGES_PER_MB,
            destinations=settings.destinations(),
            live_only=settings.live_only(),
            control=control_path(settings),
        )
        stack.push_async_callback(store.close)
        runtime = Runtime(settings, store)
        if trouble := runtime.disk_trouble():
            log.error("disk.failing", cause=trouble)
        await stack.enter_async_context(runtime.event_bus.running())
        stack.push_async_callback(runtime.recordings.close)
        stack.push_async_callback(_stop, runtime)
        await runtime.clock_watch.check()
        runtime.lines.append(asyncio.get_running_loop().create_task(runtime.clock_watch.run(), name="clock"))
        firsts = ((settings.first_of(machine), machine) for machine in settings.machine)
        pairs = [(first.nim, spare.nim) for first, spare in firsts if first]
        await store.ledger.open_pairs(pairs, [machine.nim for machine in settings.machine])
        for machine in sorted(
            settings.machine, key=lambda machine: bool(machine.spare_for)
        ):  # a spare after its machine
            await _open_workers(runtime, machine)
        await _open_retired(runtime)
        await end_without_pair(store, runtime.all_workers)
        yield runtime


async def _stop(runtime: Runtime) -> None:
    for task in runtime.lines:
        task.cancel()
    await asyncio.gather(*runtime.lines, return_exceptions=True)
    await asyncio.gather(*(worker.close(0) for worker in runtime.all_workers))


async def _open_workers(runtime: Runtime, machine: Machine) -> None:
    ledger, clock = runtime.store.ledger, BoxClock(now_millis, lambda: runtime.clock_watch.synchronised)
    live = await _worker(runtime, machine, await ledger.write(open_book, machine.nim, "live"), ledger, clock)
    if machine.enabled:
        await _watch_for_outages(runtime, live)
        port = partial(open_line, machine.port, machine.baudrate)
        recorder = _recorder(runtime, machine, live)
        _start_line(
            runtime,
            live,
            LineSettings(machine.nim, port, _timers(machine), _habits(machine), recorder=recorder),
            LineEvents(live),
        )
    else:
        live.offline_reason = SWITCHED_OFF
    if runtime.settings.sandbox.enabled:
        await _open_sandbox(runtime, machine, live.ifu)


async def _open_sandbox(runtime: Runtime, machine: Machine, ifu: str) -> None:
    store, tills_first = runtime.store, runtime.tills_first
    ledger = sandbox_ledger(store, tills_first)
    book = await ledger.write(open_book, machine.nim, "test")
    time = SandboxTime(ledger, book)
    worker = await _worker(runtime, machine, book, ledger, time.box)
    sandbox = await SandboxMachine.open(store, worker, time, ifu, tills_first)
    runtime.sandboxes[worker.book.id] = sandbox
    _start_line(runtime, worker, sandbox.line(machine.nim), sandbox.listener)


async def _worker(runtime: Runtime, machine: Machine, book: Book, ledger: Ledger, clock: BoxClock) -> MachineWorker:
    limits = Limits(
        queue=machine.queue_limit,
        patience=machine.queue_patience,
        aggregation_delay=runtime.settings.reports.aggregation_delay,
        outage=machine.outage_after,
    )
    worker = MachineWorker(
        book=book,
        ledger=ledger,
        journal=runtime.store.journal,
        events=runtime.store.events,
        clock=clock,
        defaults=_defaults(machine, book.mode, runtime.settings),
        limits=limits if book.mode == "live" else sandbox_limits(limits),
        configured_nim=machine.nim,
        test_mode_allowed=machine.test_mode,
        defers=(runtime.settings.first_of(machine) or machine).when_out_of_order == "defer",
        machine_zone=zone(machine.timezone),
        labels=runtime.settings.payment_labels(),
        compose_letterhead=partial(letterhead_of, runtime.settings),
        on_event=runtime.publish,
        till_waits=runtime.tills_first.till_waits,
    )
    await begin(worker)
    _pair(runtime, machine, worker)
    await load_letterhead(worker)
    await tick(worker)  # attempts that ended before a kill enter the totals without waiting for the machine
    runtime.workers.append(worker)
    waiting = SalesThatWait(worker).run()
    runtime.lines.append(asyncio.get_running_loop().create_task(waiting, name=f"waiting {book.nim} {book.mode}"))
    return worker


async def _watch_for_outages(runtime: Runtime, worker: MachineWorker) -> None:
    """Before its line is opened: outages before this start come first in the register."""
    watch = OutageWatch(worker)
    await watch.begin()
    runtime.lines.append(asyncio.get_running_loop().create_task(watch.run(), name=f"outages {worker.book.nim}"))


async def _open_retired(runtime: Runtime) -> None:
    """Books outlive machines: their keys can read them, and a key with that right can close the open period."""
    store, settings = runtime.store, runtime.settings
    books = [book for book in await store.journal.read(all_books) if book.mode == "live"]
    for nim in sorted({short_nim(book.nim) for book in books if settings.find_machine(book.nim) is None}):
        book = await store.ledger.write(open_book, nim, "live")
        worker = without_machine(runtime.workers[0], book, NOT_CONFIGURED)
        await begin(worker)
        await load_letterhead(worker)
        await tick(worker)
        runtime.retired.append(worker)


def _pair(runtime: Runtime, machine: Machine, worker: MachineWorker) -> None:
    """Links a spare to its machine before its line is opened: it never certifies unlinked. Raises TaxpayerMismatch,
    unless they had the same taxpayer once: a machine that has changed hands keeps no other from selling."""
    first = runtime.settings.first_of(machine)
    if first is None or worker.book.mode == "test":
        return
    live = (each for each in runtime.workers if each.book.mode == "live")
    replaced = next(each for each in live if each.configured_nim == first.nim)
    worker.join(replaced)
    if worker.wrong_taxpayer:
        books = (replaced.book, *worker.ledger.peek(former_books, replaced.book))
        shared = [other for book in books for other in worker.ledger.peek(take_overs.sharing, book)]
        if not any(same_machine(other.nim, machine.nim) for other in shared):
            raise TaxpayerMismatch(machine.nim, worker.ifu, first.nim, replaced.ifu)


async def end_without_pair(store: Store, workers: Sequence[MachineWorker]) -> None:
    """Ends each take-over whose machines are no longer a pair in the configuration."""
    pairs = {(worker.book.id, worker.spare.book.id) for worker in workers if worker.spare}
    for each in await store.decisions.read(take_overs.all_lasting):
        if (each.first.id, each.spare.id) not in pairs:
            log.warning("machine.taken_back", nim=each.first.nim, spare=each.spare.nim, cause="configuration")
            ids = (each.first.id, each.spare.id)
            now = next((worker.now() for worker in workers if worker.book.id in ids), now_millis())
            await store.decisions.take_back(each.first, reason=NO_PAIR, at=now)


def _recorder(runtime: Runtime, machine: Machine, worker: MachineWorker) -> Recorder | None:
    """Twice the ledger's reserve stays free on the disk: recording stops long before sales do."""
    if not machine.recording_mb:
        return None
    storage = runtime.settings.storage
    place = RecordingPlace(
        runtime.settings.recordings_of(machine.nim),
        machine.recording_mb * BYTES_PER_MB,
        2 * storage.reserve_mb * BYTES_PER_MB,
        {"nim": machine.nim, "port": str(machine.port), "baudrate": str(machine.baudrate), "mcfd": version("mcfd")},
    )
    recorder = runtime.recordings.open(place)
    worker.note_incident = recorder.note_incident
    return recorder


def _defaults(machine: Machine, mode: Mode, settings: Settings) -> Defaults:
    folds = mode == "live" and machine.habits.specific_tax_ht == "folded"
    first = settings.first_of(machine) or machine  # the machine whose tills it serves
    # UTF-8 has every character of Windows' code page: a number in it fits both machines of a pair.
    code_page = min(each.habits.code_page for each in (first, settings.spare_of(first)) if each)
    return Defaults(
        first.operator_id,
        first.operator_name,
        first.isf,
        fold_in_ht=folds,
        code_page=code_page,
        line_cents=mode == "live" and machine.habits.line_decimals > 0,
        rules=settings.rules,
        series=settings.series,
        numbers=settings.number_scope,
        as_stored=partial(as_stored, habits=_habits(machine) if mode == "live" else USUAL),
    )


def _habits(machine: Machine) -> MachineHabits:
    wants = machine.habits
    return MachineHabits(wants.code_page, wants.name_bytes, wants.walk_in, wants.close_total)


def _timers(machine: Machine) -> Timers:
    """Timers as configured; the limit of a whole exchange leaves time for all its tries."""
    usual = Timers()
    tries = machine.tries + 1
    return msgspec.structs.replace(
        usual,
        tries=machine.tries,
        first_byte=machine.reply_timeout,
        first_byte_close=machine.certify_timeout,
        first_byte_credit=machine.credit_timeout,
        byte_gap=machine.habits.reply_gap,
        pending_credit=machine.credit_timeout,
        overall=max(usual.overall, tries * machine.reply_timeout, tries * machine.certify_timeout),
        overall_credit=machine.credit_timeout + usual.overall,
    )


def _start_line(runtime: Runtime, worker: MachineWorker, line_settings: LineSettings, listener: LineEvents) -> None:
    runtime.counters[worker.book.id] = line_settings.counters
    line = run_line(line_settings, listener)
    name = f"line {worker.book.nim} {worker.book.mode}"
    runtime.lines.append(asyncio.get_running_loop().create_task(line, name=name))
