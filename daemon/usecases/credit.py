"""Credit notes never exceed the invoice that they refer to (issue: clients of the hosted service)."""

from __future__ import annotations

from daemon.core.errors import CreditExceedsOriginal
from daemon.core.invoice import Invoice
from daemon.core.settlement import same_machine
from daemon.usecases.desk import Desk


def own_reference(desk: Desk, invoice: Invoice) -> int | None:
    """The FVC of the original when the reference names an invoice of this machine; None for `RRR` and other machines."""
    nim, _, fvc = invoice.reference.rpartition("-")
    if not fvc.isdigit() or not same_machine(nim, desk.book.nim):
        return None
    return int(fvc)


async def check(desk: Desk, invoice: Invoice) -> None:
    """Done at the machine, in turn, so that two credit notes of one invoice cannot both be the last that fits."""
    if not invoice.is_credit:
        return
    fvc = own_reference(desk, invoice)
    if fvc is None:
        return
    await desk.outcome_durable()
    original, credited = await desk.ledger.credited(desk.book, fvc)
    if original is not None and credited + invoice.total_ttc > original:
        raise CreditExceedsOriginal(invoice.reference, original, credited + invoice.total_ttc)
