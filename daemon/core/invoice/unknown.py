"""Fields of a request that are unknown: reported, with the one that was probably meant (decision 27).

They change nothing, so a client that sends more than mcfd knows goes on working; but on a document that cannot be taken back a
misspelt name must not pass in silence."""

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from common.language import Text
from common.language.reasons import MORE_UNKNOWN_FIELDS, UNKNOWN_FIELD, UNKNOWN_FIELD_NEAR, to_stored
from daemon.core.errors import FieldError
from daemon.core.invoice.invoice import NO_ITEM, Warn
from daemon.core.invoice.request import (
    CertifyBody,
    CommentBody,
    CreditNoteBody,
    CustomerBody,
    ItemBody,
    PaymentBody,
)

FieldNames = frozenset[str]


def fields_of(shape: type[msgspec.Struct]) -> FieldNames:
    """As they stand in JSON."""
    return frozenset(shape.__struct_encode_fields__)


FIELDS: Final[Mapping[str, FieldNames]] = {
    kind: fields_of(body)
    for kind, body in (
        ("", CertifyBody),
        ("customer", CustomerBody),
        ("items", ItemBody),
        ("payments", PaymentBody),
        ("comments", CommentBody),
    )
}
"""What each object of a request may hold."""
CREDIT_FIELDS: Final = fields_of(CreditNoteBody) - FIELDS[""]

MEANT: Final[Mapping[str, Mapping[str, str]]] = {
    "": {"number": "invoiceNumber", "type": "invoiceType", "operator": "operatorId", "client": "customer"},
    "customer": {"type": "clientType", "tel": "phone", "mail": "email"},
    "items": {"price": "unitPrice", "amount": "amountTtc", "qty": "quantity", "type": "itemType", "group": "taxGroup"},
    "payments": {"type": "method", "value": "amount"},
    "comments": {"comment": "text", "type": "label"},
}
"""Names that are often taken for another, and are too far from it for their letters to tell."""

PARAMETER_NAMES: Final = {
    "from": ("begin", "datefrom", "fromdate", "since", "start", "startdate"),
    "to": ("dateto", "end", "enddate", "todate", "until"),
    "after": ("cursor", "offset", "page"),
    "cursor": ("after", "next", "offset", "page"),
    "limit": ("count", "pagesize", "perpage", "size"),
    "invoiceNumber": ("number",),
    "dry_run": ("dry", "preview", "simulate"),
}
"""The same for the parameters of a URL."""

MAX_FIELDS: Final = 100
"""Warnings of one request; a body may hold thousands of unknown fields."""
MAX_COMPARED: Final = 20
"""Of which so many are compared letter by letter, which takes time."""
CODE: Final = "UNKNOWN_FIELD"
MORE: Final = to_stored(MORE_UNKNOWN_FIELDS)
LONGEST_NAME: Final = 40


class Unknown(NamedTuple):
    """`field` is a path as `items[2].prix`; `near` is the known field that was probably meant, or empty; `item` the index."""

    field: str
    near: str
    item: int = NO_ITEM


def unknown_fields(body: Mapping[str, object], *, credit: bool) -> tuple[Unknown, ...]:
    """In the order in which they stand, one more than is reported at most; one that is null stands for nothing, and is left out."""
    found: list[Unknown] = []
    for at, (path, kind, name, item) in enumerate(islice(_walk(body, credit=credit), MAX_FIELDS + 1)):
        near = _near(name, _field_names(kind, credit=credit), MEANT[kind]) if at < MAX_COMPARED else ""
        found.append(Unknown(path + _short(name), path + near if near else "", item))
    return tuple(found)


def unknown_of(body: Mapping[str, object], names: FieldNames) -> tuple[Unknown, ...]:
    """The same of a flat body whose fields are `names`."""
    strange = enumerate(islice(_strange("", "", body, names, NO_ITEM), MAX_FIELDS + 1))
    meant = {other: name for name, others in PARAMETER_NAMES.items() if name in names for other in others}
    return tuple(
        Unknown(_short(name), _near(name, names, meant) if at < MAX_COMPARED else "") for at, (_, _, name, _) in strange
    )


def warnings_of(unknown: tuple[Unknown, ...]) -> tuple[Warn, ...]:
    named = tuple(Warn(CODE, to_stored(_reason(each)), each.item, each.field) for each in unknown[:MAX_FIELDS])
    return (*named, Warn(CODE, MORE)) if len(unknown) > MAX_FIELDS else named


def refusals_of(unknown: tuple[Unknown, ...]) -> list[FieldError]:
    """The same with `Mcfd-Strict: true`."""
    return [FieldError(each.field, sentence(each)) for each in unknown[:MAX_FIELDS]]


def misspelt(unknown: tuple[Unknown, ...]) -> tuple[Unknown, ...]:
    """Those that were probably meant to be something: reported with what was refused for want of it."""
    return tuple(each for each in unknown if each.near)


def sentence(unknown: Unknown) -> str:
    if unknown.near:
        return Text("is not a known field; did you mean {near}?", near=unknown.near)
    return Text("is not a known field")


def _reason(unknown: Unknown) -> Text:
    if unknown.near:
        return UNKNOWN_FIELD_NEAR(field=unknown.field, near=unknown.near)
    return UNKNOWN_FIELD(field=unknown.field)


def _field_names(kind: str, *, credit: bool) -> FieldNames:
    return FIELDS[kind] | CREDIT_FIELDS if credit and not kind else FIELDS[kind]


def _walk(body: Mapping[str, object], *, credit: bool) -> Iterator[tuple[str, str, str, int]]:
    """Path of the object, its kind, the name that is not known, the index of the item."""
    yield from _strange("", "", body, _field_names("", credit=credit), NO_ITEM)
    customer = body.get("customer")
    if isinstance(customer, dict):
        yield from _strange("customer.", "customer", customer, FIELDS["customer"], NO_ITEM)
    for kind in ("items", "payments", "comments"):
        entries = body.get(kind)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                item = index if kind == "items" else NO_ITEM
                yield from _strange(f"{kind}[{index}].", kind, entry, FIELDS[kind], item)


def _strange(
    path: str, kind: str, entry: Mapping[str, object], names: FieldNames, item: int
) -> Iterator[tuple[str, str, str, int]]:
    for name, value in entry.items():
        if name not in names and value is not None:
            yield path, kind, name, item


def _near(name: str, names: FieldNames, meant: Mapping[str, str]) -> str:
    """The known field that is often meant, or has the same letters, whatever their case and order, or nearly."""
    plain = _plain(name)
    alike = {_plain(field): field for field in sorted(names)}
    if plain in meant:
        return meant[plain]
    mixed_up = [field for field in alike if sorted(field) == sorted(plain)]
    if mixed_up:
        return alike[mixed_up[0]]
    best = difflib.get_close_matches(plain[:LONGEST_NAME], alike, cutoff=0.7)
    return alike[best[0]] if best else ""


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
