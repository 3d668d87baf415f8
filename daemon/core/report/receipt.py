"""The certify answer: the table of the service contract, with what decisions 4, 9 and 10 and existing clients add to it.

It is made of the ledger's record alone, so an answer given again is the first one, byte for byte, whatever the machine is called since.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from common.language import Language
from common.language.stored import retold
from daemon.core.clock import millis_text
from daemon.core.invoice.invoice import NO_ITEM, Psvb, TaxLine, Warn
from daemon.core.invoice.taxes import percent
from daemon.core.invoice.unknown import field_of
from daemon.core.ledger.attempt import UNTOLD, Record
from daemon.core.machine.nim import short_nim


class TaxDetail(msgspec.Struct, frozen=True):
    """`label` as `B - TVA 18%`: existing clients read the rate from it."""

    group: str
    label: str
    ht: int
    tva: int
    ttc: int


class Withholding(msgspec.Struct, frozen=True):
    """PSVB: `rate` in percent, `base` and `amount` in whole XOF."""

    group: str
    base: int
    rate: int | float
    amount: int


class Adjustment(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the `warnings`; `item` is the index of the item, left out when the whole invoice is meant."""

    code: str
    message: str
    item: int | None = None
    field: str = ""
    """UNKNOWN_FIELD: the path of the field, as `items[2].prix`."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`specific_tax` is what was certified separately; `certified_at` is our own time, `date_time` the machine's."""

    code_secef: str
    invoice_number: str
    invoice_type: str
    total_ttc: int
    nim: str
    nim_short: str
    ifu: str
    date_time: str
    qr_content: str
    tax_details: tuple[TaxDetail, ...]
    tc: int
    fvc: int
    frc: int
    counters: str | msgspec.UnsetType = msgspec.UNSET
    """As on paper (SECeF 2.10.4), `291/409 FV`: the counter of the type, all transactions, the type. Unset in what 0.1.0 told."""
    specific_tax: int
    psvb: Withholding | None
    warnings: tuple[Adjustment, ...]
    certified_at: str
    duration_ms: int


def receipt(record: Record, language: Language = "en") -> Receipt:
    """Of a certified record; `language` is that of the warnings' messages."""
    counters = record.counters
    if record.state != "certified" or counters is None:
        raise ValueError(f"an attempt in state {record.state} has no receipt")
    short = short_nim(record.nim)
    return Receipt(
        code_secef=record.code,
        date_time=record.machine_time,
        qr_content=f"BFSECEF01;{short};{record.code};{record.ifu};{record.machine_time}",
        nim=record.nim,
        nim_short=short,
        ifu=record.ifu,
        invoice_number=record.number,
        invoice_type=record.type,
        total_ttc=record.total_ttc,
        tax_details=tuple(_tax_detail(line) for line in record.invoice.taxes),
        tc=counters.tc,
        fvc=counters.fvc,
        frc=counters.frc,
        counters=msgspec.UNSET if record.fc is None else counters_text(record),
        specific_tax=record.invoice.specific_tax,
        psvb=_withholding(record.invoice.psvb),
        warnings=adjustments(record.invoice.warnings, language),
        # As it was told, also after a repair of the time.
        certified_at=millis_text(record.chained_at or record.ended_at),
        duration_ms=record.duration_ms,
    )


def counters_text(record: Record) -> str:
    """`?` for the counter of the type where it is not known."""
    known = record.fc is not None and record.fc != UNTOLD
    return f"{record.fc if known else '?'}/{record.counters.tc if record.counters else '?'} {record.type}"


def _tax_detail(line: TaxLine) -> TaxDetail:
    return TaxDetail(line.group, f"{line.group} - TVA {percent(line.rate)}%", line.ht, line.tva, line.ttc)


def _withholding(psvb: Psvb | None) -> Withholding | None:
    return None if psvb is None else Withholding(psvb.group, psvb.base, percent(psvb.rate), psvb.amount)


def adjustments(warnings: Iterable[Warn], language: Language = "en") -> tuple[Adjustment, ...]:
    return tuple(
        Adjustment(
            warn.code, retold(warn.message, language), None if warn.item == NO_ITEM else warn.item, field_of(warn)
        )
        for warn in warnings
    )
