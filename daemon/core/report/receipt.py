"""The answer to certify: the table of the service contract, with the additions of decisions 4, 9 and 10.

It is made from the ledger's record alone, so a repeated answer equals the first one byte for byte.
"""

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from common.language import Language
from common.wire.closure import Withholding
from daemon.core.clock import millis_text
from daemon.core.invoice.invoice import NO_ITEM, Invoice, Psvb, TaxLine, Warn
from daemon.core.invoice.taxes import percent
from daemon.core.invoice.unknown import CODE as UNKNOWN_FIELD
from daemon.core.ledger.attempt import NOT_STATED, Record
from daemon.core.machine.state import same_machine, short_nim


class TaxDetail(msgspec.Struct, frozen=True):
    """`label` as `B - TVA 18%`: existing clients read the rate from it."""

    group: Annotated[str, Meta(description="Tax group")]
    label: Annotated[str, Meta(description="For people")]
    ht: Annotated[int, Meta(description="Without VAT")]
    tva: Annotated[int, Meta(description="VAT")]
    ttc: Annotated[int, Meta(description="With VAT; `ht + tva = ttc`, always")]


WARNINGS: Final = (
    *("AMOUNT_ROUNDED", "CODE_NOT_TOLD", "CREDIT_NOTE_NATURE_ASSUMED", "DOCUMENT_FAILED", "LINES_ROUNDED"),
    *("NOT_AFTER_HEADER_IGNORED", "ORIGINAL_GUESSED", "ORIGINAL_NOT_CHECKED", "PAYMENT_ADJUSTED", "PSVB_LEFT_OUT"),
    *("QUANTITY_AS_ONE", "SPECIFIC_TAX_FOLDED", "STAMP_DUTY_DIFFERS", "STAMP_DUTY_LEFT_OUT", "TEST_HEADER_IGNORED"),
    *("TEST_MODE", "TEXT_CUT", "UNIT_PRICE_DERIVED", "UNKNOWN_FIELD", "VAT_RATE_CHANGED"),
)
"""Codes of `Adjustment`."""


class Adjustment(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the `warnings`; `item` is the index of the item, left out when the whole invoice is meant."""

    code: Annotated[
        str,
        Meta(
            description=f"What happened, for programs. A later version may have more of them; these are known: {', '.join(WARNINGS)}"
        ),
    ]
    message: Annotated[str, Meta(description="What happened, for people")]
    item: Annotated[int | None, Meta(description="Index of the item; left out for the whole invoice")] = None
    field: Annotated[
        str, Meta(description="The field that it is about, as `items[2].prix`; left out where it is about none")
    ] = ""


class DeferredData(msgspec.Struct, frozen=True, rename="camel"):
    """Of a sale that was certified later."""

    sold_at: Annotated[str, Meta(description="When it was sold")]
    reason: Annotated[
        str,
        Meta(
            description="`requested` by the till, or why the machine was out of order: line_lost, no_answer, blocked, deactivated, attention"
        ),
    ]
    outage: Annotated[int, Meta(description="Number of the outage in the register, 0 for none")]
    outage_nim: Annotated[
        str | msgspec.UnsetType,
        Meta(description="The machine whose outage it is, where the other one of a pair has certified; else left out"),
    ] = msgspec.UNSET


class PaperDocument(msgspec.Struct, frozen=True, rename="camel"):
    """An invoice, or the slip of a sale that waits, on paper, within the answer of certify."""

    media_type: Annotated[str, Meta(description="As `application/pdf`")]
    content: Annotated[bytes, Meta(description="The document in Base64")]


class Receipt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`specific_tax` is what was certified separately; `certified_at` is our own time, `date_time` the machine's."""

    code_secef: Annotated[
        str,
        Meta(description="The certification code, 24 characters without dashes; begins with TESTFACT in the sandbox"),
    ]
    invoice_number: Annotated[str, Meta(description="The till's number")]
    invoice_type: Annotated[str, Meta(description="FV, FT, EV, ET, FA or EA")]
    total_ttc: Annotated[int, Meta(description="The certified total")]
    nim: Annotated[str, Meta(description="What the machine was called when it certified, with its activation counter")]
    nim_short: Annotated[str, Meta(description="Without the activation counter")]
    ifu: Annotated[str, Meta(description="IFU of the taxpayer, as the machine has it")]
    date_time: Annotated[str, Meta(description="The machine's own 14 digits YYYYMMDDhhmmss")]
    qr_content: Annotated[str, Meta(description="What the QR code of the ticket holds")]
    tax_details: Annotated[tuple[TaxDetail, ...], Meta(description="VAT by tax group")]
    tc: Annotated[int, Meta(description="All transactions the machine recorded, its own reports included")]
    fvc: Annotated[int, Meta(description="Sales invoices (FV, FT)")]
    frc: Annotated[int, Meta(description="Credit notes")]
    counters: Annotated[
        str | msgspec.UnsetType,
        Meta(
            description="As it has to stand on paper, `291/409 FV`: the counter of the type, all transactions, the type; `?/409 EV` where the machine did not tell the first. Left out in an answer that mcfd 0.1.0 gave"
        ),
    ] = msgspec.UNSET
    specific_tax: Annotated[int, Meta(description="Specific tax that was certified separately")]
    psvb: Annotated[
        Withholding | None,
        Meta(description="Withholding, when `psvbGroup` was sent; null where items name several groups"),
    ]
    psvb_by_group: Annotated[
        tuple[Withholding, ...] | msgspec.UnsetType,
        Meta(description="All withholdings, by group; left out in an answer of mcfd 0.1"),
    ] = msgspec.UNSET
    stamp_duty: Annotated[
        int | msgspec.UnsetType,
        Meta(description="To be collected in cash on top of `totalTtc`; left out in an answer of mcfd 0.1"),
    ] = msgspec.UNSET
    warnings: Annotated[
        tuple[Adjustment, ...], Meta(description="What was folded, rounded or adjusted instead of refused")
    ]
    certified_at: Annotated[str, Meta(description="When mcfd had it on disk")]
    duration_ms: Annotated[int, Meta(description="From the request's arrival to the durable outcome")]
    deferred: Annotated[
        DeferredData | msgspec.UnsetType, Meta(description="Of a sale that was certified later; else left out")
    ] = msgspec.UNSET
    copies: Annotated[
        int | msgspec.UnsetType,
        Meta(description="Duplicates that were given out; left out where there are none, and in the answer to a till"),
    ] = msgspec.UNSET
    document: Annotated[
        PaperDocument | msgspec.UnsetType, Meta(description="With `?document=`: the invoice on paper; else left out")
    ] = msgspec.UNSET


class Preview(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to a dry run (decision 40); the machine's VAT may differ by a franc for each item."""

    invoice_number: Annotated[str, Meta(description="The till's number")]
    invoice_type: Annotated[str, Meta(description="FV, FT, EV, ET, FA or EA")]
    total_ttc: Annotated[int, Meta(description="The total that would be certified")]
    tax_details: Annotated[tuple[TaxDetail, ...], Meta(description="VAT by tax group")]
    specific_tax: Annotated[int, Meta(description="Specific tax that would be certified separately")]
    psvb: Annotated[
        Withholding | None,
        Meta(description="Withholding, when `psvbGroup` was sent; null where items name several groups"),
    ]
    psvb_by_group: Annotated[tuple[Withholding, ...], Meta(description="All withholdings, by group")]
    stamp_duty: Annotated[int, Meta(description="To be collected in cash on top of `totalTtc`")]
    warnings: Annotated[tuple[Adjustment, ...], Meta(description="What would be folded, rounded or adjusted")]
    dry_run: Annotated[bool, Meta(description="Always true: nothing was certified")]


def preview(invoice: Invoice, language: Language = "en") -> Preview:
    return Preview(
        invoice_number=invoice.number,
        invoice_type=invoice.type,
        total_ttc=invoice.total_ttc,
        tax_details=tuple(_tax_detail(line) for line in invoice.taxes),
        specific_tax=invoice.specific_tax,
        psvb=_withholding(invoice),
        psvb_by_group=tuple(map(_of_group, invoice.withholdings)),
        stamp_duty=invoice.stamp_duty,
        warnings=adjustments(invoice.warnings, language),
        dry_run=True,
    )


def receipt(record: Record, language: Language = "en", *, copies: int = 0) -> Receipt:
    """The receipt of a certified record. `language`: of the warnings; `copies`: number of duplicates."""
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
        psvb=_withholding(record.invoice),
        psvb_by_group=tuple(map(_of_group, record.invoice.withholdings)) if record.invoice.edition else msgspec.UNSET,
        stamp_duty=record.invoice.stamp_duty if record.invoice.edition else msgspec.UNSET,
        warnings=adjustments(record.invoice.warnings, language),
        # As the machine sent it, also after a repair of the time.
        certified_at=millis_text(record.chained_at or record.ended_at),
        duration_ms=record.duration_ms,
        deferred=_deferred(record),
        copies=copies or msgspec.UNSET,
    )


def _deferred(record: Record) -> DeferredData | msgspec.UnsetType:
    if (found := record.invoice.deferred) is None:
        return msgspec.UNSET
    is_of_other = found.nim and not same_machine(found.nim, record.nim)
    word = DeferredData(millis_text(found.sold_at), found.reason, found.outage)
    return msgspec.structs.replace(word, outage_nim=found.nim) if is_of_other else word


def counters_text(record: Record) -> str:
    """`?` for the counter of the type where it is not known."""
    has_counters = record.fc is not None and record.fc != NOT_STATED
    return f"{record.fc if has_counters else '?'}/{record.counters.tc if record.counters else '?'} {record.type}"


def _tax_detail(line: TaxLine) -> TaxDetail:
    return TaxDetail(line.group, f"{line.group} - TVA {percent(line.rate)}%", line.ht, line.tva, line.ttc)


def _withholding(invoice: Invoice) -> Withholding | None:
    """None also for several."""
    return None if invoice.psvb is None or invoice.more_psvb else _of_group(invoice.psvb)


def _of_group(psvb: Psvb) -> Withholding:
    return Withholding(psvb.group, psvb.base, percent(psvb.rate), psvb.amount)


def adjustments(warnings: Iterable[Warn], language: Language = "en") -> tuple[Adjustment, ...]:
    return tuple(
        Adjustment(
            warn.code,
            warn.text.in_language(language),
            None if warn.item == NO_ITEM else warn.item,
            warn.field or _field_in_words(warn),
        )
        for warn in warnings
    )


def _field_in_words(warn: Warn) -> str:
    """Of an unknown field, in a ledger of 0.1: the words begin with it, and the answer of then named it."""
    return warn.message.rpartition(": is not a known field")[0] if warn.code == UNKNOWN_FIELD else ""
