"""Credit notes never exceed the invoice that they refer to (409 CREDIT_EXCEEDS_ORIGINAL)."""

from __future__ import annotations

import msgspec

from daemon.core.errors import CreditExceedsOriginal
from daemon.core.invoice import Invoice, Warn
from daemon.core.reference import own_fvc
from daemon.usecases.desk import Desk

NO_SINGLE_ORIGINAL = "RRR"


async def check(desk: Desk, invoice: Invoice) -> Invoice:
    """The invoice, with a warning when its original is none of this ledger's (from before mcfd, or of another machine).

    Done at the machine, in turn, so that two credit notes of one invoice cannot both be the last that fits."""
    if not invoice.is_credit or invoice.reference == NO_SINGLE_ORIGINAL:
        return invoice
    fvc = own_fvc(invoice.reference, desk.book.nim)
    if fvc is None:
        return _unchecked(invoice)
    await desk.outcome_durable()
    original, credited = await desk.ledger.credited(desk.book, fvc)
    if original is None:
        return _unchecked(invoice)
    if credited + invoice.total_ttc > original:
        raise CreditExceedsOriginal(invoice.reference, original, credited + invoice.total_ttc)
    return invoice


def _unchecked(invoice: Invoice) -> Invoice:
    text = f"{invoice.reference} is not an invoice of this ledger; the sum of its credit notes is not checked"
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, Warn("ORIGINAL_NOT_CHECKED", text)))
