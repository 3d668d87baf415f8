"""An invoice as the daemon holds it once every rule of decisions 1-4 and 24 has passed: exact, complete, frozen.

Amounts are whole XOF; prices and the specific tax per unit are hundredths of a franc; quantities are
thousandths; VAT rates are hundredths of a percent (18 % is 1800).
"""

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from common.language import Text
from common.language.reasons import from_stored

SaleType = Literal["FV", "FT", "EV", "ET"]
CreditType = Literal["FA", "EA"]
InvoiceType = Literal[SaleType, CreditType]
ClientType = Literal["CC", "PP", "PM", "PC"]
BUSINESSES = ("PM", "PC")
"""Companies and traders."""
ItemType = Literal["LOCBIE", "LOCSER", "IMPBIE", "IMPSER"]
PaymentMethod = Literal["E", "V", "C", "M", "B", "A"]
PsvbGroup = Literal["A", "B", "C", "D"]
PriceMode = Literal["TTC", "HT"]
Nature = Literal["COR", "RAN", "RAM", "RRR"]
REBATE: Nature = "RRR"
"""Nature of a reduction granted afterwards: no goods are returned; the sale's withholding stays (CGI 200)."""

SALES: tuple[InvoiceType, ...] = get_args(SaleType)
CREDITS: tuple[InvoiceType, ...] = get_args(CreditType)
GROUPS = "ABCDEFGHIJKLMNOP"
PAYMENT_METHODS: tuple[PaymentMethod, ...] = get_args(PaymentMethod)
CASH = "E"
PAYMENT_LABELS: Mapping[str, str] = {
    "E": "Espèces",
    "V": "Virement",
    "C": "Carte bancaire",
    "M": "Mobile money",
    "B": "Chèque",
    "A": "Autre",
}
"""The defaults of fiscal-rules.md; a configuration may say otherwise."""
NATURES: Mapping[str, str] = {
    "COR": "Correction",
    "RAN": "Annulation",
    "RAM": "Avoir suite reprise biens/services",
    "RRR": "Remise, ristourne, rabais",
}
"""Of a credit note, in the words of the law (annex of the SFE)."""
CLIENTS: Mapping[str, str] = {
    "CC": "Client comptant",
    "PP": "Personne physique",
    "PM": "Personne morale",
    "PC": "Personne physique commerçant",
}
COMMENT_NAMES: Mapping[str, str] = {"A": "Réf. exo.", "B": "Base juridique"}
"""C to H are reserved, and have the names that a shop gives them."""
NO_ITEM = -1
EDITION = 2
"""Of the present rules."""


class Customer(msgspec.Struct, frozen=True, array_like=True):
    client_type: ClientType = "CC"
    ifu: Annotated[str, Meta(description="IFU of the buyer")] = ""
    name: Annotated[str, Meta(description="Name of the buyer")] = ""
    """needed for PP, and with `ifu` for PM and PC (decisions 3 and 35)"""
    address: Annotated[str, Meta(description="Address")] = ""
    phone: Annotated[str, Meta(description="Phone")] = ""
    email: Annotated[str, Meta(description="E-mail")] = ""
    rccm: Annotated[str, Meta(description="Trade register number")] = ""

    def is_named(self, plain: str) -> bool:
        """Whether that text (`without_accents`) stands in name, IFU or phone."""
        return plain in without_accents(f"{self.name} {self.ifu} {self.phone}")


def without_accents(text: str) -> str:
    """In small letters without accents: many tills and people write Kaboré as KABORE."""
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each)).casefold()


class Item(msgspec.Struct, frozen=True, array_like=True):
    """One line. `amount_ttc`: as the till sent it. `line_amount`: for the machine, with VAT in TTC mode, without in HT
    mode; whole except for `line_cents`, and within a franc of `price * quantity` (plus the specific tax)."""

    name: str
    group: str
    rate: int
    price: int
    quantity: int
    amount_ttc: int
    line_amount: int
    item_type: str = "LOCBIE"
    code: str = ""
    specific_tax: int = 0
    specific_rate: int = 0
    specific_name: str = ""
    unit: str = ""
    """What is counted (kg, sac, h): printed, never sent."""
    discount: int = 0
    """What was taken off this line, with VAT: the amounts above hold it already. Printed, and summed in X and Z."""
    original_price: int = 0
    """Of one unit before the reduction; 0 where the till did not say it."""
    till_price: int = 0
    """The till's price and quantity if others were certified (UNIT_PRICE_DERIVED, QUANTITY_AS_ONE); else 0."""
    till_quantity: int = 0
    category: str = ""
    """Of the article, for the report of articles (SFE 5.1); never sent."""
    psvb_group: str = ""
    """Of goods on an invoice whose items name their groups; else the invoice's `psvb` is for all goods."""
    line_cents: int = 0
    """Hundredths of a franc beyond `line_amount`, in HT mode, where the machine takes two decimals on a line."""

    @property
    def line_hundredths(self) -> int:
        return self.line_amount * 100 + self.line_cents

    @property
    def printed_price(self) -> int:
        return self.till_price or self.price

    @property
    def printed_quantity(self) -> int:
        return self.till_quantity or self.quantity


class Payment(msgspec.Struct, frozen=True, array_like=True):
    method: Annotated[str, Meta(description="E, V, C, M, B or A")]
    amount: Annotated[int, Meta(description="Whole XOF")]


class Comment(msgspec.Struct, frozen=True, array_like=True):
    label: Annotated[str, Meta(description="A…H")]
    text: Annotated[str, Meta(description="One line")]


class Warn(msgspec.Struct, frozen=True, array_like=True):
    """What was adjusted instead of refused; `item` is the index of the item, or NO_ITEM for the whole invoice."""

    code: str
    message: str
    item: int = NO_ITEM
    field: str = ""
    """The path of the field that it is about, as `items[2].unitPrice`; empty where there is none."""

    @property
    def text(self) -> Text:
        """`message` is a stored reason (`common.language.reasons`), or the words of 0.2 and earlier."""
        return from_stored(self.message)


class TaxLine(msgspec.Struct, frozen=True, array_like=True):
    """The VAT of one tax group over a whole invoice: `ht + tva = ttc`, always."""

    group: str
    rate: int
    ht: int
    tva: int
    ttc: int
    tva_hundredths: int = 0
    """The VAT as the machine sent it, in hundredths of a franc, where it is not whole; else 0."""


class Psvb(msgspec.Struct, frozen=True, array_like=True):
    """Withholding on sales of goods: `rate` in hundredths of a percent of `base`, `amount` rounded half up."""

    group: str
    base: int
    rate: int
    amount: int


class Deferral(msgspec.Struct, frozen=True, array_like=True):
    """Time (`sold_at`, ms) of a sale that was certified later, and the reason. `outage`: number of the outage at that
    time in the register of the machine `nim`, 0 for none."""

    sold_at: int
    reason: str
    outage: int = 0
    nim: str = ""


class Invoice(msgspec.Struct, frozen=True, array_like=True):
    """`taxes` and `total_ttc` are our own arithmetic; the machine's subtotal has to agree before anything is paid."""

    number: str
    type: InvoiceType
    price_mode: PriceMode
    operator_id: str
    operator_name: str
    isf: str
    customer: Customer
    items: tuple[Item, ...]
    payments: tuple[Payment, ...]
    taxes: tuple[TaxLine, ...]
    total_ttc: int
    comments: tuple[Comment, ...] = ()
    nature: str = ""
    reference: str = ""
    psvb: Psvb | None = None
    warnings: tuple[Warn, ...] = ()
    stamp_duty: int = 0
    """On what is paid in cash, on top of the total (CGI 519): printed and reported, never sent."""
    more_psvb: tuple[Psvb, ...] = ()
    """The other withholdings, of an invoice whose items name several groups."""
    letterhead: bytes = b""
    """Digest of what stands on its paper; empty where it is the present one."""
    edition: int = 0
    """Edition of the rules by which it was read: 0 for 0.1; since 2 a withholding counts under its own rate."""
    deferred: Deferral | None = None
    """Where it was sold before it was certified."""
    number_year: int | None = None
    """The year in which its number is taken, 0 for ever; None in what was written before 0.6."""

    @property
    def is_rebate(self) -> bool:
        """By nature or reference (SFE 2.29): 0.1 took one without the other."""
        return self.is_credit and REBATE in (self.nature, self.reference)

    @property
    def withholdings(self) -> tuple[Psvb, ...]:
        return () if self.psvb is None else (self.psvb, *self.more_psvb)

    @property
    def is_credit(self) -> bool:
        return self.type in CREDITS

    @property
    def leeway(self) -> int:
        """How many francs the machine's total may differ: in HT mode one for each item (decision 24)."""
        return len(self.items) if self.price_mode == "HT" else 0

    @property
    def specific_tax(self) -> int:
        return sum(item.specific_tax for item in self.items)

    @property
    def discount(self) -> int:
        return sum(item.discount for item in self.items)


def invoice_without_lines(number: str, type_: str, total_ttc: int) -> Invoice:
    """One of which nothing more is known; of a type in words of a machine's own as a sale."""
    return Invoice(
        number=number,
        type=type_ if type_ in (*SALES, *CREDITS) else "FV",
        price_mode="TTC",
        operator_id="",
        operator_name="",
        isf="",
        customer=Customer(),
        items=(),
        payments=(),
        taxes=(),
        total_ttc=total_ttc,
    )
