"""The electronic journal: its queries, and one of its entries in JSON.

An entry is one attempt that a till made, whatever became of it. Its request is what went to the machine: what the
rules derived, folded or adjusted (decisions 1, 2, 4, 24) is in it, and the receipt's `warnings` say so."""

from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from common.language import Language
from common.language.reasons import from_stored
from daemon.core.clock import millis_text
from daemon.core.errors import without_paths
from daemon.core.invoice.invoice import Comment, Customer, Invoice, Item, Payment
from daemon.core.invoice.request import INVOICE_TEXTS, ITEM_TEXTS, texts_in
from daemon.core.invoice.taxes import percent
from daemon.core.ledger.attempt import AttemptState, Record, RecordState
from daemon.core.report.receipt import Receipt, receipt

Exact = Decimal
"""Goes out as a number of JSON."""

PRICE_DECIMALS = 2
QUANTITY_DECIMALS = 3


class Extent(msgspec.Struct, frozen=True):
    """The end of a book at one moment: its last seq, Z number and entry. A long read is limited to it, so that a later
    Z changes none of its rows."""

    seq: int
    z_number: int
    entry_id: int


class Page(msgspec.Struct, frozen=True):
    """A query: `start <= ended_at < end` (ms), seq below `before_seq` (0 for no limit) and above `after_seq`;
    optionally type (or several, with spaces), amount (whole XOF) and `part` of the number, or a `text` to look for in
    numbers, codes and customers. A Z after `upto_z` counts as open; None for no limit."""

    start: int
    end: int
    number: str = ""
    state: AttemptState | None = None
    before_seq: int = 0
    after_seq: int = 0
    limit: int = 100
    type: str = ""
    amount: int | None = None
    part: str = ""
    text: str = ""
    upto_z: int | None = None

    def fits(self, record: Record) -> bool:
        """Whether it is of that time (of its intent, while it has not ended), state, type and amount."""
        return (
            self.start <= (record.ended_at or record.begun_at) < self.end
            and self.state in (None, record.state)
            and (not self.type or record.type in self.type.split())
            and self.amount in (None, record.total_ttc)
        )


# Kept as arrays in the ledger, shown by the names of their fields. (A docstring here would be in the OpenAPI document.)
class RequestCustomer(Customer, frozen=True, array_like=False, rename="camel", omit_defaults=True):
    client_type: Annotated[str, Meta(description="CC, PP, PM or PC")]  # type: ignore[assignment]  # also when it is the usual one


class RequestPayment(Payment, frozen=True, array_like=False):
    pass


class RequestComment(Comment, frozen=True, array_like=False):
    pass


class RequestItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`tax_rate` in percent."""

    name: Annotated[str, Meta(description="Label on the ticket")]
    item_type: Annotated[str, Meta(description="LOCBIE, LOCSER, IMPBIE or IMPSER")]
    tax_group: Annotated[str, Meta(description="A…P")]
    tax_rate: Annotated[int | float, Meta(description="Percent")]
    unit_price: Annotated[Exact, Meta(description="As the machine got it; without VAT in HT mode")]
    quantity: Annotated[Exact, Meta(description="At most 3 decimals")]
    amount_ttc: Annotated[int, Meta(description="Whole XOF, with VAT")]
    specific_tax: Annotated[int, Meta(description="When it was certified separately")] = 0
    specific_tax_rate: Annotated[Exact | msgspec.UnsetType, Meta(description="Of one unit, XOF")] = msgspec.UNSET
    specific_tax_desc: Annotated[str, Meta(description="Its name on the ticket")] = ""
    code: Annotated[str, Meta(description="The shop's code of the article")] = ""
    unit: Annotated[str, Meta(description="When it was sent")] = ""
    discount: Annotated[
        int, Meta(description="Taken off the line, XOF with VAT; sent, or what is missing to `originalPrice`")
    ] = 0
    original_price: Annotated[Exact | msgspec.UnsetType, Meta(description="When it was sent")] = msgspec.UNSET
    category: Annotated[str, Meta(description="When it was sent")] = ""
    psvb_group: Annotated[str, Meta(description="Where items name their own")] = ""
    till_price: Annotated[
        Exact | msgspec.UnsetType, Meta(description="The till's `unitPrice`, where another price was certified")
    ] = msgspec.UNSET
    till_quantity: Annotated[
        Exact | msgspec.UnsetType, Meta(description="The till's `quantity`, where another one was certified")
    ] = msgspec.UNSET


class InvoiceHead(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What stands above the items."""

    invoice_number: Annotated[str, Meta(description="The till's number")]
    invoice_type: Annotated[str, Meta(description="FV, FT, EV, ET, FA or EA")]
    price_mode: Annotated[str, Meta(description="TTC or HT")]
    operator_id: Annotated[str, Meta(description="As sent, or its default")]
    operator_name: Annotated[str, Meta(description="As sent, or its default")]
    isf: Annotated[str, Meta(description="As sent, or its default")]


class CertifyRequest(InvoiceHead, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The body of certify or credit-note, with every default written out; what was not given is left out."""

    customer: Annotated[RequestCustomer, Meta(description="As sent, or its default")]
    items: Annotated[
        tuple[RequestItem, ...],
        Meta(description="As certified: what was folded or rounded stands in the receipt's `warnings`"),
    ]
    payments: Annotated[tuple[RequestPayment, ...], Meta(description="As certified: they add up to the total")]
    comments: Annotated[tuple[RequestComment, ...], Meta(description="With their labels")] = ()
    credit_note_nature: Annotated[str, Meta(description="Credit notes only")] = ""
    credit_note_ref: Annotated[str, Meta(description="Credit notes only")] = ""
    psvb_group: Annotated[str, Meta(description="When it was sent")] = ""
    stamp_duty: Annotated[int, Meta(description="As sent or computed, XOF")] = 0


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`seq` (place in the machine's order) and `ended_at` are None until the attempt has ended; `z_number` is None
    while the period is open; `tc`, `fvc`, `frc` are None if nothing was certified. An entry with a damaged row has
    place and number only, if they can be read."""

    seq: Annotated[int | None, Meta(description="Place in the order of the machine; null until the attempt has ended")]
    state: Annotated[
        RecordState,
        Meta(
            description="begun, certified, refused (by the machine), abandoned (known not certified), disputed (an operator settles it), damaged (the entry cannot be read)"
        ),
    ]
    invoice_number: Annotated[str, Meta(description="The till's number")]
    invoice_type: Annotated[str, Meta(description="FV, FT, EV, ET, FA or EA")]
    total_ttc: Annotated[int, Meta(description="The certified total; otherwise the requested one")]
    code_secef: Annotated[str, Meta(description="Empty when it was not certified")]
    date_time: Annotated[str, Meta(description="The machine's own 14 digits; empty when it was not certified")]
    begun_at: Annotated[
        str | None, Meta(description="When the intent was on disk, before the first byte to the machine")
    ]
    ended_at: Annotated[str | None, Meta(description="When its end was on disk; null until then")]
    tc: Annotated[int | None, Meta(description="As the certification left it; null without one")]
    fvc: Annotated[int | None, Meta(description="As the certification left it; null without one")]
    frc: Annotated[int | None, Meta(description="As the certification left it; null without one")]
    z_number: Annotated[int | None, Meta(description="The Z closure that it is in; null while the period is open")]
    credit_note_ref: Annotated[str, Meta(description="What a credit note refers to; else empty")]
    remaining_ttc: Annotated[
        int | msgspec.UnsetType,
        Meta(
            description="Of a certified sale: what credit notes may still take of it, XOF; left out otherwise, and in files"
        ),
    ] = msgspec.UNSET
    reason: Annotated[str, Meta(description="Why it was not certified, or what an operator settled")]
    line_ms: Annotated[int, Meta(description="Time on the machine's line")]
    duration_ms: Annotated[int, Meta(description="From the request's arrival to the durable outcome")]
    request_id: Annotated[str, Meta(description="X-Request-ID of the request")]
    nim: Annotated[
        str,
        Meta(
            description="What the machine was called then, with its activation counter: together with `fvc` it names a sale"
        ),
    ]


class JournalRecord(JournalEntry, frozen=True, kw_only=True, rename="camel"):
    """The whole of an entry; `receipt` is the answer that the till got."""

    receipt: Annotated[Receipt | None, Meta(description="The answer that the till got; null when it was not certified")]
    request: Annotated[
        CertifyRequest | None, Meta(description="What went to the machine, with every default written out")
    ]


class JournalPage(msgspec.Struct, frozen=True):
    """`next` is the cursor of the page after this one, None when there is none."""

    nim: Annotated[str, Meta(description="The NIM of the path")]
    count: Annotated[int, Meta(description="Entries on this page")]
    next: Annotated[str | None, Meta(description="`cursor` of the next page; null on the last one")]
    certifications: Annotated[tuple[JournalEntry, ...], Meta(description="Newest first")]


def is_credited(record: Record) -> bool:
    """Whether credit notes may take something of it."""
    return record.state == "certified" and not record.invoice.is_credit


def journal_entry(
    record: Record, z_number: int, language: Language = "en", *, credited: int | None = None
) -> JournalEntry:
    """`z_number`: 0 while the record's period is open; `language`: of the reason; `credited`: sum of the credit notes
    on a sale, None if not shown."""
    return JournalEntry(**_common(record, z_number, language, credited))


def journal_record(
    record: Record, z_number: int, language: Language = "en", *, copies: int = 0, credited: int | None = None
) -> JournalRecord:
    return JournalRecord(
        **_common(record, z_number, language, credited),
        receipt=receipt(record, language, copies=copies) if record.state == "certified" else None,
        request=None if record.state == "damaged" else certify_request(record.invoice),
    )


def _common(record: Record, z_number: int, language: Language, credited: int | None) -> dict[str, Any]:
    counters = record.counters
    return {
        "seq": record.seq or None,
        "state": record.state,
        "invoice_number": record.number,
        "invoice_type": record.type,
        "total_ttc": record.total_ttc,
        "code_secef": record.code,
        "date_time": record.machine_time,
        "begun_at": millis_text(record.begun_at) if record.begun_at else None,
        "ended_at": millis_text(record.ended_at) if record.ended_at else None,
        "tc": None if counters is None else counters.tc,
        "fvc": None if counters is None else counters.fvc,
        "frc": None if counters is None else counters.frc,
        "z_number": z_number or None,
        "credit_note_ref": record.invoice.reference,
        "remaining_ttc": msgspec.UNSET if credited is None else max(0, record.total_ttc - credited),
        "reason": reason_text(record, language),
        "line_ms": record.line_ms,
        "duration_ms": record.duration_ms,
        "request_id": record.request_id,
        "nim": record.nim,
    }


def reason_text(record: Record, language: Language = "en") -> str:
    """Why it was not certified: a refusal in the machine's words, anything else in ours."""
    reason = from_stored(record.reason).in_language(language)
    return reason if record.state == "refused" else without_paths(reason, language)


def certify_request(invoice: Invoice) -> CertifyRequest:
    return CertifyRequest(
        invoice_number=invoice.number,
        invoice_type=invoice.type,
        customer=_customer(invoice.customer),
        price_mode=invoice.price_mode,
        operator_id=invoice.operator_id,
        isf=invoice.isf,
        items=tuple(_item(item) for item in invoice.items),
        payments=tuple(RequestPayment(payment.method, payment.amount) for payment in invoice.payments),
        comments=tuple(RequestComment(comment.label, comment.text) for comment in invoice.comments),
        credit_note_nature=invoice.nature,
        credit_note_ref=invoice.reference,
        psvb_group=_psvb_group(invoice),
        stamp_duty=invoice.stamp_duty,
        **texts_in(invoice, INVOICE_TEXTS),
    )


def _psvb_group(invoice: Invoice) -> str:
    """Of an invoice whose items do not name their own."""
    is_by_item = any(item.psvb_group for item in invoice.items)
    return "" if invoice.psvb is None or is_by_item else invoice.psvb.group


def _customer(customer: Customer) -> RequestCustomer:
    return RequestCustomer(**msgspec.structs.asdict(customer))


def _item(item: Item) -> RequestItem:
    return RequestItem(
        name=item.name,
        item_type=item.item_type,
        tax_group=item.group,
        tax_rate=percent(item.rate),
        unit_price=exact(item.price, PRICE_DECIMALS),
        quantity=exact(item.quantity, QUANTITY_DECIMALS),
        amount_ttc=item.amount_ttc,
        specific_tax=item.specific_tax,
        specific_tax_rate=exact(item.specific_rate, PRICE_DECIMALS) if item.specific_rate else msgspec.UNSET,
        specific_tax_desc=item.specific_name,
        discount=item.discount,
        original_price=exact(item.original_price, PRICE_DECIMALS) if item.original_price else msgspec.UNSET,
        psvb_group=item.psvb_group,
        till_price=exact(item.till_price, PRICE_DECIMALS) if item.till_price else msgspec.UNSET,
        till_quantity=exact(item.till_quantity, QUANTITY_DECIMALS) if item.till_quantity else msgspec.UNSET,
        **texts_in(item, ITEM_TEXTS),
    )


def exact(scaled: int, decimals: int) -> Decimal:
    """A scaled integer as the number it stands for, without zeros that mean nothing."""
    while decimals and scaled % 10 == 0:
        scaled //= 10
        decimals -= 1
    return Decimal(scaled).scaleb(-decimals)
