"""The X, Z and A reports and the history record: the shapes of the service contract, built from tallies alone.

Amounts are whole XOF. `total_*`, `by_group`, `by_payment`, `specific_tax` and `psvb` are net: sales minus credit notes.
`by_type` and `by_type_and_group` are positive for every type, and credit notes count in `certs_count`. Lists are sorted
by letter and leave out what does not occur (decision 17).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from daemon.core.clock import millis_text
from daemon.core.invoice.invoice import CREDITS, PAYMENT_LABELS, PAYMENT_METHODS, SALES
from daemon.core.invoice.taxes import PSVB_RATES, percent
from daemon.core.ledger.book import Aggregate, Book, Tally
from daemon.core.ledger.closure import Closure
from daemon.core.ledger.entries import NO_CASH, CashTotal
from daemon.core.ledger.tally import subtract
from daemon.core.machine.state import FiscalCounters

Labels = Mapping[str, str]


class GroupTotal(msgspec.Struct, frozen=True):
    group: str
    ht: int
    tva: int
    ttc: int


class TypeTotal(msgspec.Struct, frozen=True):
    invoice_type: str
    count: int
    total_ttc: int


class TypeGroupTotal(msgspec.Struct, frozen=True):
    invoice_type: str
    group: str
    ht: int
    tva: int
    ttc: int


class PaymentTotal(msgspec.Struct, frozen=True):
    method: str
    label: str
    amount: int


class CreditNotes(msgspec.Struct, frozen=True):
    count: int
    total: int


class PsvbTotal(msgspec.Struct, frozen=True):
    """`rate` in percent."""

    group: str
    base: int
    rate: int | float
    amount: int


class CashDrawer(msgspec.Struct, frozen=True):
    """`expected` is what the period should have left in the drawer: cash payments + deposits - withdrawals."""

    deposits: int
    withdrawals: int
    expected: int


class McfCounters(msgspec.Struct, frozen=True):
    tc: int
    fvc: int
    frc: int


class ClosureSummary(msgspec.Struct, frozen=True):
    z_number: int
    period_start: str
    period_end: str
    total_ttc: int
    certs_count: int


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Of whom a report is, and what its certifications come to."""

    kind: str
    nim: str
    certs_count: int
    """sales and credit notes"""
    total_ttc: int
    total_ht: int
    total_tva: int


class Totals(Sums, frozen=True, kw_only=True):
    """What every report says of its certifications."""

    by_group: tuple[GroupTotal, ...]
    by_type: tuple[TypeTotal, ...]
    by_type_and_group: tuple[TypeGroupTotal, ...]
    by_payment: tuple[PaymentTotal, ...]
    credit_notes: CreditNotes
    specific_tax: int
    psvb: tuple[PsvbTotal, ...]
    incomplete: int
    """attempts begun and not certified"""
    reductions: int = 0
    cash: CashDrawer | msgspec.UnsetType = msgspec.UNSET
    """Unset in a Z of a version that did not know of cash."""
    test: int | msgspec.UnsetType = msgspec.UNSET
    """Of `certs_count`, what a real machine has certified in test mode, without fiscal value; unset when none."""


class Period(Totals, frozen=True, kw_only=True):
    """A period of a book; `fvc_start` and `fvc_end` are the range of the sales counter in it."""

    period_start: str
    period_end: str
    fvc_start: int
    fvc_end: int


class XReport(Period, frozen=True, kw_only=True):
    kind: Literal["X"]


class ZReport(Period, frozen=True, kw_only=True):
    """`chain_previous` is the hash, in hex, of what stands before the closure in its book: what it is chained to.

    `unexplained` counts invoices found on the machine in the period that this ledger did not make.
    """

    kind: Literal["Z"]
    z_number: int
    report_id: str
    created_at: str
    mcf_counters: McfCounters
    unexplained: int
    chain_previous: str
    without_machine: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the counters are those that the ledger knew last: the machine is no longer on this box. Unset where it was read."""


class AReport(Totals, frozen=True, kw_only=True):
    kind: Literal["A"]
    from_: str = msgspec.field(name="from")
    to: str
    closures: tuple[ClosureSummary, ...]


class HistoryRecord(msgspec.Struct, frozen=True):
    id: str
    kind: Literal["Z"]
    z_number: int
    period_start: str
    period_end: str
    certs_count: int
    total_ttc: int
    mcf_counters_end: McfCounters


def x_report(
    book: Book, aggregate: Aggregate, now: int, *, cash: CashTotal = NO_CASH, labels: Labels = PAYMENT_LABELS
) -> XReport:
    """The open period as it stands at `now` (ms); `cash` is what was moved in it."""
    return XReport(kind="X", **_period(book, aggregate, now, cash, labels))


def z_report(
    book: Book,
    aggregate: Aggregate,
    *,
    z_number: int,
    report_id: str,
    created_at: int,
    counters: FiscalCounters,
    unexplained: int,
    chain_previous: bytes,
    cash: CashTotal = NO_CASH,
    labels: Labels = PAYMENT_LABELS,
    without_machine: bool = False,
) -> ZReport:
    """`aggregate` holds every certification made before the closure (decision 14); `created_at` (ms) ends the period."""
    return ZReport(
        kind="Z",
        **_period(book, aggregate, created_at, cash, labels),
        z_number=z_number,
        report_id=report_id,
        created_at=millis_text(created_at),
        mcf_counters=_counters(counters),
        unexplained=unexplained,
        chain_previous=chain_previous.hex(),
        without_machine=without_machine or msgspec.UNSET,
    )


def a_report(
    book: Book,
    tally: Tally,
    closures: Sequence[Closure],
    start: int,
    end: int,
    *,
    cash: CashTotal = NO_CASH,
    labels: Labels = PAYMENT_LABELS,
) -> AReport:
    """`tally` is what was certified in `start <= t < end` (ms), `closures` what was closed in it (decision 19)."""
    return AReport(
        kind="A",
        **_totals(book, tally, cash, labels),
        from_=millis_text(start),
        to=millis_text(end),
        closures=tuple(_summary(closure) for closure in closures),
    )


def history_record(closure: Closure) -> HistoryRecord:
    return HistoryRecord(
        id=closure.report_id,
        kind="Z",
        z_number=closure.z_number,
        period_start=millis_text(closure.period_start),
        period_end=millis_text(closure.period_end),
        certs_count=closure.certs_count,
        total_ttc=closure.total_ttc,
        mcf_counters_end=_counters(closure.counters),
    )


def _period(book: Book, aggregate: Aggregate, end: int, cash: CashTotal, labels: Labels) -> dict[str, Any]:
    """Before any certification and any Z, the period begins where it ends (decision 16)."""
    start = aggregate.period_start or end
    return {
        **_totals(book, subtract(aggregate.running, aggregate.closed), cash, labels),
        "period_start": millis_text(start),
        "period_end": millis_text(max(start, end)),
        "fvc_start": aggregate.fvc_start or aggregate.fvc_end,
        "fvc_end": aggregate.fvc_end,
    }


def _totals(book: Book, tally: Tally, cash: CashTotal, labels: Labels) -> dict[str, Any]:
    tally = Counter(tally)  # what does not occur is 0
    types = _by_type(tally)
    groups = _by_group(tally)
    return {
        "nim": book.nim,
        "certs_count": sum(entry.count for entry in types),
        "total_ttc": sum(_sign(entry.invoice_type) * entry.total_ttc for entry in types),
        "total_ht": sum(entry.ht for entry in groups),
        "total_tva": sum(entry.tva for entry in groups),
        "by_group": groups,
        "by_type": types,
        "by_type_and_group": tuple(_type_group(tally, *pair) for pair in _type_groups(tally)),
        "by_payment": _by_payment(tally, labels),
        "credit_notes": _credit_notes(types),
        "specific_tax": tally["specific"],
        "psvb": _psvb(tally),
        "incomplete": tally["incomplete"],
        "reductions": tally["reductions"],
        "cash": _drawer(tally, cash),
        "test": tally["test"] or msgspec.UNSET,
    }


def _sign(invoice_type: str) -> int:
    return -1 if invoice_type in CREDITS else 1


def _by_type(tally: Tally) -> tuple[TypeTotal, ...]:
    return tuple(
        TypeTotal(kind, tally[f"{kind}.n"], tally[f"{kind}.ttc"])
        for kind in sorted(SALES + CREDITS)
        if f"{kind}.n" in tally
    )


_TYPE_AND_GROUP = re.compile(rf"({'|'.join(SALES + CREDITS)})\.([A-P])\.ttc")


def _type_groups(tally: Tally) -> list[tuple[str, str]]:
    """The pairs of invoice type and tax group that occur, sorted: a group's total is never zero where it does."""
    matches = (_TYPE_AND_GROUP.fullmatch(key) for key in tally)
    return sorted((match[1], match[2]) for match in matches if match is not None)


def _type_group(tally: Tally, kind: str, group: str) -> TypeGroupTotal:
    ht, tva, ttc = (tally[f"{kind}.{group}.{part}"] for part in ("ht", "tva", "ttc"))
    return TypeGroupTotal(kind, group, ht, tva, ttc)


def _by_group(tally: Tally) -> tuple[GroupTotal, ...]:
    sums: dict[str, list[int]] = {}
    for kind, group in _type_groups(tally):
        total = sums.setdefault(group, [0, 0, 0])
        for at, part in enumerate(("ht", "tva", "ttc")):
            total[at] += _sign(kind) * tally[f"{kind}.{group}.{part}"]
    return tuple(GroupTotal(group, *sums[group]) for group in sorted(sums))


def _by_payment(tally: Tally, labels: Labels) -> tuple[PaymentTotal, ...]:
    return tuple(
        PaymentTotal(method, labels.get(method, method), tally[f"pay.{method}"])
        for method in sorted(PAYMENT_METHODS)
        if f"pay.{method}" in tally
    )


def _credit_notes(types: Sequence[TypeTotal]) -> CreditNotes:
    credits_ = [entry for entry in types if entry.invoice_type in CREDITS]
    return CreditNotes(sum(entry.count for entry in credits_), sum(entry.total_ttc for entry in credits_))


def _psvb(tally: Tally) -> tuple[PsvbTotal, ...]:
    return tuple(
        PsvbTotal(group, tally[f"psvb.{group}.base"], percent(rate), tally[f"psvb.{group}.amount"])
        for group, rate in PSVB_RATES.items()
        if f"psvb.{group}.base" in tally or f"psvb.{group}.amount" in tally  # credits may leave a rounding
    )


CASH_METHOD = "E"


def _drawer(tally: Tally, cash: CashTotal) -> CashDrawer:
    paid = tally[f"pay.{CASH_METHOD}"]
    return CashDrawer(cash.deposits, cash.withdrawals, paid + cash.deposits - cash.withdrawals)


def _counters(counters: FiscalCounters) -> McfCounters:
    return McfCounters(counters.tc, counters.fvc, counters.frc)


def _summary(closure: Closure) -> ClosureSummary:
    return ClosureSummary(
        closure.z_number,
        millis_text(closure.period_start),
        millis_text(closure.period_end),
        closure.total_ttc,
        closure.certs_count,
    )
