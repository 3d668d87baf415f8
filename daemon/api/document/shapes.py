"""Wire shapes that only the API knows; what each field means is in `wording.py`.

The bodies of certify are there for the OpenAPI document and are never decoded into: `core.intake` reads the request
itself, exactly and leniently, as the decisions want it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from daemon.core.ledger.entries import CashKind
from daemon.core.report.fiscal_reports import HistoryRecord
from daemon.core.roles import USUAL, Role

Positive = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)]
"""A number of JSON above 0, for the schema; no amount is ever held in this type."""
NotNegative = Annotated[int, Meta(ge=0)]
Anything = Annotated[Any, Meta(extra_json_schema={"type": "number"})]
"""A number, by rights; what is none is no reason to refuse the invoice (decision 4)."""
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_PRINTABLE = f"^[^{_CONTROL}]*$"
_SHOWS_SOMETHING = rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$"
Line = Annotated[str, Meta(max_length=200, pattern=_PRINTABLE)] | UnsetType
Short = Annotated[str, Meta(max_length=40, pattern=_PRINTABLE)] | UnsetType
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=_SHOWS_SOMETHING)]
_UNSEEN = (
    r"\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800"
    r"\u3000\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
)
"""What no number may hold (`core.invoice.fields`), as far as a pattern can say it."""
Number = Annotated[str, Meta(min_length=1, max_length=40, pattern=rf"^[^\s{_UNSEEN}]([^{_UNSEEN}]*[^\s{_UNSEEN}])?$")]
Reference = Annotated[str, Meta(min_length=1, max_length=40, pattern=_SHOWS_SOMETHING)]


class CustomerBody(msgspec.Struct, kw_only=True, rename="camel"):
    """The buyer. PM and PC need `ifu` and `name`."""

    client_type: Literal["CC", "PP", "PM", "PC"] = "CC"
    ifu: Short = UNSET
    name: Line = UNSET
    address: Line = UNSET
    phone: Short = UNSET
    email: Line = UNSET
    rccm: Short = UNSET


class ItemBody(msgspec.Struct, kw_only=True, rename="camel"):
    """One line: a name, a tax group, and an amount (`unitPrice`, `amountTtc`, or both)."""

    name: Name
    tax_group: Annotated[str, Meta(pattern="^[A-P]$")]
    item_type: Literal["LOCBIE", "LOCSER", "IMPBIE", "IMPSER"] = "LOCBIE"
    tax_rate: int | float | UnsetType = UNSET
    unit_price: Positive | UnsetType = UNSET
    quantity: Positive = 1
    amount_ttc: Positive | UnsetType = UNSET
    specific_tax: Anything = UNSET
    specific_tax_rate: Anything = UNSET
    specific_tax_desc: Annotated[str, Meta(max_length=100, pattern=_PRINTABLE)] | UnsetType = UNSET
    code: Short = UNSET
    unit: Annotated[str, Meta(max_length=20, pattern=_PRINTABLE)] | UnsetType = UNSET
    discount: NotNegative | UnsetType = UNSET
    original_price: Positive | UnsetType = UNSET


class PaymentBody(msgspec.Struct, kw_only=True):
    """One payment; together they are the invoice's total."""

    method: Literal["E", "V", "C", "M", "B", "A"]
    amount: Positive


class CommentBody(msgspec.Struct, kw_only=True):
    """One comment line of the ticket."""

    text: Name
    label: Annotated[str, Meta(pattern="^[A-H]$")] | UnsetType = UNSET


class InvoiceBody(msgspec.Struct, kw_only=True, rename="camel"):
    """An invoice as a till sends it. What is left out gets its default; unknown fields are told in `warnings`."""

    invoice_number: Number
    items: Annotated[list[ItemBody], Meta(min_length=1, max_length=1000)]
    payments: Annotated[list[PaymentBody], Meta(min_length=1, max_length=100)]
    price_mode: Literal["TTC", "HT"] = "TTC"
    operator_id: Annotated[str, Meta(max_length=40, pattern=_PRINTABLE)] | int | UnsetType = UNSET
    operator_name: Line = UNSET
    isf: Short = UNSET
    customer: CustomerBody | UnsetType = UNSET
    comments: Annotated[list[CommentBody | Name], Meta(max_length=8)] | UnsetType = UNSET
    psvb_group: Literal["A", "B", "C", "D"] | UnsetType = UNSET
    stamp_duty: NotNegative | UnsetType = UNSET


class CertifyBody(InvoiceBody, kw_only=True, rename="camel"):
    """A sale or an advance."""

    invoice_type: Literal["FV", "FT", "EV", "ET"]


class CreditNoteBody(InvoiceBody, kw_only=True, rename="camel"):
    """A credit note, with what it credits."""

    invoice_type: Literal["FA", "EA"]
    credit_note_ref: Reference
    credit_note_nature: Literal["COR", "RAN", "RAM", "RRR"] = "COR"


class CashBody(msgspec.Struct, kw_only=True, rename="camel"):
    """Cash put into the drawer or taken out."""

    kind: CashKind
    amount: Positive
    reason: Name
    operator_id: Annotated[str, Meta(max_length=40, pattern=_PRINTABLE)] | int | UnsetType = UNSET
    operator_name: Line = UNSET


class EmptyBody(msgspec.Struct):
    """Nothing is needed: no body at all, or an object whose fields are ignored."""


class Printed(msgspec.Struct, frozen=True):
    """`printed` names the document: the invoice's number, or the report's title."""

    printed: str


class History(msgspec.Struct, frozen=True):
    nim: str
    count: int
    reports: tuple[HistoryRecord, ...]


class Me(msgspec.Struct, frozen=True, rename={"expires_at": "expiresAt"}):
    id: str
    label: str
    mode: Literal["live", "test"]
    nim: str
    connected: bool
    role: Role = USUAL
    expires_at: str | None = None


class Live(msgspec.Struct, frozen=True):
    status: Literal["live"]
    version: str


class MachineReady(msgspec.Struct, frozen=True, rename="camel"):
    nim: str
    ready: bool
    connected: bool
    attention: str
    last_error: str
    waiting: int
    clock_drift: int | None
    tax_server_days: int | None
    tax_server_waiting: int | None
    test_mode: bool


class UpstreamLane(msgspec.Struct, frozen=True, rename="camel"):
    nim: str
    mode: Literal["live", "test"]
    waiting: int
    parked: int
    oldest_at: str | None
    last_error: str
    last_error_at: str | None
    last_sent_at: str | None


class Ready(msgspec.Struct, frozen=True):
    status: Literal["ready", "not ready"]
    machines: tuple[MachineReady, ...]
    upstream: tuple[UpstreamLane, ...] | None
    ledger: tuple[str, ...] = ()


INVOICE_EXAMPLE: Final[dict[str, Any]] = {
    "invoiceNumber": "F-2026-000123",
    "invoiceType": "FV",
    "items": [{"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}],
    "payments": [{"method": "E", "amount": 15000}],
}
CASH_EXAMPLE: Final[dict[str, Any]] = {"kind": "deposit", "amount": 20000, "reason": "Fond de caisse"}
CREDIT_NOTE_EXAMPLE: Final[dict[str, Any]] = {
    **INVOICE_EXAMPLE,
    "invoiceNumber": "A-2026-000007",
    "invoiceType": "FA",
    "creditNoteNature": "RAM",
    "creditNoteRef": "EL02000015-1-291",
}
