"""The data of each command as text on the wire (protocol sections 2 and 3), to and from frozen values; and the
machine's refusals: `E:` with its own words and the status bits of protocol section 1."""

import re
from functools import lru_cache

import msgspec

SYNTAX_ERROR = 0x01  # byte 0
UNKNOWN_COMMAND = 0x02  # byte 0
GENERAL_ERROR = 0x20  # byte 0
NOT_ALLOWED_NOW = 0x02  # byte 1
INVOICE_OPEN = 0x08  # byte 2

GROUPS = "ABCDEFGHIJKLMNOP"
SALES = ("FV", "FT", "EV", "ET")
CREDITS = ("FA", "EA")
NATURES = ("COR", "RAN", "RAM", "RRR")
CUSTOMER_TYPES = ("CC", "PP", "PM", "PC")
PAYMENT_METHODS = "EVCMBA"
COMMENT_LABELS = "ABCDEFGH"

_SALE_FIELDS = 7
_CREDIT_FIELDS = 9
_CUSTOMER_FIELDS = 7
_ITEM_PARTS = 3

_ESCAPES = {"\r": "^xa;", "\n": "^xd;", ",": "^x2c;", "<": "^lt;", ">": "^gt;", "&": "^amp;"}
_ESCAPE_TABLE = str.maketrans(_ESCAPES)
_UNESCAPES = {code: char for char, code in _ESCAPES.items()}
_ESCAPED = re.compile(r"\^(?:xa|xd|x2c|lt|gt|amp);")
_RAW_SPECIAL = re.compile(r"[\t\n,<>&]")

_NUMBER = re.compile(r"([0-9]{1,13})(?:\.([0-9]{1,3}))?")

_REFERENCE = re.compile(r"RRR|([A-Z]{2}[0-9]{8})(?:-[0-9]{1,4})?-([0-9]{1,9})")

_TAXED = re.compile(r"(LOCBIE|LOCSER|IMPBIE|IMPSER),([A-P])([0-9.]{1,5})%([0-9.]{1,15})")
_PRICED = re.compile(r"([0-9.]{1,16})(?:\*([0-9.]{1,16}))?(?:;T([0-9.]{1,16}),([0-9.]{1,16})(?:,([^\t]*))?)?")


class MachineRefusal(Exception):  # an answer of the machine, not a fault of the program
    """`byte0` and `byte1`: the bits to set in the first two status bytes."""

    def __init__(self, text: str, byte0: int = GENERAL_ERROR, byte1: int = 0) -> None:
        self.text = text
        self.byte0 = byte0
        self.byte1 = byte1
        super().__init__(text)


def bad_syntax(text: str) -> MachineRefusal:
    return MachineRefusal(text, byte0=GENERAL_ERROR | SYNTAX_ERROR)


def not_now(text: str) -> MachineRefusal:
    return MachineRefusal(text, byte1=NOT_ALLOWED_NOW)


@lru_cache
def status(byte0: int, byte1: int, invoice_open: bool) -> bytes:
    byte2 = INVOICE_OPEN if invoice_open else 0
    return bytes((0x80 | byte0, 0x80 | byte1, 0x80 | byte2, 0x80, 0x80, 0x80))


class CustomerData(msgspec.Struct, frozen=True):
    type: str = "CC"
    ifu: str = ""
    """required, like `name`, for PM and PC"""
    name: str = ""
    contact: tuple[str, ...] = ()
    """address, phone, e-mail, trade register, unchanged"""


class Opening(msgspec.Struct, frozen=True):
    """C0h; `nature` and `reference` are empty for a sale."""

    operator_id: str
    operator_name: str
    ifu: str
    type: str
    price_mode: str
    isf: str
    number: str
    nature: str = ""
    reference: str = ""

    @property
    def is_credit(self) -> bool:
        return self.type in CREDITS


class ItemData(msgspec.Struct, frozen=True):
    """31h; `amount` in whole francs plus `cents`; `price`, `unit_tax`, `tax` in hundredths, `quantity` in
    thousandths."""

    name: str
    code: str
    item_type: str
    group: str
    rate: int
    amount: int
    price: int
    quantity: int
    unit_tax: int | None = None
    tax: int = 0
    tax_name: str = ""
    cents: int = 0

    @property
    def hundredths(self) -> int:
        return self.amount * 100 + self.cents


class PaymentData(msgspec.Struct, frozen=True):
    """35h; `amount` in hundredths of a franc."""

    method: str
    amount: int


class CommentData(msgspec.Struct, frozen=True):
    label: str
    text: str


def escape(text: str) -> str:
    return text.translate(_ESCAPE_TABLE)


def unescape(text: str) -> str:
    """Decodes a received field; refuses characters that should have been escaped."""
    if _RAW_SPECIAL.search(text):
        raise bad_syntax("Character not escaped")
    if "^" not in text:
        return text
    return _ESCAPED.sub(lambda found: _UNESCAPES[found.group()], text)


def decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise bad_syntax("Not UTF-8") from None


def parse_number(text: str, places: int) -> int:
    """`1.5` with two places is 150; more decimals are refused."""
    match = _NUMBER.fullmatch(text)
    if match is None or len(match[2] or "") > places:
        raise bad_syntax("Number format")
    return int(match[1] + (match[2] or "").ljust(places, "0"))


def format_hundredths(value: int) -> str:
    """Without needless decimals."""
    whole, rest = divmod(value, 100)
    return f"{whole}.{rest:02d}".rstrip("0") if rest else str(whole)


@lru_cache(maxsize=64)
def format_rate(rate: int) -> str:
    return f"{rate // 100}.{rate % 100:02d}" if rate else "0"


def parse_customer(data: bytes) -> CustomerData:
    if not data:
        return CustomerData()
    fields = [unescape(field) for field in decode(data).split(",")]
    if len(fields) != _CUSTOMER_FIELDS:
        raise bad_syntax("Customer fields")
    customer = CustomerData(fields[0], fields[1], fields[2], tuple(fields[3:]))
    if customer.type not in CUSTOMER_TYPES:
        raise bad_syntax("Customer type")
    if customer.type in ("PM", "PC") and not (customer.ifu and customer.name):
        raise bad_syntax("Customer needs IFU and name")
    return customer


def parse_opening(data: bytes) -> Opening:
    fields = [unescape(field) for field in decode(data).split(",")]
    nature = reference = ""
    if len(fields) == _CREDIT_FIELDS:
        nature, reference = fields.pop(4), fields.pop(4)
        if fields[3] not in CREDITS:
            raise bad_syntax("Invoice type")
    elif len(fields) != _SALE_FIELDS:
        raise bad_syntax("Invoice fields")
    elif fields[3] not in SALES:
        raise bad_syntax("Invoice type")
    operator_id, operator_name, ifu, kind, price_mode, isf, number = fields
    opening = Opening(operator_id, operator_name, ifu, kind, price_mode, isf, number, nature, reference)
    _check_opening(opening)
    return opening


def _check_opening(opening: Opening) -> None:
    if opening.price_mode not in ("TTC", "HT"):
        raise bad_syntax("Price mode")
    if not opening.operator_id:
        raise bad_syntax("Operator missing")
    if not opening.number:
        raise bad_syntax("Invoice number missing")
    if opening.is_credit:
        if opening.nature not in NATURES:
            raise bad_syntax("Credit note nature")
        if not _REFERENCE.fullmatch(opening.reference):
            raise bad_syntax("Credit note reference")


def parse_reference(reference: str) -> tuple[str, int] | None:
    """Machine (without suffix) and FVC that a credit note refers to; None for a rebate over many (`RRR`)."""
    match = _REFERENCE.fullmatch(reference)
    return (match[1], int(match[2])) if match and match[1] else None


def parse_line(data: bytes) -> ItemData:
    parts = decode(data).split("\t")
    if len(parts) != _ITEM_PARTS:
        raise bad_syntax("Item format")
    label, taxed_text, priced_text = parts
    taxed, priced = _TAXED.fullmatch(taxed_text), _PRICED.fullmatch(priced_text)
    if taxed is None or priced is None:
        raise bad_syntax("Item format")
    name, _, code = label.partition("\n")
    if not name:
        raise bad_syntax("Item name missing")
    amount, cents = divmod(parse_number(taxed[4], 2), 100)
    if "." in taxed[4] and not cents:
        raise bad_syntax("Amount must be whole")
    head = (unescape(name), unescape(code), taxed[1], taxed[2], parse_number(taxed[3], 2))
    price, quantity = parse_number(priced[1], 2), parse_number(priced[2] or "1", 3)
    unit_tax = parse_number(priced[3], 2) if priced[3] else None
    tax, tax_name = parse_number(priced[4] or "0", 2), unescape(priced[5] or "")
    return ItemData(*head, amount, price, quantity, unit_tax, tax, tax_name, cents)


def parse_payment(data: bytes) -> PaymentData:
    text = decode(data)
    if text[:1] not in PAYMENT_METHODS or not text:
        raise bad_syntax("Payment method")
    return PaymentData(text[0], parse_number(text[1:], 2))


def parse_comment(data: bytes) -> CommentData:
    label, comma, text = decode(data).partition(",")
    if not comma or len(label) != 1 or label not in COMMENT_LABELS:
        raise bad_syntax("Comment label")
    return CommentData(label, unescape(text))
