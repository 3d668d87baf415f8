"""Before anything is paid, the machine's subtotal (33h) has to agree with our own arithmetic."""

from __future__ import annotations

import msgspec

from daemon.core.certification import Subtotal
from daemon.core.errors import MachineNonsense
from daemon.core.invoice import Invoice, Payment


def agree(invoice: Invoice, subtotal: Subtotal) -> Invoice:
    """The invoice as it may be paid and closed.

    In TTC mode everything has to be equal. In HT mode VAT is the machine's business (decision 24): its total counts, within
    a franc for each item of ours, and the largest payment carries the difference. MachineNonsense otherwise."""
    ours = {line.group: (line.ttc, line.tva) for line in invoice.taxes if line.ttc}
    theirs = {line.group: (line.ttc, line.tva) for line in subtotal.taxes}
    if (subtotal.total_ttc, theirs) == (invoice.total_ttc, ours):
        return invoice
    difference = subtotal.total_ttc - invoice.total_ttc
    adds_up = set(ours) == set(theirs) and sum(line.ttc for line in subtotal.taxes) == subtotal.total_ttc
    if invoice.price_mode == "TTC" or abs(difference) > len(invoice.items) or not adds_up:
        raise MachineNonsense(
            f"the machine's subtotal {subtotal.total_ttc} {theirs} is not ours, {invoice.total_ttc} {ours}"
        )
    rates = {line.group: line.rate for line in invoice.taxes}
    taxes = tuple(msgspec.structs.replace(line, rate=rates[line.group]) for line in subtotal.taxes)
    payments = _adjust(invoice.payments, difference)
    return msgspec.structs.replace(invoice, taxes=taxes, total_ttc=subtotal.total_ttc, payments=payments)


def _adjust(payments: tuple[Payment, ...], difference: int) -> tuple[Payment, ...]:
    largest = max(range(len(payments)), key=lambda index: payments[index].amount)
    return tuple(
        msgspec.structs.replace(payment, amount=payment.amount + difference) if index == largest else payment
        for index, payment in enumerate(payments)
    )
