"""The commands for one invoice (protocol 3): C3h, C0h, 31h for each item, 36h, 33h, 35h, and then 38h. A slow 38h is
reported before its time limit; nothing is sent for it."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from common.language import reasons
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
from daemon.store.tables.book import attempts, originals, settlements
from daemon.usecases.worker.attempts import LiveAttempt
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)
SLOW_AFTER = {False: 3.0, True: 60.0}
"""Seconds after which a 38h is reported as slow, by `is_credit`: the tax server checks a credit note first."""


class OutcomeUnknown(Exception):
    """38h was sent and no credible success came back; only the machine knows the outcome."""

    def __init__(self, cause: MachineError) -> None:
        self.cause = cause


async def enter(
    worker: MachineWorker,
    machine: ConnectedMachine,
    live: LiveAttempt,
    invoice: Invoice,
    intent: asyncio.Future[None],
    *,
    expires: float = 0.0,
) -> Invoice:
    """Sends everything before 38h; returns the invoice as the machine agreed to it (in HT mode the total is the
    machine's).

    Afterwards the intent and the outcomes of all earlier invoices are durable. On any error, also when the request has
    expired (`Call.expires`), the open invoice is cancelled and nothing has been certified; after a refusal the rates are
    read."""
    agreed, entered = invoice, False

    def agreed_payments(subtotal: Subtotal) -> Sequence[Payment]:
        nonlocal agreed
        agreed = worker.defaults.rules.stamp_duty.amended(invoice, agree(invoice, subtotal))
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
        _check_original(worker, live, agreed)
        check_expiry(expires)
    except LineLost:
        raise
    except McfdError as error:
        was_open = await _cancel(worker, machine, error)
        was_opened = entered or not isinstance(error, MachineRefused) or error.is_open
        if was_opened and not was_open and isinstance(error, MachineError):
            # The machine has lost the open invoice, or may have: its error text means nothing.
            raise LineLost(reasons.INVOICE_LOST) from None
        raise
    if worker.machine is not machine:
        raise LineLost(reasons.GONE_BEFORE_CLOSE)
    return agreed


async def _cancel_left_open(worker: MachineWorker, machine: ConnectedMachine, refused: MachineRefused) -> None:
    """Cancels an invoice that another program left open; raises `refused` if there is none."""
    if refused.is_open or not await machine.cancel():
        raise refused
    log.warning("machine.left_open", nim=worker.book.nim, mode=worker.book.mode)


def check_expiry(expires: float) -> None:
    """RequestExpired if that time (loop time, 0 for never) is over."""
    if 0 < expires <= asyncio.get_running_loop().time():
        raise RequestExpired


def _check_original(worker: MachineWorker, live: LiveAttempt, agreed: Invoice) -> None:
    """CreditExceedsOriginal for a credit note whose total is the machine's."""
    if agreed.is_credit and agreed.leeway:
        worker.ledger.peek(originals.check_agreed, live.id, agreed)


def _apart(worker: MachineWorker, machine: ConnectedMachine, invoice: Invoice) -> tuple[int, int]:
    """The difference of TC and FC in the reply to C0h from the known counters."""
    before = worker.counters
    expected = (before.tc, before.frc if invoice.is_credit else before.fvc)
    tc, fc = machine.opened or expected
    return tc - expected[0], fc - expected[1]


async def _check_counters(
    worker: MachineWorker, machine: ConnectedMachine, invoice: Invoice, apart: tuple[int, int]
) -> None:
    """Cables may have been exchanged unnoticed by the port. If the counters differ, C1h reads the machine's name:
    another one ends the connection (LineLost), and nothing has been certified. A firmware that always sends other
    numbers in C0h is read once for each invoice type."""
    if (await machine.state()).counters == worker.counters:
        worker.accepted_differences[invoice.type] = apart


async def close(worker: MachineWorker, machine: ConnectedMachine, invoice: Invoice) -> Certified:
    """Sends 38h. Even a refusal is confirmed by C1h: a machine that restarts between two tries of one frame certifies
    at the first and refuses the second. A machine gives no code twice. A reply with the code of another invoice repeats
    an earlier 38h with the same SEQ, or comes from another machine after an exchange of cables."""
    before = worker.counters
    try:
        certified = await machine.certify(invoice, invoice.total_ttc, before)
    except CertifiedElsewhere as elsewhere:
        with contextlib.suppress(StorageError):
            if worker.ledger.peek(settlements.has_code, elsewhere.code):
                raise OutcomeUnknown(LineLost(reasons.CLOSE_WITH_OLD_CODE)) from elsewhere
        raise OutcomeUnknown(elsewhere) from elsewhere
    except MachineError as error:
        raise OutcomeUnknown(error) from error
    if certified.counters.tc <= before.tc:
        raise OutcomeUnknown(MachineNonsense(reasons.CLOSE_WITHOUT_COUNTERS))
    if not fc_moved(invoice.type, before, certified.counters):
        raise OutcomeUnknown(MachineNonsense(reasons.CLOSE_WITHOUT_FC))
    with contextlib.suppress(StorageError):  # the ledger takes no code twice either
        if worker.ledger.peek(attempts.has_code, worker.book, certified.code):
            raise OutcomeUnknown(MachineNonsense(reasons.CLOSE_WITH_OLD_CODE))
    return certified


def _log_habit(worker: MachineWorker, invoice: Invoice, agreed: Invoice) -> None:
    """Logs once that the machine rounds VAT differently, which is no error (decision 32)."""
    habit = vat_habit(invoice, agreed)
    if habit and not worker.is_habit_logged:
        worker.is_habit_logged = True
        log.info("machine.habit", nim=worker.book.nim, mode=worker.book.mode, habit="VAT", machine_and_ours=habit)


async def _cancel(worker: MachineWorker, machine: ConnectedMachine, why: McfdError) -> bool | None:
    """Whether an invoice was open; None if the machine did not answer (`recover` cancels at the next connection)."""
    try:
        was_open = await machine.cancel()
    except MachineError as error:
        worker.drop(machine, reasons.INVOICE_NOT_CANCELLED(error=error))
        return None
    if was_open and isinstance(why, MachineRefused):  # perhaps since its VAT rates have changed since they were read
        with contextlib.suppress(MachineError):
            worker.rates = dict((await machine.state()).rates)
    return was_open


@contextmanager
def watching(worker: MachineWorker, number: str, *, is_credit: bool) -> Iterator[None]:
    """Reports a slow 38h while it runs."""
    timer = asyncio.get_running_loop().call_later(
        SLOW_AFTER[is_credit], _announce, worker, number, SLOW_AFTER[is_credit]
    )
    try:
        yield
    finally:
        timer.cancel()


def _announce(worker: MachineWorker, number: str, waited: float) -> None:
    incident = worker.note_incident("38h is slow") or None
    log.warning("certification.slow", **worker.names, invoice_number=number, waited=waited, incident=incident)
    worker.publish(SLOW, detail=f"38h of invoice {number} has no answer after {waited:g} s; it is waited for")
