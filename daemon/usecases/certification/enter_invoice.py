"""The order of commands for one invoice (protocol 3): C3h, C0h, 31h for each item, 36h, 33h, 35h, and then 38h. A 38h that takes longer than
it does on this machine is reported before any time limit, and nothing is sent for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from common.language.reasons import (
    CLOSE_WITH_OLD_CODE,
    CLOSE_WITHOUT_COUNTERS,
    CLOSE_WITHOUT_FC,
    GONE_BEFORE_CLOSE,
    INVOICE_LOST,
    INVOICE_NOT_CANCELLED,
)
from daemon.core.errors import (
    CertifiedElsewhere,
    LineLost,
    MachineError,
    MachineNonsense,
    MachineRefused,
    McfdError,
    RequestExpired,
    StorageError,
)
from daemon.core.events import SLOW
from daemon.core.invoice.invoice import Invoice, Payment
from daemon.core.ledger.verdict import fc_moved
from daemon.core.machine.agreement import agree, vat_habit
from daemon.core.machine.state import Certified, Subtotal
from daemon.machines.adapter import ConnectedMachine
from daemon.store.tables.book import attempts, settlements
from daemon.usecases.worker.attempts import LiveAttempt
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)
TIMES = 3
"""As long as the longest so far."""
BOUNDS = {False: (1.0, 3.0), True: (20.0, 60.0)}
"""Seconds, at the least and at the most, for a sale, and for a credit note, which the tax server checks first."""


class OutcomeUnknown(Exception):
    """38h was begun and no believable yes came back; only the machine can tell."""

    def __init__(self, cause: MachineError) -> None:
        self.cause = cause
        super().__init__(str(cause))


async def enter(
    worker: MachineWorker,
    machine: ConnectedMachine,
    live: LiveAttempt,
    invoice: Invoice,
    intent: asyncio.Future[None],
    *,
    expires: float = 0.0,
) -> Invoice:
    """Everything before 38h; the invoice as the machine agreed to it (in HT mode the total is the machine's).

    Afterwards the intent is durable, and so is the outcome of every invoice before it. When anything goes wrong the open invoice is
    cancelled, and nothing has been certified; so it is when the request has expired (`Call.expires`)."""
    agreed, entered = invoice, False

    def agreed_payments(subtotal: Subtotal) -> Sequence[Payment]:
        nonlocal agreed
        agreed = agree(invoice, subtotal)
        return agreed.payments if agreed is invoice else ()

    try:
        try:
            await machine.enter(invoice, worker.ifu, agreed_payments)
        except MachineRefused as refused:
            await _cancel_left_open(worker, machine, refused)
            await machine.enter(invoice, worker.ifu, agreed_payments)
        entered = True
        if (apart := _apart(worker, machine, invoice)) not in ((0, 0), worker.accepted_differences.get(invoice.type)):
            await _check_counters(worker, machine, invoice, apart)
        if agreed is not invoice:
            _log_habit(worker, invoice, agreed)
            await intent
            await worker.ledger.write(attempts.amend, worker.book, live.id, agreed)
            await machine.pay(agreed.payments)
        await intent
        if not worker.attempts.is_way_free(live):
            await worker.attempts.way_free(live)
        check_expiry(expires)
    except LineLost:
        raise
    except McfdError as error:
        was_open = await _cancel(worker, machine)
        if (entered or _was_opened(error)) and not was_open and isinstance(error, MachineError):
            # What it said against a command of an invoice that it no longer has, or may no longer have, says nothing.
            raise LineLost(INVOICE_LOST) from None
        raise
    if worker.machine is not machine:
        raise LineLost(GONE_BEFORE_CLOSE)
    return agreed


async def _cancel_left_open(worker: MachineWorker, machine: ConnectedMachine, refused: MachineRefused) -> None:
    """An invoice that another program left open is cancelled, once; where there is none, the refusal stands."""
    if refused.is_open or not await machine.cancel():
        raise refused
    log.warning("machine.left_open", nim=worker.book.nim, mode=worker.book.mode)


def check_expiry(expires: float) -> None:
    """RequestExpired where that time (loop time, 0 for never) is over."""
    if 0 < expires <= asyncio.get_running_loop().time():
        raise RequestExpired


def _apart(worker: MachineWorker, machine: ConnectedMachine, invoice: Invoice) -> tuple[int, int]:
    """By how much the counters that the machine sent when it opened the invoice are apart from those known."""
    before = worker.counters
    expected = (before.tc, before.frc if invoice.is_credit else before.fvc)
    tc, fc = machine.opened or expected
    return tc - expected[0], fc - expected[1]


async def _check_counters(
    worker: MachineWorker, machine: ConnectedMachine, invoice: Invoice, apart: tuple[int, int]
) -> None:
    """Cables may have been exchanged without the port noticing. Where the counters are not the known ones, C1h gives the machine's name:
    another one ends the connection (LineLost), and nothing has been certified. A firmware that sends other numbers than are known is read once for
    each type."""
    if (await machine.state()).counters == worker.counters:
        worker.accepted_differences[invoice.type] = apart


def _was_opened(error: McfdError) -> bool:
    """Whether C3h and C0h had been taken; all but a refusal can only come after them."""
    return not isinstance(error, MachineRefused) or error.is_open


async def close(worker: MachineWorker, machine: ConnectedMachine, invoice: Invoice) -> Certified:
    """38h. Even a refusal is only believed after C1h: a machine that restarted between two tries of the same frame
    certifies at the first and refuses the second. A machine gives no code twice: with that of another invoice, it is an answer to an earlier 38h,
    which a machine repeats for the same SEQ, also one whose cable was exchanged."""
    before = worker.counters
    try:
        certified = await machine.certify(invoice, invoice.total_ttc, before)
    except CertifiedElsewhere as elsewhere:
        with contextlib.suppress(StorageError):
            if worker.ledger.peek(settlements.has_code, elsewhere.code):
                raise OutcomeUnknown(LineLost(CLOSE_WITH_OLD_CODE)) from elsewhere
        raise OutcomeUnknown(elsewhere) from elsewhere
    except MachineError as error:
        raise OutcomeUnknown(error) from error
    if certified.counters.tc <= before.tc:
        raise OutcomeUnknown(MachineNonsense(CLOSE_WITHOUT_COUNTERS))
    if not fc_moved(invoice.type, before, certified.counters):
        raise OutcomeUnknown(MachineNonsense(CLOSE_WITHOUT_FC))
    with contextlib.suppress(StorageError):  # the ledger takes no code twice either
        if worker.ledger.peek(attempts.has_code, worker.book, certified.code):
            raise OutcomeUnknown(MachineNonsense(CLOSE_WITH_OLD_CODE))
    return certified


def _log_habit(worker: MachineWorker, invoice: Invoice, agreed: Invoice) -> None:
    """Once: how a machine rounds is no error (decision 32)."""
    habit = vat_habit(invoice, agreed)
    if habit and not worker.is_habit_logged:
        worker.is_habit_logged = True
        log.info("machine.habit", nim=worker.book.nim, mode=worker.book.mode, habit="VAT", machine_and_ours=habit)


async def _cancel(worker: MachineWorker, machine: ConnectedMachine) -> bool | None:
    """Whether an invoice was open; None when the machine could not be reached (`recover` cancels at its return)."""
    try:
        return await machine.cancel()
    except MachineError as error:
        worker.drop(machine, INVOICE_NOT_CANCELLED(error=error))
        return None


def patience(longest: float, *, is_credit: bool) -> float:
    """Seconds after which mcfd warns; `longest`: that 38h has taken here since the start, 0 before the first."""
    least, most = BOUNDS[is_credit]
    return min(max(least, TIMES * longest), most)


@contextmanager
def watching(worker: MachineWorker, number: str, *, is_credit: bool) -> Iterator[None]:
    """While 38h is under way. What ends otherwise than by an answer is no measure of how long an answer takes."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    wait = patience(worker.longest_close.get(is_credit, 0.0), is_credit=is_credit)
    timer = loop.call_later(wait, _announce, worker, number, wait)
    try:
        yield
        worker.longest_close[is_credit] = max(worker.longest_close.get(is_credit, 0.0), loop.time() - began)
    finally:
        timer.cancel()


def _announce(worker: MachineWorker, number: str, waited: float) -> None:
    book = worker.book
    log.warning(
        "certification.slow",
        nim=book.nim,
        mode=book.mode,
        invoice_number=number,
        waited=waited,
        incident=worker.note_odd("38h is slow") or None,
    )
    worker.publish(SLOW, detail=f"38h of invoice {number} has no answer after {waited:g} s; it is waited for")
