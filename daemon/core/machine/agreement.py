"""Before anything is paid, the machine's subtotal (33h) has to agree with our own arithmetic."""

from collections import Counter

import msgspec

from common.language.reasons import PAYMENT_ADJUSTED_TO_MACHINE, SUBTOTAL_DIFFERS, to_stored
from daemon.core.errors import MachineNonsense
from daemon.core.invoice.invoice import Invoice, Payment, Warn
from daemon.core.invoice.taxes import WHOLE, withheld_anew, without_vat
from daemon.core.machine.state import Subtotal

_FRANC = 1


def agree(invoice: Invoice, subtotal: Subtotal) -> Invoice:
    """The invoice to pay and close, with the machine's VAT (decision 32); `invoice` itself if everything is equal.

    In TTC mode total and group totals must equal ours, and a group's VAT may differ by a franc, or by rounding on each
    line. In HT mode the machine's totals count, and VAT, within a franc for each item of a group, and the largest
    payment takes the difference (decision 24). A specific tax of 0 or none is a habit of the machine, since it stands
    in the totals that agree. MachineNonsense otherwise."""
    ours = {line.group: (line.ttc, line.tva) for line in invoice.taxes if line.ttc}
    theirs = {line.group: (line.ttc, line.tva) for line in subtotal.taxes}
    same_specific = subtotal.specific_tax in (None, 0, invoice.specific_tax)
    tells_cents = any(line.tva_hundredths for line in subtotal.taxes)
    if (subtotal.total_ttc, theirs) == (invoice.total_ttc, ours) and same_specific and not tells_cents:
        return invoice
    agrees = _agrees_with_vat if invoice.price_mode == "TTC" else _agrees_without_vat
    if set(ours) != set(theirs) or not agrees(invoice, subtotal) or not same_specific:
        raise MachineNonsense(
            SUBTOTAL_DIFFERS(
                total=subtotal.total_ttc,
                groups=theirs,
                specific=subtotal.specific_tax or 0,
                our_total=invoice.total_ttc,
                our_groups=ours,
                our_specific=invoice.specific_tax,
            )
        )
    rates = {line.group: line.rate for line in invoice.taxes}
    taxes = tuple(msgspec.structs.replace(line, rate=rates[line.group]) for line in subtotal.taxes)
    difference = subtotal.total_ttc - invoice.total_ttc
    first, *more = withheld_anew(invoice, taxes) or (None,)
    return msgspec.structs.replace(
        invoice,
        taxes=taxes,
        total_ttc=subtotal.total_ttc,
        psvb=first,
        more_psvb=tuple(more),
        payments=_adjust(invoice.payments, difference),
        warnings=_adjusted(invoice.warnings, subtotal.total_ttc) if difference else invoice.warnings,
    )


def vat_habit(ours: Invoice, agreed: Invoice) -> str:
    """How this machine's VAT differs from ours, for the log; empty when it does not."""
    own = {line.group: line.tva for line in ours.taxes}
    rates = [f"{line.group} {line.tva} for {own[line.group]}" for line in agreed.taxes if line.tva != own[line.group]]
    return ", ".join(rates)


def _agrees_with_vat(invoice: Invoice, subtotal: Subtotal) -> bool:
    ours = {line.group: line for line in invoice.taxes}
    return subtotal.total_ttc == invoice.total_ttc and all(
        line.ttc == ours[line.group].ttc
        and (abs(line.tva - ours[line.group].tva) <= _FRANC or line.tva in _line_by_line(invoice, line.group))
        for line in subtotal.taxes
    )


def _agrees_without_vat(invoice: Invoice, subtotal: Subtotal) -> bool:
    """Within a franc for each item of a group, and so for each item of the invoice."""
    ours = {line.group: line for line in invoice.taxes}
    size = Counter(item.group for item in invoice.items)
    return sum(line.ttc for line in subtotal.taxes) == subtotal.total_ttc and all(
        max(abs(line.ttc - ours[line.group].ttc), abs(line.tva - ours[line.group].tva)) <= size[line.group]
        for line in subtotal.taxes
    )


def _line_by_line(invoice: Invoice, group: str) -> tuple[int, int, int]:
    """A group's VAT if rounded on each line half up, up, and down; many francs may lie between that and the group's."""
    half_up = up = down = 0
    for item in invoice.items:
        if item.group == group:
            numerator, denominator = item.line_amount * item.rate, WHOLE + item.rate
            half_up += item.line_amount - without_vat(item.line_amount, item.rate)
            up += -(-numerator // denominator)
            down += numerator // denominator
    return half_up, up, down


def _adjusted(warnings: tuple[Warn, ...], total: int) -> tuple[Warn, ...]:
    """Payments that were adjusted to our own total before are adjusted to the machine's."""
    adjusted = Warn("PAYMENT_ADJUSTED", to_stored(PAYMENT_ADJUSTED_TO_MACHINE(total=total)))
    return (*(warning for warning in warnings if warning.code != adjusted.code), adjusted)


def _adjust(payments: tuple[Payment, ...], difference: int) -> tuple[Payment, ...]:
    largest = max(range(len(payments)), key=lambda index: payments[index].amount)
    return tuple(
        msgspec.structs.replace(payment, amount=payment.amount + difference) if index == largest else payment
        for index, payment in enumerate(payments)
    )
