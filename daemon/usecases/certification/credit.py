"""Credit notes never exceed the invoice that they refer to (409 CREDIT_EXCEEDS_ORIGINAL)."""

from __future__ import annotations

import msgspec

from daemon.core.errors import CreditExceedsOriginal
from daemon.core.invoice.invoice import Invoice, Warn
from daemon.core.machine.nim import named_machine, original_fvc
from daemon.language import Text
from daemon.usecases.worker.machine_worker import MachineWorker

NO_SINGLE_ORIGINAL = "RRR"


async def check(worker: MachineWorker, invoice: Invoice) -> Invoice:
    """The invoice, with a warning when its original is none of this ledger's (from before mcfd, or of another machine).

    Done at the machine, in turn, so that two credit notes of one invoice cannot both be the last that fits."""
    if not invoice.is_credit or invoice.reference == NO_SINGLE_ORIGINAL:
        return invoice
    fvc = original_fvc(invoice.reference, worker.book.nim)
    if fvc is None:
        return _unchecked(invoice)
    await worker.attempts.all_durable()
    original, credited = await worker.ledger.credited(worker.book, named_machine(invoice.reference), fvc)
    if original is None:
        return _unchecked(invoice)
    if credited + invoice.total_ttc > original:
        raise CreditExceedsOriginal(invoice.reference, original, credited + invoice.total_ttc)
    return invoice


def _unchecked(invoice: Invoice) -> Invoice:
    text = Text(
        "{reference} is not an invoice of this ledger; the sum of its credit notes is not checked",
        reference=invoice.reference,
    )
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, Warn("ORIGINAL_NOT_CHECKED", str(text))))
