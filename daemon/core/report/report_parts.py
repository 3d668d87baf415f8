"""What the reports X, Z and A are made of: one line of each of their tables."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from daemon.core.machine.state import FiscalCounters


class GroupTotal(msgspec.Struct, frozen=True):
    group: Annotated[str, Meta(description="Tax group")]
    ht: Annotated[int, Meta(description="Without VAT")]
    tva: Annotated[int, Meta(description="VAT")]
    ttc: Annotated[int, Meta(description="With VAT; `ht + tva = ttc`, always")]


class TypeTotal(msgspec.Struct, frozen=True):
    invoice_type: Annotated[str, Meta(description="Invoice type")]
    count: Annotated[int, Meta(description="How many")]
    total_ttc: Annotated[int, Meta(description="Positive, with VAT")]


class TypeGroupTotal(msgspec.Struct, frozen=True):
    invoice_type: Annotated[str, Meta(description="Invoice type")]
    group: Annotated[str, Meta(description="Tax group")]
    ht: Annotated[int, Meta(description="Without VAT")]
    tva: Annotated[int, Meta(description="VAT")]
    ttc: Annotated[int, Meta(description="With VAT; `ht + tva = ttc`, always")]


class PaymentTotal(msgspec.Struct, frozen=True):
    method: Annotated[str, Meta(description="Letter")]
    label: Annotated[str, Meta(description="For people")]
    amount: Annotated[int, Meta(description="XOF, net")]


class NatureTotal(msgspec.Struct, frozen=True):
    nature: Annotated[str, Meta(description="COR, RAN, RAM or RRR")]
    label: Annotated[str, Meta(description="For people")]
    count: Annotated[int, Meta(description="How many")]
    total: Annotated[int, Meta(description="Positive, with VAT")]


class CreditNotes(msgspec.Struct, frozen=True):
    count: Annotated[int, Meta(description="How many")]
    total: Annotated[int, Meta(description="Positive, with VAT")]


class Withholding(msgspec.Struct, frozen=True):
    """PSVB: `rate` in percent, `base` and `amount` in whole XOF."""

    group: Annotated[str, Meta(description="PSVB group A…D")]
    base: Annotated[int, Meta(description="What it is taken on, XOF")]
    rate: Annotated[int | float, Meta(description="Percent")]
    amount: Annotated[int, Meta(description="Withheld, XOF, rounded half up")]


class CashDrawer(msgspec.Struct, frozen=True):
    """`expected` is what the period should have left in the drawer: cash payments + stamp duty + deposits - withdrawals."""

    deposits: Annotated[int, Meta(description="Put into the drawer, XOF")]
    withdrawals: Annotated[int, Meta(description="Taken out, XOF, positive")]
    expected: Annotated[int, Meta(description="Cash payments + stamp duty + deposits - withdrawals of the period")]


class CounterValues(msgspec.Struct, frozen=True):
    tc: Annotated[int, Meta(description="All transactions the machine recorded, its own reports included")]
    fvc: Annotated[int, Meta(description="Sales invoices (FV, FT)")]
    frc: Annotated[int, Meta(description="Credit notes")]


class ClosureSummary(msgspec.Struct, frozen=True):
    z_number: Annotated[int, Meta(description="Sequential for each NIM, from 1")]
    period_start: Annotated[str, Meta(description="Start of the period")]
    period_end: Annotated[str, Meta(description="End of the period")]
    total_ttc: Annotated[int, Meta(description="With VAT, net")]
    certs_count: Annotated[int, Meta(description="Certifications in it")]


def counter_values(counters: FiscalCounters) -> CounterValues:
    return CounterValues(counters.tc, counters.fvc, counters.frc)
