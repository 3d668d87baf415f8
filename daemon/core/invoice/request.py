"""What a till sends, field by field: names, shapes and descriptions, for the OpenAPI document, for `unknown` and for the texts that are kept as they
come.

Nothing is decoded into these structs: `intake` reads the request itself, exactly and leniently, as the decisions want it. null says the
same as a field that is left out, so null is the default of each field that has no other."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta, inspect

from common.one_line import CONTROL
from daemon.core.invoice.invoice import (
    ClientType,
    CreditType,
    Customer,
    Invoice,
    Item,
    ItemType,
    Nature,
    PaymentMethod,
    PriceMode,
    PsvbGroup,
    SaleType,
)

NAME_LENGTH = 200
MIDDLE_LENGTH = 100
SHORT_LENGTH = 40
"""Of numbers and identifiers: in characters, and for those that share the frame of C0h also in bytes as escaped."""
UNIT_LENGTH = 20
LONGEST_DEFAULT = 64
"""Of an ISF, an operator or its name in the configuration."""
MAX_ITEMS = 1000
MAX_PAYMENTS = 100
MAX_COMMENTS = 8
CommentLabel = Literal["A", "B", "C", "D", "E", "F", "G", "H"]
COMMENT_LABELS = get_args(CommentLabel)

Positive = Annotated[float, Meta(gt=0)]
"""For the schema; no amount ever has this type."""
NotNegative = Annotated[int, Meta(ge=0)]
Anything = Annotated[Any, Meta(extra_json_schema={"type": ["number", "null"]})]
"""A number, by rights; what is none is no reason to refuse the invoice (decision 4)."""
_PRINTABLE = f"^[^{CONTROL}]*$"
_SHOWS_SOMETHING = rf"^[^{CONTROL}]*[^\s{CONTROL}][^{CONTROL}]*$"
Line = Annotated[str, Meta(max_length=NAME_LENGTH, pattern=_PRINTABLE)]
Middle = Annotated[str, Meta(max_length=MIDDLE_LENGTH, pattern=_PRINTABLE)]
Short = Annotated[str, Meta(max_length=SHORT_LENGTH, pattern=_PRINTABLE)]
Unit = Annotated[str, Meta(max_length=UNIT_LENGTH, pattern=_PRINTABLE)]
OperatorId = Annotated[str, Meta(max_length=SHORT_LENGTH, pattern=_PRINTABLE)] | int
Name = Annotated[str, Meta(max_length=NAME_LENGTH, pattern=_SHOWS_SOMETHING)]
_UNSEEN = (
    r"\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800"
    r"\u3000\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
)
"""What no number may hold (`core.invoice.fields`), as far as a pattern can say it."""
Number = Annotated[str, Meta(max_length=SHORT_LENGTH, pattern=rf"^[^\s{_UNSEEN}]([^{_UNSEEN}]*[^\s{_UNSEEN}])?$")]
Reference = Annotated[str, Meta(max_length=SHORT_LENGTH, pattern=_SHOWS_SOMETHING)]
Texts = Mapping[str, tuple[str, int]]
"""By the name of a field in the ledger: what it is called in a request, and how many characters it may have."""


class CustomerBody(msgspec.Struct, kw_only=True, rename="camel"):
    """The buyer. PP needs `name`; PM and PC need `name` and `ifu`, in a local sale of the official form."""

    client_type: Annotated[
        ClientType | None, Meta(description="CC walk-in; PP natural person; PM company; PC trader")
    ] = "CC"
    ifu: Annotated[Short | None, Meta(description="IFU of the buyer")] = None
    name: Annotated[Line | None, Meta(description="Name of the buyer")] = None
    address: Annotated[Line | None, Meta(description="Address")] = None
    phone: Annotated[Short | None, Meta(description="Phone")] = None
    email: Annotated[Line | None, Meta(description="E-mail")] = None
    rccm: Annotated[Short | None, Meta(description="Trade register number")] = None


class ItemBody(msgspec.Struct, kw_only=True, rename="camel"):
    """One line: a name, a tax group, and an amount (`unitPrice`, `amountTtc`, or both)."""

    name: Annotated[Name, Meta(description="Label on the ticket")]
    tax_group: Annotated[str, Meta(pattern="^[A-P]$", description="A…P; B is 18 %")]
    item_type: Annotated[
        ItemType | None,
        Meta(description="Local goods, local service, imported goods, imported service"),
    ] = "LOCBIE"
    tax_rate: Annotated[
        float | None, Meta(description="Percent; has to be the machine's rate for the group, which is the default")
    ] = None
    unit_price: Annotated[Positive | None, Meta(description="At most 2 decimals; default `amountTtc / quantity`")] = (
        None
    )
    quantity: Annotated[Positive | None, Meta(description="Above 0, at most 3 decimals")] = 1
    amount_ttc: Annotated[
        Positive | None, Meta(description="Whole XOF, with VAT: the amount certified; default `unitPrice × quantity`")
    ] = None
    specific_tax: Annotated[
        Anything,
        Meta(
            description="Specific tax (excise) of the line, without VAT. Certified separately when amountTtc = unitPrice × quantity + specificTax × (1 + taxRate/100) and specificTaxRate × quantity = specificTax, in whole numbers; otherwise folded into the price. Never refused"
        ),
    ] = None
    specific_tax_rate: Annotated[Anything, Meta(description="Specific tax of one unit, in XOF")] = None
    specific_tax_desc: Annotated[Middle | None, Meta(description="Name of the specific tax on the ticket")] = None
    code: Annotated[Short | None, Meta(description="The shop's code of the article")] = None
    unit: Annotated[Unit | None, Meta(description="What is counted: kg, sac, h; printed")] = None
    discount: Annotated[
        NotNegative | None,
        Meta(
            description="Taken off this line, whole XOF with VAT; `amountTtc` and `unitPrice` hold it already. Printed, and summed in X and Z"
        ),
    ] = None
    original_price: Annotated[
        Positive | None,
        Meta(
            description="Price of one unit before the reduction, at most 2 decimals; printed, and `discount` is what is missing to it"
        ),
    ] = None
    category: Annotated[
        Middle | None,
        Meta(description="Of the article, for the report of articles; never sent to the machine"),
    ] = None
    psvb_group: Annotated[PsvbGroup | None, Meta(description="Withholding on this line; default the invoice's")] = None


class PaymentBody(msgspec.Struct, kw_only=True):
    """One payment; together they are the invoice's total."""

    method: Annotated[
        PaymentMethod,
        Meta(description="E cash; V transfer; C card; M mobile money; B cheque; A other"),
    ]
    amount: Annotated[Positive, Meta(description="Whole XOF, above 0")]


class CommentBody(msgspec.Struct, kw_only=True):
    """One comment line of the ticket."""

    text: Annotated[Name, Meta(description="One line")]
    label: Annotated[CommentLabel | None, Meta(description="A…H; without one, the next free")] = None


class InvoiceBody(msgspec.Struct, kw_only=True, rename="camel"):
    """An invoice as a till sends it. What is left out gets its default; unknown fields are listed in `warnings`."""

    invoice_number: Annotated[Number, Meta(description="The till's own number; certified once per NIM")]
    items: Annotated[
        list[ItemBody], Meta(min_length=1, max_length=MAX_ITEMS, description="At least one, at most 1 000")
    ]
    payments: Annotated[
        list[PaymentBody], Meta(min_length=1, max_length=MAX_PAYMENTS, description="Add up to the total")
    ]
    price_mode: Annotated[PriceMode | None, Meta(description="TTC: `unitPrice` holds VAT; HT: it does not")] = "TTC"
    operator_id: Annotated[OperatorId | None, Meta(description="Cashier; default from the machine's configuration")] = (
        None
    )
    operator_name: Annotated[Line | None, Meta(description="Default from the machine's configuration")] = None
    isf: Annotated[Short | None, Meta(description="Fiscal system; default from the machine's configuration")] = None
    customer: Annotated[CustomerBody | None, Meta(description="Default: a walk-in customer")] = None
    comments: Annotated[
        Annotated[list[CommentBody | Name], Meta(max_length=MAX_COMMENTS)] | None,
        Meta(description="Up to 8 lines of the ticket, labelled A…H; a plain string takes the next free label of C…H"),
    ] = None
    psvb_group: Annotated[
        PsvbGroup | None,
        Meta(
            description="Withholding on sales of goods: A 2 %, B 1 %, C 0.2 %, D 0 %, of the goods' amount with all taxes; computed, kept and shown. Left out on a credit note of nature RRR"
        ),
    ] = None
    stamp_duty: Annotated[
        NotNegative | None,
        Meta(
            description="Duty of a payment in cash, whole XOF, on top of the total: printed and reported, never sent to the machine. 0 or left out: computed where `[stamp_duty]` says so"
        ),
    ] = None


class CertifyBody(InvoiceBody, kw_only=True, rename="camel"):
    """A sale or an advance."""

    invoice_type: Annotated[SaleType, Meta(description="FV sale, FT advance, EV export sale, ET export advance")]


class CreditNoteBody(InvoiceBody, kw_only=True, rename="camel"):
    """A credit note, with what it credits."""

    invoice_type: Annotated[CreditType, Meta(description="FA credit note, EA export credit note")]
    credit_note_ref: Annotated[
        Reference | None,
        Meta(
            description="`{NIM}-{FVC}` of the original, the NIM with its activation counter, as EL02000015-1-291, or `RRR`; an FA is of FV and FT, an EA of EV and ET. May be left out where `originalInvoiceNumber` is sent"
        ),
    ] = None
    original_invoice_number: Annotated[
        Number | None,
        Meta(
            description="The number of the original instead of its reference: a sale that this box has certified. Beside `creditNoteRef` the two have to mean the same. It decides where several exports have one FVC"
        ),
    ] = None
    credit_note_nature: Annotated[
        Nature | None,
        Meta(
            description="Correction, cancellation, return of goods or services, rebate. Left out, it is assumed (RRR for the reference RRR, else COR) and `warnings` says so; required with `Mcfd-Strict`. RRR goes with the reference RRR"
        ),
    ] = None


def stored_texts(body: type[msgspec.Struct], struct: type[msgspec.Struct], *ruled: str) -> Texts:
    """The optional texts of `body` that `struct` has by the same name. They are read, kept and shown as they come; those of `ruled` have rules of their
    own."""
    found = {}
    for field in msgspec.structs.fields(body):
        shape = inspect.type_info(field.type)
        shape = shape.type if isinstance(shape, inspect.Metadata) else shape
        match shape:
            case inspect.UnionType(types=(inspect.StrType(max_length=int(longest)), inspect.NoneType())):
                if field.name in struct.__struct_fields__ and field.name not in ruled:
                    found[field.name] = (field.encode_name, longest)
    return found


INVOICE_TEXTS: Final = stored_texts(InvoiceBody, Invoice, "isf")
CUSTOMER_TEXTS: Final = stored_texts(CustomerBody, Customer, "ifu", "name")
ITEM_TEXTS: Final = stored_texts(ItemBody, Item)


def texts_in(struct: msgspec.Struct, texts: Texts) -> dict[str, str]:
    """Their values."""
    return {name: getattr(struct, name) for name in texts}
