"""The commands of protocol section 3: number, title, fields, fields about people, and whether every machine has them.
Requests are encoded in `commands.py`; replies are read in `replies/`."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from common.language import Text

STATE, SERVER, TAXPAYER, CUSTOMER, OPEN = 0xC1, 0xC2, 0x2B, 0xC3, 0xC0
ITEM, SUBTOTAL, PAYMENT, COMMENT, CLOSE = 0x31, 0x33, 0x35, 0x36, 0x38

_GROUPS = "ABCDEFGHIJKLMNOP"


class CommandEntry(NamedTuple):
    title: Text
    request: tuple[str, ...] = ()
    """Names of the request's fields; none: it is one text."""
    longer_request: tuple[str, ...] = ()
    """As `request`, for a request with more fields."""
    separator: str = ","
    """Separator of the request's fields."""
    reply: tuple[str, ...] = ()
    people: slice | None = None
    """Fields of the request about people: stored masked only."""
    reply_people: tuple[int, ...] = ()
    """Fields of the reply, from 0, that contain an IFU, in whatever form."""
    reply_number: tuple[int, ...] = ()
    """Fields of the reply that contain an invoice number."""
    reply_words: tuple[int, ...] = ()
    """Fields of the reply with the machine's own words, like a refusal's."""
    is_optional: bool = False
    """Some machines do not know it: if one is silent at it and answers others, the line is not at fault."""


COMMANDS: Final[Mapping[int, CommandEntry]] = {
    STATE: CommandEntry(
        Text("state of the machine"),
        reply=(
            *("NIM", "IFU", "DT", "TC", "FVC", "FRC", "LDT", "LTYPE", "LCODE", "LFN", "LAMT"),
            *(f"T{group}" for group in _GROUPS),
        ),
        reply_people=(1,),
        reply_number=(9,),
    ),
    SERVER: CommandEntry(
        Text("link to the tax server"), reply=("EC", "DC", "DT", "STA", "ER"), reply_words=(4,), is_optional=True
    ),
    TAXPAYER: CommandEntry(Text("taxpayer"), reply=("LINE", "TEXT"), is_optional=True),
    CUSTOMER: CommandEntry(
        Text("customer"),
        request=("CTYPE", "CIFU", "CNAME", "CADDR", "CTEL", "CEMAIL", "CRCCM"),
        people=slice(1, None),
        reply_words=(0,),
    ),
    OPEN: CommandEntry(
        Text("open an invoice"),
        request=("OPID", "OPNAME", "IFU", "TYPE", "PMODE", "ISF", "FN"),
        longer_request=("OPID", "OPNAME", "IFU", "TYPE", "NATURE", "REF", "PMODE", "ISF", "FN"),
        reply=("FC", "TC"),
        people=slice(1, 3),
    ),
    ITEM: CommandEntry(
        Text("item"), request=("NAME", "TAX", "PRICE"), separator="\t", reply=("TTC", "HT", "TVA", "TS")
    ),
    SUBTOTAL: CommandEntry(
        Text("subtotal"),
        reply=("TTC", *(f"TTC_{group}" for group in _GROUPS), *(f"TVA_{group}" for group in _GROUPS), "TS"),
    ),
    PAYMENT: CommandEntry(Text("payment")),
    COMMENT: CommandEntry(Text("comment"), people=slice(1, None), reply_words=(0,)),
    CLOSE: CommandEntry(
        Text("certify"),
        reply=("FC", "TC", "TYPE", "DT", "NIM", "IFU", "CODE", "FN"),
        reply_people=(5,),
        reply_number=(7,),
    ),
}
