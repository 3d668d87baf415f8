"""Texts that do not fit a frame of the machine are cut there: what is stored and printed is what the machine holds (SFE 2.4), and the answer has a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from common.language import Text
from common.language.reasons import TEXT_CUT, to_stored
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.invoice.invoice import BUSINESSES, NO_ITEM, Invoice, Warn

COMPANY_NAME = "customer.name"


def as_cut(invoice: Invoice, as_stored: Callable[[Invoice], Invoice]) -> Invoice:
    """With a warning for each text that is cut. InvalidRequest for the name of a company or trader: it says who may deduct the VAT."""
    stored = as_stored(invoice)
    if stored is invoice:
        return invoice
    cut = [
        (field, len(after), item)
        for (field, before, item), (_, after, _) in zip(_texts(invoice), _texts(stored), strict=True)
        if before != after
    ]
    for field, length, _ in cut:
        if field == COMPANY_NAME and invoice.customer.client_type in BUSINESSES:
            message = Text(
                "is longer than the machine stores beside the customer's other texts: {length} characters",
                length=length,
            )
            raise InvalidRequest([FieldError(field, message)])
    warnings = tuple(
        Warn(
            "TEXT_CUT",
            to_stored(TEXT_CUT(field=field, length=length)),
            item,
            field,
        )
        for field, length, item in cut
    )
    return msgspec.structs.replace(stored, warnings=(*invoice.warnings, *warnings))


def _texts(invoice: Invoice) -> Iterator[tuple[str, str, int]]:
    """Each text that may be cut: the path of its field, the text, the index of the item."""
    yield "operatorName", invoice.operator_name, NO_ITEM
    customer = invoice.customer
    for name in ("name", "address", "phone", "email", "rccm"):
        yield f"customer.{name}", getattr(customer, name), NO_ITEM
    for index, item in enumerate(invoice.items):
        yield f"items[{index}].name", item.name, index
        yield f"items[{index}].code", item.code, index
        yield f"items[{index}].specificTaxDesc", item.specific_name, index
    for index, comment in enumerate(invoice.comments):
        yield f"comments[{index}]", comment.text, NO_ITEM
