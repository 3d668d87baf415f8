"""The order of commands for one invoice (protocol 3): C3h, C0h, 31h for each item, 36h, 33h, 35h, and then 38h."""

from __future__ import annotations

import structlog

from daemon.core.agreement import agree
from daemon.core.certification import Certified, Counters
from daemon.core.errors import LineLost, MachineError, MachineNonsense, MachineRefused, StorageError
from daemon.core.invoice import Invoice
from daemon.usecases.desk import Desk
from daemon.usecases.ports import FiscalMachine

log = structlog.get_logger(__name__)


class OutcomeUnknown(Exception):
    """38h was begun and no believable yes came back; only the machine can tell."""

    def __init__(self, cause: MachineError) -> None:
        self.cause = cause
        super().__init__(str(cause))


async def enter(desk: Desk, machine: FiscalMachine, attempt_id: int, invoice: Invoice) -> Invoice:
    """Everything before 38h; the invoice as the machine agreed to it (in HT mode the total is the machine's).

    When anything goes wrong the open invoice is cancelled, and nothing has been certified."""
    opened = False
    try:
        await machine.open_invoice(invoice, desk.ifu)
        opened = True
        agreed = agree(invoice, await machine.add_lines(invoice))
        if agreed is not invoice:
            await desk.ledger.amend(desk.book, attempt_id, agreed)
        await machine.pay(agreed.payments)
        await desk.outcome_durable()
        if desk.machine is not machine:
            raise LineLost("the machine went away before 38h")
    except (MachineRefused, MachineNonsense, StorageError):
        was_open = await _cancel(desk, machine)
        if opened and not was_open:
            # What it said against a command of an invoice that it no longer has, or may no longer have, says nothing.
            raise LineLost("the machine lost the invoice in the middle") from None
        raise
    return agreed


async def close(machine: FiscalMachine, invoice: Invoice, known: Counters) -> Certified:
    """38h. Even a refusal is only believed after C1h: a machine that restarted between two tries of the same frame
    certifies at the first and refuses the second."""
    try:
        certified = await machine.certify(invoice, invoice.total_ttc, known)
    except MachineError as error:
        raise OutcomeUnknown(error) from error
    if certified.counters.tc <= known.tc:
        raise OutcomeUnknown(MachineNonsense("38h was answered with counters that have not moved"))
    return certified


async def _cancel(desk: Desk, machine: FiscalMachine) -> bool | None:
    """Whether an invoice was open; None when the machine could not be asked (`recover` cancels at its return)."""
    try:
        return await machine.cancel()
    except MachineError as error:
        desk.drop(machine, f"the open invoice could not be cancelled: {error}")
        return None
