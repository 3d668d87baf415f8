"""What one ended attempt adds to the totals, and the arithmetic of such maps.

Keys, in whole XOF unless they count (letters stand for invoice type, tax group, payment method, PSVB group):

    FV.n  FV.ttc                     certified invoices of a type, their total; credit notes count positive
    FV.B.ht  FV.B.tva  FV.B.ttc      the same by tax group
    pay.E                            paid by a method, less what credit notes gave back by it
    specific                         specific tax certified separately, net of credit notes
    psvb.A.base  psvb.A.amount       withholding, net of credit notes
    psvb.A.150.base  ….amount        the same at another rate than the law's, in hundredths of a percent
    reductions                       what was taken off prices, net of credit notes, and rebates granted afterwards (RRR)
    nature.COR.n  nature.COR.ttc     credit notes of a nature, their total; positive
    stamp                            stamp duty on payments in cash
    incomplete                       attempts begun on the machine that did not end certified

No key ever holds zero, so two tallies that mean the same are equal.
"""

from daemon.core.invoice.invoice import EDITION
from daemon.core.invoice.rules import PSVB_RATES
from daemon.core.ledger.attempt import Record, is_marked, was_not_sent
from daemon.core.ledger.book import Tally


def contribution(record: Record) -> Tally:
    """The tally of one ended attempt; empty for an adopted one, whose lines are unknown."""
    if not record.invoice.items:
        return {}
    if record.state == "certified":
        return _certified(record)
    if record.state in ("refused", "abandoned"):
        return {} if was_not_sent(record.reason) else {"incomplete": 1}
    raise ValueError(f"an attempt in state {record.state} adds to no total")


def _certified(record: Record) -> Tally:
    invoice, kind = record.invoice, record.type
    sign = -1 if invoice.is_credit else 1
    tally: Tally = {f"{kind}.n": 1, f"{kind}.ttc": record.total_ttc}
    for line in invoice.taxes:
        key = f"{kind}.{line.group}"
        tally[f"{key}.ht"] = line.ht
        tally[f"{key}.tva"] = line.tva
        tally[f"{key}.ttc"] = line.ttc
    for payment in invoice.payments:
        key = f"pay.{payment.method}"
        tally[key] = tally.get(key, 0) + sign * payment.amount
    tally["specific"] = sign * invoice.specific_tax
    tally["reductions"] = sign * invoice.discount
    tally["test"] = int(is_marked(invoice))
    for psvb in invoice.withholdings:
        # Where the edition before wrote another rate, its totals stay as they were.
        is_of_law = invoice.edition < EDITION or psvb.rate == PSVB_RATES[psvb.group]
        key = f"psvb.{psvb.group}" if is_of_law else f"psvb.{psvb.group}.{psvb.rate}"
        tally[f"{key}.base"] = sign * psvb.base
        tally[f"{key}.amount"] = sign * psvb.amount
    if invoice.edition:
        tally["stamp"] = invoice.stamp_duty
        if invoice.is_credit:
            tally[f"nature.{invoice.nature}.n"] = 1
            tally[f"nature.{invoice.nature}.ttc"] = record.total_ttc
        if invoice.is_rebate:
            tally["reductions"] += record.total_ttc
    return {key: value for key, value in tally.items() if value}


def add(a: Tally, b: Tally) -> Tally:
    total = dict(a)
    for key, value in b.items():
        total[key] = total.get(key, 0) + value
    return {key: value for key, value in total.items() if value}


def subtract(a: Tally, b: Tally) -> Tally:
    return add(a, {key: -value for key, value in b.items()})


def accumulate(running: Tally, tally: Tally) -> None:
    """`add` in place, for long sums."""
    for key, value in tally.items():
        total = running.get(key, 0) + value
        if total:
            running[key] = total
        else:
            del running[key]
