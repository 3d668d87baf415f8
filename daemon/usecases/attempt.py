"""One attempt to certify, from its place in the line to its end in the ledger. Every crash decision of a sale is here.

    intent durable → turn → C3h … 35h → (outcome of the one before durable) → 38h → outcome durable → answer

A power cut before 38h leaves `begun` and nothing certified; after it, `begun` and the machine knows; `recover` tells which.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial

import structlog

from daemon.core.certification import NOT_SENT, Attempt, Certified, Counters, Record
from daemon.core.errors import (
    LineLost,
    MachineNonsense,
    MachineRefused,
    McfdError,
    NothingDone,
    OutcomeNotStored,
    StorageError,
)
from daemon.core.invoice import Invoice
from daemon.usecases import credit, entering, recover
from daemon.usecases.announce import announce
from daemon.usecases.call import Call
from daemon.usecases.desk import Desk
from daemon.usecases.once import outcome_of
from daemon.usecases.ports import FiscalMachine
from daemon.usecases.turns import Ticket

log = structlog.get_logger(__name__)

STORE_RETRY = 1.0
STORE_PATIENCE = 10.0
"""Seconds: how often an end is tried to be stored again, and how long a till waits for that of its certification."""


@dataclass
class Job:
    """One attempt under way. `arrived` and `line_started` are loop times in seconds."""

    desk: Desk
    invoice: Invoice
    call: Call
    arrived: float
    deadline: float
    id: int = 0
    line_started: float = 0.0
    line_ended: float = 0.0

    @property
    def line_ms(self) -> int:
        return round((self.line_ended - self.line_started) * 1000)


async def attempt(job: Job, ticket: Ticket) -> Record:
    """The certified record, or the error that says what became of it."""
    with ticket:
        await ticket.wait_near(job.deadline)
        await _intend(job)
        try:
            machine = await _await_turn(job, ticket)
            outcome = await _on_the_line(job, machine)
        except McfdError:
            raise  # and its end is written down
        except Exception:
            _give_up(job)
            raise
        if outcome is not None:
            # The machine is free for the next one while this outcome is being stored (`Desk.outcome_durable`).
            job.desk.begin_storing(job.id)
    if outcome is None:
        return await _settled(job)
    return await _stored(job, *outcome)


async def _intend(job: Job) -> None:
    desk = job.desk
    job.id = await desk.ledger.begin(
        desk.book,
        Attempt(
            invoice=job.invoice,
            base=desk.known,
            begun_at=desk.now(),
            request_id=job.call.request_id,
            key_hash=job.call.key_hash,
            fingerprint=job.call.fingerprint,
        ),
    )
    desk.held.add(job.id)


async def _await_turn(job: Job, ticket: Ticket) -> FiscalMachine:
    try:
        await ticket.wait_turn(job.deadline)
        machine = await job.desk.wait_ready(job.deadline)
        job.invoice = await credit.check(job.desk, job.invoice)
    except McfdError:
        await _end(job, "abandoned", NOT_SENT)
        raise
    return machine


async def _on_the_line(job: Job, machine: FiscalMachine) -> tuple[Invoice, Certified] | None:
    """What was certified, or None when only the machine can tell; raises when it is known that nothing was."""
    desk = job.desk
    clock = asyncio.get_running_loop().time
    job.line_started = clock()
    try:
        agreed = await entering.enter(desk, machine, job.id, job.invoice)
    except MachineRefused as error:
        await _end(job, "refused", error.text)
        raise
    except MachineNonsense as error:
        await _end(job, "refused", str(error))
        raise
    except LineLost as error:
        desk.drop(machine, str(error))  # at once: the next in the line waits for the machine's return
        await _end(job, "abandoned", str(error))
        raise NothingDone(error, "nothing was certified, and the invoice may be sent again") from error
    except StorageError as error:
        await _end(job, "abandoned", str(error))
        raise
    try:
        certified = await entering.close(machine, agreed, desk.known)
    except entering.OutcomeUnknown as unknown:
        await _doubt(job, machine, unknown)
        return None
    job.line_ended = clock()
    return agreed, certified


async def _doubt(job: Job, machine: FiscalMachine, unknown: entering.OutcomeUnknown) -> None:
    """Nothing else is sent on this machine until it has told what became of the attempt."""
    desk = job.desk
    log.warning(
        "certification.unknown",
        nim=desk.book.nim,
        mode=desk.book.mode,
        invoice_number=job.invoice.number,
        cause=str(unknown.cause),
    )
    desk.held.discard(job.id)
    if isinstance(unknown.cause, LineLost):
        desk.drop(machine, str(unknown.cause))
        return
    refusal = unknown.cause.text if isinstance(unknown.cause, MachineRefused) else ""
    await recover.settle_in_place(desk, machine, job.id, refusal)


async def _settled(job: Job) -> Record:
    record = await outcome_of(job.desk, job.id)
    if record.state == "certified":
        return record
    if record.state == "refused":
        raise MachineRefused(record.reason)
    raise NothingDone(LineLost(record.reason), "nothing was certified, and the invoice may be sent again")


async def _stored(job: Job, invoice: Invoice, certified: Certified) -> Record:
    """The outcome once it is durable; OutcomeNotStored when the till has waited long enough, while it is tried on and on."""
    desk = job.desk
    unexplained = _unexplained(desk.known, certified.counters, invoice)
    desk.known = certified.counters
    try:
        async with asyncio.timeout(STORE_PATIENCE):
            return await _store(job, invoice, certified, unexplained)
    except TimeoutError:
        # Should it have been at the writer: what is told twice is written once.
        desk.spawn(_store(job, invoice, certified, unexplained), "store outcome")
        raise OutcomeNotStored from None


async def _store(job: Job, invoice: Invoice, certified: Certified, unexplained: int) -> Record:
    """The outcome, tried until it is durable: the machine has certified, so there is no other way to end."""
    desk = job.desk
    while True:
        elapsed = asyncio.get_running_loop().time() - job.arrived
        try:
            record = await desk.ledger.certify(
                desk.book,
                job.id,
                certified,
                invoice=invoice,
                total_ttc=invoice.total_ttc,
                at=desk.now(),
                line_ms=job.line_ms,
                duration_ms=round(elapsed * 1000),
                unexplained=unexplained,
            )
            break
        except StorageError as error:
            log.error("certification.not_stored", nim=desk.book.nim, cause=str(error))  # noqa: TRY400  no trace needed
            await asyncio.sleep(STORE_RETRY)
        except Exception:
            _give_up(job)
            raise
    desk.settled(job.id)
    desk.after_answers(partial(announce, desk, record))
    return record


async def _end(job: Job, state: recover.NotCertifiedState, reason: str) -> None:
    """Known not certified. While even that cannot be stored, nothing is certified after it: `recover` takes the oldest
    attempt that is begun for the one that was on the line."""
    desk = job.desk
    try:
        await _write_end(job, state, reason)
    except StorageError:
        log.warning("attempt.end_not_stored", nim=desk.book.nim, invoice_number=job.invoice.number)
        desk.begin_storing(job.id)
        desk.spawn(_end_later(job, state, reason), "end attempt")


async def _end_later(job: Job, state: recover.NotCertifiedState, reason: str) -> None:
    while True:
        await asyncio.sleep(STORE_RETRY)
        with contextlib.suppress(StorageError):
            return await _write_end(job, state, reason)


async def _write_end(job: Job, state: recover.NotCertifiedState, reason: str) -> None:
    desk = job.desk
    record = await desk.ledger.end(desk.book, job.id, state, reason, at=desk.now())
    desk.settled(job.id)
    announce(desk, record)


def _give_up(job: Job) -> None:
    """A mistake of ours: the attempt has no end and the machine may hold half an invoice. `recover` sees to both."""
    log.error("attempt.failed", nim=job.desk.book.nim, invoice_number=job.invoice.number)
    if job.desk.machine is not None:
        job.desk.drop(job.desk.machine, "mcfd failed in the middle of an invoice")
    job.desk.settled(job.id)


def _unexplained(known: Counters, now: Counters, invoice: Invoice) -> int:
    """How many invoices besides this one the machine has certified since we last looked."""
    moved = (now.fvc - known.fvc) + (now.frc - known.frc) - 1
    if moved:
        log.warning("machine.unexplained", invoices=moved, invoice_number=invoice.number)
    return max(moved, 0)
