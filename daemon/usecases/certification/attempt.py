"""One attempt to certify, from its place in the queue to its end in the ledger. Every crash decision of a sale is here.

    intent ┬─ turn → C3h … 35h ─┬─ (intent durable, outcome of the one before durable) → 38h → outcome durable → answer
           └─ its commit ───────┘

A power cut before 38h leaves `begun` or nothing, and nothing certified. After 38h it leaves `begun`, and only the
machine knows the outcome: `recover` reads it. `Attempts` owns the phase of each attempt; this module reports each step
to it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import msgspec
import structlog

from common.language import Text, sentence
from common.language.reasons import CANCELLED_BECAUSE, INVOICE_INTERRUPTED, NOT_SENT_BECAUSE
from daemon.core.audit import Call
from daemon.core.errors import (
    CertifiedElsewhere,
    LineLost,
    MachineNonsense,
    MachineRefused,
    McfdError,
    NothingDone,
    OutcomeNotStored,
    StorageError,
)
from daemon.core.events import IN_DOUBT
from daemon.core.invoice.invoice import Invoice
from daemon.core.ledger.attempt import Attempt, Outcome, Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.failure import MAY_BE_SENT_AGAIN, failure_of, reason_of
from daemon.core.ledger.phases import Phase, Step
from daemon.core.ledger.verdict import foreign_count, is_last
from daemon.core.machine.state import Certified, FiscalCounters
from daemon.machines.adapter import ConnectedMachine
from daemon.store.tables.book import attempts
from daemon.usecases.certification import enter_invoice, numbers, recover
from daemon.usecases.certification.idempotency import outcome_of
from daemon.usecases.worker.aggregate import announce
from daemon.usecases.worker.attempts import LiveAttempt
from daemon.usecases.worker.machine_queue import QueueEntry
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

T = TypeVar("T")

STORE_RETRY = 1.0
STORE_PATIENCE = 10.0
"""Seconds between two tries to store an end, and how long a till waits until its certification is stored."""


@dataclass
class AttemptRun:
    """One attempt under way. `arrived` and `line_started` are loop times in seconds."""

    worker: MachineWorker
    invoice: Invoice
    call: Call
    live: LiveAttempt
    arrived: float
    deadline: float
    deferred_id: int
    original: str = ""
    line_started: float = 0.0
    line_ended: float = 0.0
    book: Book = field(init=False)
    intent: asyncio.Future[None] = field(init=False)
    """Done when the intent is durable, or with the error why it is not."""
    is_begun: bool = False

    def __post_init__(self) -> None:
        self.book = self.worker.book
        self.intent = asyncio.get_running_loop().create_future()
        self.step: Callable[[Step], None] = partial(self.worker.attempts.step, self.live)

    @property
    def id(self) -> int:
        return self.live.id

    def begin(self) -> None:
        """Submits the intent to the writer shortly before the turn; only 38h waits for it (decision 29). The queue
        calls this in its order, so that after a crash the oldest begun attempt is the one on the line
        (`verdict.verdicts`)."""
        self.is_begun = True
        self.worker.ledger.submit(attempts.begin, self.book, _intent(self)).add_done_callback(self._begun)

    def _begun(self, submitted: asyncio.Future[int]) -> None:
        if self.intent.cancelled():
            return  # the daemon stops
        if error := submitted.exception():
            self.step(Step.NOT_WRITTEN)
            self.intent.set_exception(error)
            self.intent.exception()  # marks it as retrieved: the attempt reads it at its turn
        else:
            self.live.id = submitted.result()
            self.step(Step.WRITTEN)
            self.intent.set_result(None)


async def attempt(job: AttemptRun, entry: QueueEntry) -> Record:
    """The certified record; otherwise raises the error with the outcome."""
    with entry:
        try:
            try:
                machine = await job.worker.turn(entry, job.deadline)
                _check_intent(job)
                if job.invoice.is_credit:
                    await job.intent
                    job.invoice = await numbers.claim(job.worker, job.id, job.invoice, job.original)
            except McfdError as error:
                await _end(job, "abandoned", reason_of(error, NOT_SENT_BECAUSE))
                raise
            outcome = await _on_the_line(job, machine)
        except McfdError:
            raise  # its end is stored
        except Exception:
            _drop_machine(job)
            raise
    if outcome is None:
        return await _settled(job)
    try:  # the machine is free for the next one while this outcome is being stored
        async with asyncio.timeout(STORE_PATIENCE):
            return await _store(job, *outcome)
    except TimeoutError:
        # The first write may still be at the writer; the second one then changes nothing.
        job.worker.spawn(_store(job, *outcome), "store outcome")
        raise OutcomeNotStored from None


def _intent(job: AttemptRun) -> Attempt:
    """The attempt to store; sets the year in which the invoice's number is reserved."""
    worker = job.worker
    begun_at = worker.time.now()  # the ledger keeps the order of times itself
    sold_at = job.invoice.deferred.sold_at if job.invoice.deferred else begun_at
    job.invoice = msgspec.structs.replace(job.invoice, number_year=worker.defaults.numbers.year_of(sold_at))
    return Attempt(
        invoice=job.invoice,
        base=worker.counters,
        begun_at=begun_at,
        request_id=job.call.request_id,
        key_hash=job.call.key_hash,
        fingerprint=job.call.fingerprint,
        deferred_id=job.deferred_id,
    )


def _check_intent(job: AttemptRun) -> None:
    """Raises if the attempt cannot go to the machine: it expired, or its intent was refused."""
    enter_invoice.check_expiry(job.call.expires)
    job.worker.check_book(job.book)
    job.worker.check_in_use()
    if job.intent.done():
        job.intent.result()  # its number or its key is taken, or the disk is full


async def _on_the_line(job: AttemptRun, machine: ConnectedMachine) -> tuple[Invoice, Certified, int] | None:
    """The certified invoice, the machine's reply and the number of foreign invoices before it. None when the outcome is
    in doubt; raises when nothing was certified."""
    worker = job.worker
    clock = asyncio.get_running_loop().time
    job.line_started = clock()
    try:
        agreed = await enter_invoice.enter(worker, machine, job.live, job.invoice, job.intent, expires=job.call.expires)
    except MachineRefused as error:
        if found := await _certified_before(job, machine):
            return found
        if not error.is_open:
            worker.refused_numbers.add(job.invoice.number)
        await _end(job, "refused", error.text)
        raise
    except MachineNonsense as error:
        await _end(job, "refused", sentence(error))
        raise
    except LineLost as error:
        worker.drop(machine, sentence(error))  # at once: the next attempt waits for a new connection
        await _end(job, "abandoned", sentence(error))
        raise NothingDone(error, MAY_BE_SENT_AGAIN) from error
    except McfdError as error:
        await _end(job, "abandoned", reason_of(error, CANCELLED_BECAUSE))
        raise
    job.step(Step.CLOSING)
    try:
        with enter_invoice.watching(worker, agreed.number, is_credit=agreed.is_credit):
            certified = await enter_invoice.close(worker, machine, agreed)
    except enter_invoice.OutcomeUnknown as unknown:
        await _doubt(job, machine, unknown)
        return None
    job.line_ended = clock()
    unexplained = _unexplained(worker.counters, certified.counters, agreed)
    worker.attempts.counters = certified.counters
    worker.apply_code(certified.code)
    worker.refused_numbers.clear()
    job.step(Step.ANSWERED)
    return agreed, certified, unexplained


async def _certified_before(job: AttemptRun, machine: ConnectedMachine) -> tuple[Invoice, Certified, int] | None:
    """What the machine certified of this number when an earlier attempt of ours was at it and was taken for failed: a
    machine refuses the number of its last invoice, and that refusal says that it has it (protocol 5.3). A code that the
    ledger has is another invoice's."""
    worker, invoice = job.worker, job.invoice
    try:
        state = await machine.state()
        await job.intent
    except McfdError:
        return None  # the refusal stands
    last = state.last
    if last is None or not is_last(invoice, state):
        return None
    ledger, book = worker.ledger, worker.book
    if ledger.peek(attempts.has_code, book, last.code) or not ledger.peek(attempts.was_at_the_machine, book, invoice):
        return None
    log.warning("certification.found", nim=worker.book.nim, mode=worker.book.mode, invoice_number=invoice.number)
    moved = foreign_count(invoice, worker.counters, state.counters)
    worker.attempts.counters = state.counters
    job.line_ended = asyncio.get_running_loop().time()
    job.step(Step.FOUND)
    return invoice, Certified(last.code, last.time, state.ifu, state.counters), moved


async def _doubt(job: AttemptRun, machine: ConnectedMachine, unknown: enter_invoice.OutcomeUnknown) -> None:
    """Settles an attempt in doubt at once, or drops the machine so that `recover` settles it before anything else."""
    worker = job.worker
    log.warning(
        "certification.unknown",
        **worker.names,
        invoice_number=job.invoice.number,
        cause=str(unknown.cause),
        incident=worker.note_incident("doubt") or None,
    )
    job.step(Step.UNKNOWN)
    worker.publish(IN_DOUBT, ref=job.id, detail=sentence(unknown.cause))
    if isinstance(unknown.cause, CertifiedElsewhere):
        # durable first: this machine would later say that it certified nothing
        await _until_stored(job, partial(recover.store_dispute, worker, job.id, unknown.cause))
    if isinstance(unknown.cause, LineLost):
        worker.drop(machine, sentence(unknown.cause))
        return
    refusal = unknown.cause.text if isinstance(unknown.cause, MachineRefused) else ""
    await recover.determine_in_place(worker, machine, job.id, refusal)


async def _until_stored(job: AttemptRun, store: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await store()
        except StorageError as error:
            await _try_again(job, error)


async def _try_again(job: AttemptRun, error: StorageError) -> None:
    names = {"nim": job.worker.book.nim, "invoice_number": job.invoice.number}
    log.error("certification.not_stored", **names, cause=str(error))
    await asyncio.sleep(STORE_RETRY)


async def _settled(job: AttemptRun) -> Record:
    record = await outcome_of(job.worker, job.id)
    if record.state == "certified":
        return record
    raise failure_of(record)


async def _store(job: AttemptRun, invoice: Invoice, certified: Certified, unexplained: int) -> Record:
    """Stores the outcome and retries until it is durable: the machine has certified, so no other end is possible."""
    worker = job.worker
    while True:
        elapsed = asyncio.get_running_loop().time() - job.arrived
        try:
            outcome = Outcome(
                certified,
                invoice,
                invoice.total_ttc,
                worker.time.now(),
                line_ms=round((job.line_ended - job.line_started) * 1000),
                duration_ms=round(elapsed * 1000),
                unexplained=unexplained,
            )
            record = await worker.ledger.write(worker.ledger.certify, worker.book, job.id, outcome)
            break
        except StorageError as error:
            await _try_again(job, error)
        except Exception:
            _drop_machine(job)
            raise
    job.step(Step.STORED)
    worker.apply_name(record.nim)
    worker.after_answers(partial(announce, worker, record))
    return record


async def _end(job: AttemptRun, state: recover.NotCertifiedState, reason: Text) -> None:
    """Ends an attempt that was not certified. Until this is stored nothing is certified after it, since `recover` takes
    the oldest begun attempt for the one on the line."""
    if not job.is_begun:
        job.step(Step.NOT_WRITTEN)
        return
    with contextlib.suppress(McfdError):
        await job.intent
    if job.live.phase is Phase.ENDED:
        return  # the ledger knows nothing of it
    job.step(Step.FAILED)
    write = partial(_write_end, job, state, reason)
    try:
        await write()
    except StorageError:  # the till does not wait for it
        job.worker.spawn(_until_stored(job, write), "end attempt")


async def _write_end(job: AttemptRun, state: recover.NotCertifiedState, reason: Text) -> None:
    worker = job.worker
    record = await worker.ledger.write(worker.ledger.end, job.book, job.id, state, reason, at=worker.now())
    job.step(Step.STORED)
    announce(worker, record)


def _drop_machine(job: AttemptRun) -> None:
    """After a bug of ours: the attempt has no end and the machine may have an open invoice. `recover` settles both."""
    worker = job.worker
    log.error("attempt.failed", nim=worker.book.nim, invoice_number=job.invoice.number)
    if worker.machine is not None:
        worker.drop(worker.machine, INVOICE_INTERRUPTED)
    if job.live.phase is not Phase.ENDED:
        job.step(Step.UNKNOWN)


def _unexplained(before: FiscalCounters, now: FiscalCounters, invoice: Invoice) -> int:
    """How many foreign invoices the machine has certified since its counters were last known."""
    moved = foreign_count(invoice, before, now)
    if moved:
        log.warning("machine.unexplained", invoices=moved, invoice_number=invoice.number)
    return moved
