"""After a crash or a lost line: what became of unfinished attempts is asked of the machine, before anything else uses it.

Which attempt can it be? 38h of an invoice is never sent before the outcome of the one before it is durable
(`Attempts.way_is_free`), so of all attempts that are begun in the ledger at most one was certified: the one whose number the
machine remembers as its last. When the machine's counters moved and it remembers another number, the oldest of them was the one on the line.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import structlog

from daemon.core.errors import MachineError, StorageError
from daemon.core.invoice.invoice import Invoice, Warn
from daemon.core.ledger.attempt import NOT_SENT, Outcome, Record
from daemon.core.ledger.book import BookState
from daemon.core.ledger.verdict import (
    Disputed,
    NotCertified,
    Verdict,
    activated_since,
    behind,
    judge,
    vanished,
    went_down,
)
from daemon.core.machine.nim import present_nim
from daemon.core.machine.state import Certified, FiscalCounters, MachineState
from daemon.language import Text
from daemon.usecases.certification.announce import announce
from daemon.usecases.ports import FiscalMachine
from daemon.usecases.worker.aggregate import tick
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

ACTIVATED = Text("the machine was activated anew")

NotCertifiedState = Literal["refused", "abandoned"]


async def recover(worker: MachineWorker, machine: FiscalMachine, state: MachineState) -> None:
    """Settles what is unfinished, clears a half-open invoice, and takes over the machine's counters. `state` is a fresh C1h.

    Called at the head of the machine's queue: nobody else is at the machine, and no 38h is on its way. Afterwards the worker is either fit
    for work or in attention. StorageError or MachineError when it did not come to an end: then it is begun again, from the start, at the
    next connection."""
    await worker.attempts.all_durable()  # what this process is still storing is no stranger's work
    worker.take_state(await worker.ledger.state(worker.book))
    await _take_taxpayer(worker, state)
    worker.time.take_machine(state.time)
    if worker.attention and not worker.attempts.met_machine:
        log.warning("machine.attention", nim=worker.book.nim, mode=worker.book.mode, found=worker.attention)
    unfinished = [
        record for record in await worker.ledger.unfinished(worker.book) if not worker.attempts.is_ours(record)
    ]
    await machine.cancel()
    if unfinished:
        # Once more: a machine that was still at it until the cancellation cannot be any longer.
        state = await machine.state()
    if not worker.attention:
        await _ask_about_activation(worker, state)
    if not worker.attention:
        for record, verdict in _verdicts(unfinished, worker.known, state, activated=_activated(worker, state)):
            await _write(worker, record, verdict)
    if not worker.attention:
        await _take_activation(worker, state)
    if not worker.attention:
        await _take_over(worker, state)
    await _keep_evidence(worker, state)
    worker.take_code(state.last.code if state.last else "")
    worker.attempts.met_machine = worker.attempts.met_machine or not worker.attention
    if worker.attention:
        worker.attempts.wake()
    await tick(worker)


def is_activated(worker: MachineWorker, state: MachineState) -> bool:
    """Whether the machine has another activation counter than the book knows, or another taxpayer."""
    return bool(_activated(worker, state)) or _has_another_taxpayer(worker, state)


def _has_another_taxpayer(worker: MachineWorker, state: MachineState) -> bool:
    """The sandbox has whatever taxpayer it is given; a machine that is not activated tells none."""
    return worker.book.mode == "live" and bool(state.ifu and worker.ifu) and state.ifu != worker.ifu


def _activated(worker: MachineWorker, state: MachineState) -> str:
    """The machine's name of now where the book knows it by another one; else empty."""
    nim = present_nim(state.nim, worker.configured_nim, worker.book.nim)
    return nim if nim != worker.book.nim else ""


async def determine_in_place(worker: MachineWorker, machine: FiscalMachine, attempt_id: int, refusal: str) -> None:
    """The same for one attempt while the line is alive: 38h was answered, but not with a believable yes. `refusal` is the
    machine's own text, which counts once the machine has confirmed that it did not certify; one that has lost the invoice
    has nothing against it.

    Whatever hinders that ends the connection: nobody may have this machine before the next `recover`."""
    try:
        await _settle(worker, machine, attempt_id, refusal)
    except (MachineError, StorageError) as error:
        log.warning("recover.put_off", nim=worker.book.nim, cause=str(error))
        worker.drop(machine, Text("the outcome of an invoice could not be settled: {error}", error=error))


async def _settle(worker: MachineWorker, machine: FiscalMachine, attempt_id: int, refusal: str) -> None:
    was_open = await machine.cancel()
    state = await machine.state()
    if is_activated(worker, state):
        worker.drop(machine, ACTIVATED)  # `recover` settles it, and begins the new epoch
        return
    record = await worker.ledger.record(worker.book, attempt_id)
    await _write(worker, record, judge(record, worker.known, state), refusal if was_open else "")
    if not worker.attention:
        await _take_over(worker, state)
    await _keep_evidence(worker, state)


def _verdicts(
    unfinished: list[Record], known: FiscalCounters, state: MachineState, *, activated: str
) -> list[tuple[Record, Verdict]]:
    """The one that may have been on the line is judged; the others cannot have been certified, and go first: what is left over
    when this breaks off in the middle must not be the wrong one."""
    if not unfinished:
        return []
    last = state.last.number if state.last else None
    suspect = next((r for r in unfinished if r.number == last), unfinished[0])
    never_sent: list[tuple[Record, Verdict]] = [(r, NotCertified(sent=False)) for r in unfinished if r is not suspect]
    return [*never_sent, (suspect, judge(suspect, known, state, activated=activated))]


async def _write(worker: MachineWorker, record: Record, verdict: Verdict, refusal: str = "") -> None:
    now = worker.now()
    log.info(
        "recover.settled",
        nim=worker.book.nim,
        mode=worker.book.mode,
        invoice_number=record.number,
        verdict=type(verdict).__name__.lower(),
        request_id=record.request_id,
    )
    if isinstance(verdict, Disputed):
        found = _with_incident(worker, verdict.found)
        log.warning("machine.attention", nim=worker.book.nim, mode=worker.book.mode, found=found)
        await worker.ledger.dispute(worker.book, record.id, found, at=now)
        worker.statistics.outcomes["disputed"] += 1
        worker.take_state(await worker.ledger.state(worker.book))
        worker.attempts.settle([record])
        return
    if isinstance(verdict, Certified):
        invoice = record.invoice if verdict.code else _without_code(record.invoice)
        outcome = Outcome(verdict, invoice, record.total_ttc, now, duration_ms=max(0, now - record.begun_at))
        ended = await worker.ledger.certify(worker.book, record.id, outcome)
        worker.attempts.known = verdict.counters
        worker.take_name(ended.nim)
    elif refusal:
        ended = await worker.ledger.end(worker.book, record.id, "refused", refusal, at=now)
    else:
        reason = str(Text("the machine did not certify it")) if verdict.sent else NOT_SENT
        ended = await worker.ledger.end(worker.book, record.id, "abandoned", reason, at=now)
    worker.attempts.settle([record])
    announce(worker, ended)


def _without_code(invoice: Invoice) -> Invoice:
    """Certified it is, and its number is used; where the answer to 38h is lost and C1h tells no code, only the tax server has it."""
    warn = Warn("CODE_NOT_TOLD", str(Text("the machine certified this invoice and does not tell its code any more")))
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, warn))


async def _take_taxpayer(worker: MachineWorker, state: MachineState) -> None:
    """A machine that was activated for another taxpayer works in another book (decision 33)."""
    book = worker.book
    if _has_another_taxpayer(worker, state):
        nim = present_nim(state.nim, worker.configured_nim, book.nim)
        log.warning("machine.other_taxpayer", nim=nim, mode=book.mode, before=worker.ifu, now=state.ifu)
        worker.change_book(await worker.ledger.book_of_taxpayer(book, nim, state.ifu))
        await worker.begin()


async def _ask_about_activation(worker: MachineWorker, state: MachineState) -> None:
    """An older ledger was put back, and the machine was activated anew since: nothing is judged by counters of another activation before an
    operator was asked."""
    if _activated(worker, state) and (await worker.ledger.state(worker.book)).is_restored:
        await _attend(worker, activated_since(worker.known, state))
        worker.take_state(await worker.ledger.state(worker.book))


async def _take_activation(worker: MachineWorker, state: MachineState) -> None:
    """Another activation counter: the same book goes on, in a new epoch."""
    book = worker.book
    if nim := _activated(worker, state):
        log.warning("machine.activated", nim=nim, mode=book.mode, before=book.nim)
        worker.book = await worker.ledger.begin_epoch(book, state, nim, at=worker.now())
        worker.take_state(await worker.ledger.state(worker.book))


async def _take_over(worker: MachineWorker, state: MachineState) -> None:
    """The machine's counters become the known ones. At the first meeting of a process nothing but our own unfinished work may
    have moved them: otherwise the ledger is behind the machine (an older backup put back, or another program), and
    numbers may have been used that it does not know."""
    stored = await worker.ledger.state(worker.book)
    moved = (state.counters.fvc - worker.known.fvc) + (state.counters.frc - worker.known.frc)
    if found := await _disagreement(worker, stored, state):
        await _attend(worker, found)
    else:
        unexplained = moved if stored.known is not None else 0
        if unexplained:
            log.warning("machine.unexplained", nim=worker.book.nim, mode=worker.book.mode, invoices=unexplained)
        await worker.ledger.reconcile(worker.book, state, unexplained=unexplained, at=worker.now())
        log.info("machine.reconciled", nim=worker.book.nim, mode=worker.book.mode)
    worker.take_state(await worker.ledger.state(worker.book))


async def _attend(worker: MachineWorker, found: str) -> None:
    found = _with_incident(worker, found)
    log.warning("machine.attention", nim=worker.book.nim, mode=worker.book.mode, found=found)
    await worker.ledger.set_attention(worker.book, found, at=worker.now())


async def _disagreement(worker: MachineWorker, stored: BookState, state: MachineState) -> str:
    """What an operator has to look at before the machine's counters are believed; empty when nothing."""
    if stored.known is None:
        is_lost = stored.book.mode == "live" and await worker.ledger.is_remembered(stored.book, state.ifu)
        return vanished(state) if is_lost else stored.lost
    if worker.attempts.met_machine and not went_down(worker.known, state.counters):
        return ""
    return behind(worker.known, stored.last_number, state) or stored.lost


async def _keep_evidence(worker: MachineWorker, state: MachineState) -> None:
    if worker.attention:
        await worker.ledger.keep_evidence(worker.book, state, at=worker.now())


def _with_incident(worker: MachineWorker, found: str) -> str:
    """Where what moved on the line before it is kept, for whoever has to decide."""
    incident = worker.note_odd("attention")
    return str(Text("{found} (recording: incident {incident})", found=found, incident=incident) if incident else found)
