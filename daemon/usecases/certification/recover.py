"""Recovery: after a crash or a lost line, unfinished attempts are settled by the machine's state before any new work.

The decisions are in `core.ledger.verdict`. This module reads the machine and writes the outcomes in a crash-safe order.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import structlog

from common.language import NO_TEXT, Text, reasons, sentence
from daemon.core.errors import CertifiedElsewhere, LineLost, MachineError, StorageError
from daemon.core.invoice.invoice import Invoice, Warn
from daemon.core.ledger.attempt import Outcome, Record
from daemon.core.ledger.verdict import (
    Disputed,
    LastComparison,
    Verdict,
    activated_since,
    behind,
    disagreement,
    evidence,
    foreign_count,
    judge,
    not_certified,
    vanished,
    verdicts,
    went_down,
)
from daemon.core.machine.state import Certified, MachineState, new_name, present_nim
from daemon.machines.adapter import ConnectedMachine
from daemon.store.tables.book import attempts, epochs
from daemon.store.tables.book.books import book_state
from daemon.usecases.worker.aggregate import announce, tick
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import begin

log = structlog.get_logger(__name__)

NotCertifiedState = Literal["refused", "abandoned"]


async def recover(worker: MachineWorker, machine: ConnectedMachine, state: MachineState) -> None:
    """Settles unfinished attempts, cancels an open invoice and takes over the machine's counters. `state` is a fresh
    C1h.

    Runs at the head of the machine's queue: no other attempt is at the machine and no 38h is under way. Afterwards the
    worker is ready or in attention. On StorageError or MachineError it runs again, from its beginning, at the next
    connection."""
    await worker.attempts.all_durable()  # an outcome that this process is still storing is not a foreign invoice
    worker.apply_state(worker.ledger.peek(book_state, worker.book))
    await _take_taxpayer(worker, machine, state)
    worker.time.apply_machine(state.time)
    if worker.attention and not worker.attempts.met_machine:
        log.warning("machine.attention", **worker.names, found=str(worker.attention))
    begun = worker.ledger.peek(attempts.unfinished, worker.book)
    worker.attempts.limit_doubts(begun)
    unfinished = [record for record in begun if not worker.attempts.is_ours(record)]
    await machine.cancel()
    if unfinished:
        # Before the cancellation the machine may still have been at work on the invoice.
        state = await _read_again(machine, state)
    if _is_inactive(worker, state) and (unfinished or await _has_forgotten(worker, state)):
        raise LineLost(reasons.NOT_ACTIVATED)
    if not worker.attention:
        await _check_activation(worker, state)
    if not worker.attention:
        await _settle_unfinished(worker, unfinished, state)
    if not worker.attention:
        await _take_activation(worker, state)
    if not worker.attention:
        await _take_over(worker, state)
    await _store_evidence(worker, state)
    code = state.last.code if state.last else ""
    worker.apply_code("" if worker.ledger.peek(attempts.is_of_earlier_activation, worker.book, code) else code)
    worker.attempts.met_machine = worker.attempts.met_machine or not worker.attention
    if worker.attention:
        worker.attempts.wake()
    await tick(worker)


def is_activated(worker: MachineWorker, state: MachineState) -> bool:
    """Whether the machine has another activation counter than the book knows, or another taxpayer."""
    return bool(_activated(worker, state)) or _has_another_taxpayer(worker, state)


def _is_inactive(worker: MachineWorker, state: MachineState) -> bool:
    """Whether the machine sends no taxpayer although the book has one: it was reset and not activated yet. Its memory
    may be empty, so its state proves nothing."""
    return worker.book.mode == "live" and bool(worker.ifu) and not state.ifu


async def _has_forgotten(worker: MachineWorker, state: MachineState) -> bool:
    """Whether the machine has lost its memory, or may have: a restored ledger does not know the counters since."""
    last = _compared(worker, state)
    return (
        last == "gone"
        or went_down(worker.counters, state.counters)
        or (worker.attempts.is_restored and last != "known")
    )


def _has_another_taxpayer(worker: MachineWorker, state: MachineState) -> bool:
    """Not of the sandbox, which has any taxpayer, nor of a machine that is not activated, which sends none."""
    return worker.book.mode == "live" and bool(state.ifu and worker.ifu) and state.ifu != worker.ifu


def _activated(worker: MachineWorker, state: MachineState) -> str:
    """The machine's present NIM if the book has another one; else empty."""
    return new_name(state.nim, worker.configured_nim, worker.book.nim)


async def determine_in_place(worker: MachineWorker, machine: ConnectedMachine, attempt_id: int, refusal: str) -> None:
    """Settles one attempt on a live line: the reply to 38h was not a credible success. `refusal` is the machine's text.
    It becomes the outcome if the machine confirms that it did not certify and still had the invoice open.

    An error here ends the connection: no attempt gets this machine before the next `recover`."""
    try:
        await _settle(worker, machine, attempt_id, refusal)
    except (MachineError, StorageError) as error:
        log.warning("recover.put_off", nim=worker.book.nim, cause=str(error))
        worker.drop(machine, reasons.OUTCOME_NOT_SETTLED(error=error))


async def store_dispute(worker: MachineWorker, attempt_id: int, elsewhere: CertifiedElsewhere) -> None:
    """The number stays taken in this book until an operator decides; the other machine's book is in attention too."""
    found, now = sentence(elsewhere), worker.now()
    await _write(worker, worker.ledger.peek(attempts.find_record, worker.book, attempt_id), Disputed(found))
    await worker.ledger.attend_machine(elsewhere.nim, found, at=now)


async def _settle(worker: MachineWorker, machine: ConnectedMachine, attempt_id: int, refusal: str) -> None:
    was_open = await machine.cancel()
    state = await machine.state()
    if is_activated(worker, state) or _is_inactive(worker, state):
        worker.drop(machine, reasons.ACTIVATED_ANEW)  # `recover` settles it, and begins the new epoch
        return
    record = worker.ledger.peek(attempts.find_record, worker.book, attempt_id)
    before, last = worker.counters, _compared(worker, state)
    verdict = judge(record, before, state, last)
    others = foreign_count(record.invoice, before, state.counters)
    await _write(worker, record, verdict, refusal=refusal if was_open else "", others=others)
    if not worker.attention:
        await _take_over(worker, state)
    await _store_evidence(worker, state)


async def _settle_unfinished(worker: MachineWorker, unfinished: Sequence[Record], state: MachineState) -> None:
    """At the first connection of this process only our unfinished attempts may have moved the machine's counters.
    Anything else sets attention in the same commit that takes over the counters: a crash between two would hide it."""
    if not unfinished:
        return
    stored, activated = worker.ledger.peek(book_state, worker.book), _activated(worker, state)
    last = _compared(worker, state)
    before = worker.counters
    found = verdicts(unfinished, before, state, last, activated=activated, is_restored=stored.is_restored)
    for record, verdict in found:
        others, wrong = 0, NO_TEXT
        if isinstance(verdict, Certified) and not verdict.nim:
            others = foreign_count(record.invoice, before, verdict.counters)
            if not worker.attempts.met_machine:
                wrong = behind(
                    before, stored.last_number, state, last, ours=record.invoice, is_restored=stored.is_restored
                )
        await _write(worker, record, verdict, others=others, wrong=wrong)


async def _write(
    worker: MachineWorker,
    record: Record,
    verdict: Verdict,
    *,
    refusal: str = "",
    others: int = 0,
    wrong: Text = NO_TEXT,
) -> None:
    """`others`: number of foreign invoices that the machine counted too; `wrong`: what an operator has to check."""
    now = worker.now()
    log.info(
        "recover.settled",
        **worker.names,
        invoice_number=record.number,
        verdict=type(verdict).__name__.lower(),
        request_id=record.request_id,
    )
    wrong = verdict.found if isinstance(verdict, Disputed) else wrong
    found = _attended(worker, wrong) if wrong else NO_TEXT
    if isinstance(verdict, Disputed):
        await worker.ledger.dispute(worker.book, record.id, found, at=now)
        ended = worker.ledger.peek(attempts.find_record, worker.book, record.id)
    elif isinstance(verdict, Certified):
        invoice = record.invoice if verdict.code else _without_code(record.invoice)
        waited = max(0, now - record.begun_at)
        outcome = Outcome(verdict, invoice, record.total_ttc, now, duration_ms=waited, unexplained=others)
        ended = await worker.ledger.write(worker.ledger.certify_settled, worker.book, record.id, outcome, found)
        worker.attempts.counters = verdict.counters
        worker.apply_name(ended.nim)
    elif refusal:
        ended = await worker.ledger.write(worker.ledger.end, worker.book, record.id, "refused", refusal, at=now)
    else:
        ended = await worker.ledger.write(
            worker.ledger.end, worker.book, record.id, "abandoned", not_certified(verdict), at=now
        )
    if found:
        worker.apply_state(worker.ledger.peek(book_state, worker.book))
    worker.attempts.settle([record])
    announce(worker, ended)


def _without_code(invoice: Invoice) -> Invoice:
    """The invoice with a warning: it is certified, but the reply to 38h is lost and C1h has no code."""
    warn = Warn("CODE_NOT_TOLD", reasons.to_stored(reasons.NO_CODE_FROM_MACHINE))
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, warn))


async def _take_taxpayer(worker: MachineWorker, machine: ConnectedMachine, state: MachineState) -> None:
    """A machine that was activated for another taxpayer gets another book (decision 33)."""
    book = worker.book
    if _has_another_taxpayer(worker, state):
        nim = present_nim(state.nim, worker.configured_nim, book.nim)
        log.warning("machine.other_taxpayer", nim=nim, mode=book.mode, before=worker.ifu, now=state.ifu)
        await _settle_before_another_taxpayer(worker, machine, state, nim)
        worker.change_book(await worker.ledger.write(epochs.book_of_taxpayer, book, nim, state.ifu))
        await begin(worker)
        await worker.note_pair()


async def _read_again(machine: ConnectedMachine, before: MachineState) -> MachineState:
    """LineLost if the machine was activated since the reading `before`: the two say nothing together."""
    state = await machine.state()
    if (state.nim, state.ifu) != (before.nim, before.ifu):
        raise LineLost(reasons.ACTIVATED_ANEW)
    return state


async def _settle_before_another_taxpayer(
    worker: MachineWorker, machine: ConnectedMachine, state: MachineState, nim: str
) -> None:
    """Settles the book of the former taxpayer now, since no later connection is about it. What the machine certified
    for that taxpayer, it certified in the activation that the book knows; otherwise the outcome is disputed."""
    begun = [
        record for record in worker.ledger.peek(attempts.unfinished, worker.book) if not worker.attempts.is_ours(record)
    ]
    if not begun:
        return
    await machine.cancel()
    state = await _read_again(machine, state)
    last = _compared(worker, state)
    found = verdicts(begun, worker.counters, state, last, activated=nim, is_restored=worker.attempts.is_restored)
    for record, verdict in found:
        if not isinstance(verdict, Certified):
            await _write(worker, record, verdict)
        elif verdict.nim:
            await _write(worker, record, Disputed(evidence(record, worker.counters, state)))
        else:
            others = foreign_count(record.invoice, worker.counters, verdict.counters)
            await _write(worker, record, msgspec.structs.replace(verdict, ifu=worker.ifu), others=others)


async def _check_activation(worker: MachineWorker, state: MachineState) -> None:
    """Attention if the ledger was restored or lost and the machine was activated again since: counters of another
    activation decide nothing."""
    if not _activated(worker, state):
        return
    if worker.attempts.is_restored:
        found = activated_since(worker.counters, state, _compared(worker, state))
    else:
        found = vanished(state, is_activated=True) if _is_lost(worker, state) else NO_TEXT
    if found:
        await _attend(worker, found)


async def _take_activation(worker: MachineWorker, state: MachineState) -> None:
    """After another activation the same book continues in a new epoch."""
    book = worker.book
    if nim := _activated(worker, state):
        log.warning("machine.activated", nim=nim, mode=book.mode, before=book.nim)
        worker.book = await worker.ledger.begin_epoch(book, state, nim, at=worker.now())
        worker.machine_code = ""
        worker.apply_state(worker.ledger.peek(book_state, worker.book))


async def _take_over(worker: MachineWorker, state: MachineState) -> None:
    """The machine's counters become the known ones. At the first connection of this process only our unfinished
    attempts may have moved them. Otherwise the ledger is behind the machine (a restored backup, or another program),
    which may have used numbers that the ledger does not know: attention."""
    book, before = worker.book, worker.counters
    stored, last = worker.ledger.peek(book_state, book), _compared(worker, state)
    is_lost, met = _is_lost(worker, state), worker.attempts.met_machine
    if found := disagreement(stored, before, state, last, met=met, is_lost=is_lost):
        await _attend(worker, found)
        return
    moved = (state.counters.fvc - before.fvc) + (state.counters.frc - before.frc)
    unexplained = moved if stored.counters is not None else 0
    if unexplained:
        log.warning("machine.unexplained", **worker.names, invoices=unexplained)
    await worker.ledger.reconcile(book, state, unexplained=unexplained, at=worker.now())
    log.info("machine.reconciled", **worker.names)
    worker.apply_state(worker.ledger.peek(book_state, book))


def _compared(worker: MachineWorker, state: MachineState) -> LastComparison:
    return worker.ledger.peek(attempts.compare_with_ledger, worker.book, state.last)


def _is_lost(worker: MachineWorker, state: MachineState) -> bool:
    """Whether the ledger is empty although one was in use with this machine."""
    book, stored = worker.book, worker.ledger.peek(book_state, worker.book)
    if stored.counters is not None or book.mode != "live":
        return False
    return stored.is_restored or worker.ledger.is_remembered(book, state.ifu)


async def _attend(worker: MachineWorker, wrong: Text) -> None:
    await worker.ledger.set_attention(worker.book, _attended(worker, wrong), at=worker.now())
    worker.apply_state(worker.ledger.peek(book_state, worker.book))


def _attended(worker: MachineWorker, wrong: Text) -> Text:
    """Logs `wrong` and adds the name of the line's recording, for the person who decides."""
    incident = worker.note_incident("attention")
    found = reasons.RECORDED_INCIDENT(found=wrong, incident=incident) if incident else wrong
    log.warning("machine.attention", **worker.names, found=str(found))
    return found


async def _store_evidence(worker: MachineWorker, state: MachineState) -> None:
    if worker.attention:
        await worker.ledger.store_evidence(worker.book, state, at=worker.now())
