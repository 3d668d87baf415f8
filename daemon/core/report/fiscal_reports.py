"""The X, Z and A reports and the history record: the shapes of the service contract, built from tallies alone.

Amounts are whole XOF. `total_*`, `by_group`, `by_payment`, `specific_tax` and `psvb` are net: sales minus credit notes.
`by_type` and `by_type_and_group` are positive for every type, and credit notes count in `certs_count`. Lists are sorted
by letter and leave out what does not occur (decision 17).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from common.wire.closure import (
    CashCount,
    CashDrawer,
    CounterValues,
    CreditNotes,
    GroupTotal,
    NatureTotal,
    PaymentTotal,
    TypeGroupTotal,
    TypeTotal,
    WaitingSales,
    Withholding,
)
from daemon.core.clock import millis_text
from daemon.core.invoice.invoice import CASH, CREDITS, NATURES, PAYMENT_LABELS, PAYMENT_METHODS, SALES
from daemon.core.invoice.rules import PSVB_RATES
from daemon.core.invoice.taxes import percent
from daemon.core.ledger.book import Aggregate, Book, Closure, Tally
from daemon.core.ledger.entries import NO_CASH, CashTotal
from daemon.core.ledger.tally import subtract
from daemon.core.machine.state import FiscalCounters
from daemon.core.report.report_parts import ClosureSummary, counter_values

Labels = Mapping[str, str]
_WITHHELD = re.compile(r"psvb\.([A-D](?:\.[0-9]+)?)\.(?:base|amount)")
_TYPE_AND_GROUP = re.compile(rf"({'|'.join(SALES + CREDITS)})\.([A-P])\.ttc")


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Of whom a report is, and what its certifications come to."""

    kind: Annotated[str, Meta(description="X, Z, A, month or year")]
    nim: Annotated[str, Meta(description="The NIM of the path")]
    certs_count: Annotated[int, Meta(description="Certifications, credit notes included")]
    total_ttc: Annotated[int, Meta(description="With VAT, net: sales minus credit notes")]
    total_ht: Annotated[int, Meta(description="Without VAT, net")]
    total_tva: Annotated[int, Meta(description="VAT, net")]


class Totals(Sums, frozen=True, kw_only=True):
    """What every report says of its certifications."""

    by_group: Annotated[
        tuple[GroupTotal, ...],
        Meta(description="By tax group, net, sorted by letter; groups that do not occur are left out"),
    ]
    by_type: Annotated[
        tuple[TypeTotal, ...], Meta(description="By invoice type, sorted; totals are positive, for credit notes too")
    ]
    by_type_and_group: Annotated[
        tuple[TypeGroupTotal, ...], Meta(description="By invoice type and tax group together; positive")
    ]
    by_payment: Annotated[
        tuple[PaymentTotal, ...], Meta(description="By payment method, net of what credit notes gave back")
    ]
    credit_notes: Annotated[CreditNotes, Meta(description="Credit notes alone: how many, and their total")]
    specific_tax: Annotated[int, Meta(description="Specific tax certified separately, net")]
    psvb: Annotated[tuple[Withholding, ...], Meta(description="Withholding by group and rate, net")]
    incomplete: Annotated[int, Meta(description="Invoices begun on the machine and not certified")]
    reductions: Annotated[
        int,
        Meta(
            description="What was taken off prices (`discount`, `originalPrice`), with VAT, net, and rebates granted afterwards (RRR); 0 in a Z of before"
        ),
    ] = 0
    by_nature: Annotated[
        tuple[NatureTotal, ...], Meta(description="Credit notes by their nature, without those of mcfd 0.1")
    ] = ()
    isfs: Annotated[
        tuple[str, ...], Meta(description="The ISFs under which it was certified, without those of mcfd 0.1")
    ] = ()
    stamp_duty: Annotated[int, Meta(description="Stamp duty on payments in cash, beside the totals")] = 0
    cash: Annotated[
        CashDrawer | msgspec.UnsetType,
        Meta(description="Cash moved beside sales (`POST …/cash`), and what is expected in the drawer"),
    ] = msgspec.UNSET
    test: Annotated[
        int | msgspec.UnsetType,
        Meta(
            description="How many of them a real machine certified in test mode, without fiscal value; left out when none"
        ),
    ] = msgspec.UNSET
    stands_for: Annotated[
        str | msgspec.UnsetType,
        Meta(
            description="Of a spare machine: the machine in whose place it has certified in this time; left out for all others"
        ),
    ] = msgspec.UNSET


class Period(Totals, frozen=True, kw_only=True):
    """A period of a book; `fvc_start` and `fvc_end` are the range of the sales counter in it."""

    period_start: Annotated[str, Meta(description="The previous Z, or the first certification")]
    period_end: Annotated[str, Meta(description="Now; for a Z, the instant of closure")]
    fvc_start: Annotated[int, Meta(description="First FVC of the period; without a sale, the last one known")]
    fvc_end: Annotated[int, Meta(description="Last FVC of the period; without a sale, the last one known")]
    waiting: Annotated[
        WaitingSales | msgspec.UnsetType,
        Meta(
            description="Sales that are certified later, outside every total; left out in a report on days, and of mcfd 0.2"
        ),
    ] = msgspec.UNSET


class XReport(Period, frozen=True, kw_only=True):
    kind: Annotated[Literal["X"], Meta(description="X")]


class ZReport(Period, frozen=True, kw_only=True):
    """`chain_previous` is the hash, in hex, of what stands before the closure in its book: what it is chained to.

    `unexplained` counts invoices found on the machine in the period that this ledger did not make.
    """

    kind: Annotated[Literal["Z"], Meta(description="Z")]
    z_number: Annotated[int, Meta(description="Sequential for each NIM, from 1")]
    report_id: Annotated[str, Meta(description="UUID of the closure")]
    created_at: Annotated[str, Meta(description="When it was closed")]
    mcf_counters: Annotated[CounterValues, Meta(description="The machine's counters, read live at the closure")]
    unexplained: Annotated[int, Meta(description="Invoices found on the machine that this ledger did not make")]
    chain_previous: Annotated[
        str, Meta(description="SHA-256, in hex, of what stands before it in the book: what the closure is chained to")
    ]
    without_machine: Annotated[
        bool | msgspec.UnsetType,
        Meta(
            description="true where the machine is no longer on the box and `mcf_counters` are those known last; else left out"
        ),
    ] = msgspec.UNSET
    cash_count: Annotated[
        CashCount | msgspec.UnsetType, Meta(description="Left out where the drawer was not counted")
    ] = msgspec.UNSET
    letterhead: Annotated[
        str, Meta(description="Which letterhead stands on its paper, for ever; empty where it is the present one")
    ] = ""


class AReport(Totals, frozen=True, kw_only=True):
    kind: Annotated[Literal["A"], Meta(description="A")]
    from_: Annotated[str, Meta(description="Start of the range, included")] = msgspec.field(name="from")
    to: Annotated[str, Meta(description="End of the range, excluded")]
    closures: Annotated[tuple[ClosureSummary, ...], Meta(description="Z closures created in the range")]


class HistoryRecord(msgspec.Struct, frozen=True):
    id: Annotated[str, Meta(description="`report_id` of the Z")]
    kind: Annotated[Literal["Z"], Meta(description="Z")]
    z_number: Annotated[int, Meta(description="Sequential for each NIM, from 1")]
    period_start: Annotated[str, Meta(description="Start of the period")]
    period_end: Annotated[str, Meta(description="End of the period")]
    certs_count: Annotated[int, Meta(description="Certifications in it")]
    total_ttc: Annotated[int, Meta(description="With VAT, net")]
    mcf_counters_end: Annotated[CounterValues, Meta(description="The machine's counters at the closure")]


def x_report(
    book: Book,
    aggregate: Aggregate,
    now: int,
    *,
    cash: CashTotal = NO_CASH,
    labels: Labels = PAYMENT_LABELS,
    isfs: Sequence[str] = (),
    waiting: WaitingSales | msgspec.UnsetType = msgspec.UNSET,
    stands_for: str = "",
) -> XReport:
    """The open period as it stands at `now` (ms); `cash` is what was moved in it."""
    period = _period(book, aggregate, now, cash, labels)
    return XReport(kind="X", **period, isfs=tuple(isfs), waiting=waiting, stands_for=stands_for or msgspec.UNSET)


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
    isfs: Sequence[str] = (),
    letterhead: str = "",
    without_machine: bool = False,
    waiting: WaitingSales | msgspec.UnsetType = msgspec.UNSET,
    counted: int | None = None,
    stands_for: str = "",
) -> ZReport:
    """The Z report. `aggregate` has every certification before the closure (decision 14); `created_at` (ms) ends the
    period; `counted`: cash in the drawer."""
    period = _period(book, aggregate, created_at, cash, labels)
    return ZReport(
        kind="Z",
        **period,
        cash_count=msgspec.UNSET if counted is None else CashCount(counted, counted - period["cash"].expected),
        isfs=tuple(isfs),
        letterhead=letterhead,
        z_number=z_number,
        report_id=report_id,
        created_at=millis_text(created_at),
        mcf_counters=counter_values(counters),
        unexplained=unexplained,
        chain_previous=chain_previous.hex(),
        without_machine=without_machine or msgspec.UNSET,
        waiting=waiting,
        stands_for=stands_for or msgspec.UNSET,
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
    isfs: Sequence[str] = (),
    stands_for: str = "",
) -> AReport:
    """`tally` is what was certified in `start <= t < end` (ms), `closures` what was closed in it (decision 19)."""
    return AReport(
        kind="A",
        **totals_of(book, tally, cash, labels),
        isfs=tuple(isfs),
        from_=millis_text(start),
        to=millis_text(end),
        closures=tuple(
            ClosureSummary(
                each.z_number,
                millis_text(each.period_start),
                millis_text(each.period_end),
                each.total_ttc,
                each.certs_count,
            )
            for each in closures
        ),
        stands_for=stands_for or msgspec.UNSET,
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
        mcf_counters_end=counter_values(closure.counters),
    )


def _period(book: Book, aggregate: Aggregate, end: int, cash: CashTotal, labels: Labels) -> dict[str, Any]:
    """Before any certification and any Z, the period begins where it ends (decision 16)."""
    start = aggregate.period_start or end
    return {
        **totals_of(book, subtract(aggregate.running, aggregate.closed), cash, labels),
        "period_start": millis_text(start),
        "period_end": millis_text(max(start, end)),
        "fvc_start": aggregate.fvc_start or aggregate.fvc_end,
        "fvc_end": aggregate.fvc_end,
    }


def totals_of(book: Book, tally: Tally, cash: CashTotal, labels: Labels) -> dict[str, Any]:
    """The fields of `Totals` but `isfs`."""
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
        "by_nature": _by_nature(tally),
        "specific_tax": tally["specific"],
        "psvb": _psvb(tally),
        "incomplete": tally["incomplete"],
        "reductions": tally["reductions"],
        "stamp_duty": tally["stamp"],
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


def _by_nature(tally: Tally) -> tuple[NatureTotal, ...]:
    return tuple(
        NatureTotal(nature, label, tally[f"nature.{nature}.n"], tally[f"nature.{nature}.ttc"])
        for nature, label in NATURES.items()
        if f"nature.{nature}.n" in tally
    )


def _psvb(tally: Tally) -> tuple[Withholding, ...]:
    """Of each group and rate; credits may leave a rounding of one of the two."""
    found = {match[1] for match in map(_WITHHELD.fullmatch, tally) if match is not None}
    rates = {key: int(key[2:]) if key[2:] else PSVB_RATES[key] for key in found}
    return tuple(
        Withholding(key[0], tally[f"psvb.{key}.base"], percent(rate), tally[f"psvb.{key}.amount"])
        for key, rate in sorted(rates.items())
    )


def _drawer(tally: Tally, cash: CashTotal) -> CashDrawer:
    paid = tally[f"pay.{CASH}"] + tally["stamp"]
    return CashDrawer(cash.deposits, cash.withdrawals, paid + cash.deposits - cash.withdrawals)
