"""The door: what a till sent becomes an `Invoice`, or InvalidRequest with every fault of it (decisions 1 to 4 and 24).

`body` is what a JSON parser gave that keeps numbers exact: dict, list, str, int, Decimal, bool, None.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast, get_args

import msgspec

from common.language import Text, sentence
from common.language.reasons import LINES_ROUNDED, NATURE_ASSUMED, PSVB_LEFT_OUT, from_stored, to_stored
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.invoice.fields import Fields, as_cut
from daemon.core.invoice.invoice import (
    BUSINESSES,
    CREDITS,
    EDITION,
    NATURES,
    REBATE,
    SALES,
    ClientType,
    Comment,
    Customer,
    Invoice,
    InvoiceType,
    Item,
    PriceMode,
    Psvb,
    Warn,
)
from daemon.core.invoice.items import Line, read_item
from daemon.core.invoice.number import NO_SINGLE_ORIGINAL, NumberScope, Series, read_reference
from daemon.core.invoice.payments import Due, Paid, adjust_payments, read_payments
from daemon.core.invoice.request import (
    COMMENT_LABELS,
    CUSTOMER_TEXTS,
    INVOICE_TEXTS,
    MAX_COMMENTS,
    MAX_ITEMS,
    NAME_LENGTH,
    SHORT_LENGTH,
)
from daemon.core.invoice.rules import FIELD as STAMP_DUTY
from daemon.core.invoice.rules import IFU_PATTERN, PSVB_RATES, Rules, stamp_duty
from daemon.core.invoice.taxes import tax_lines, withholdings
from daemon.core.invoice.unknown import misspelt, refusals_of, unknown_fields, warnings_of
from daemon.core.money import MAX_AMOUNT, round_half_up, scaled

FREE_LABELS = COMMENT_LABELS[2:]
"""A and B say why no tax is due (annex of the SFE): they are for a text that names them."""
LOCAL_TYPES = ("FV", "FT", "FA")
PRICE_MODES, CLIENT_TYPES = get_args(PriceMode), get_args(ClientType)

_ESCAPE_SEQUENCE = re.compile(r"\^(?:xa|xd|x2c|lt|gt|amp);")
_ESCAPED_LENGTHS = {",": 5, "<": 4, ">": 4, "&": 5}
_ESCAPED = re.compile("[,<>&]")
REFUSED_IF_STRICT = frozenset({"CREDIT_NOTE_NATURE_ASSUMED", "UNIT_PRICE_DERIVED", "TEXT_CUT", "STAMP_DUTY_LEFT_OUT"})
"""Warnings that are a 422 with `Mcfd-Strict`. A specific tax that is folded is none (decision 4)."""
HUNDREDTHS = 100


class Defaults(msgspec.Struct, frozen=True):
    """What the machine's configuration says where the till is silent."""

    operator_id: str
    operator_name: str
    isf: str
    fold_in_ht: bool = False
    """In HT mode no specific tax is certified as its own amount: the machine would have no VAT on it (decision 31)."""
    line_cents: bool = False
    """In HT mode the machine takes two decimals on a line."""
    code_page: str = "utf-8"
    """In which the machine's texts are written and read."""
    rules: Rules = Rules()
    series: Series | None = None
    """Of the numbers that the box gives where a till sends none."""
    numbers: NumberScope = NumberScope()
    """For how long a number is taken."""
    letterhead: bytes = b""
    """Digest of what stands on paper now."""
    as_stored: Callable[[Invoice], Invoice] = lambda invoice: invoice
    """The invoice with its texts as the machine stores them: some are cut to fit a frame."""


def read_invoice(
    body: object, *, defaults: Defaults, rates: Mapping[str, int], credit: bool = False, strict: bool = False
) -> Invoice:
    """Reads and checks an invoice. `rates`: the machine's, in hundredths of a percent by group letter. `credit`: FA or
    EA is expected. `strict`: unknown fields and changed values are errors instead of `warnings` (decision 27)."""
    errors: list[FieldError] = []
    if not isinstance(body, dict):
        raise InvalidRequest.at("body", Text("must be a JSON object"))
    fields = Fields(body, "", errors)
    head = _head(fields, defaults, credit=credit)
    mode = head.price_mode
    lines = [
        line
        for index, item in enumerate(fields.objects("items", MAX_ITEMS))
        if (
            line := read_item(
                item, index, mode, rates, fold=mode == "HT" and defaults.fold_in_ht, cents=defaults.line_cents
            )
        )
        is not None
    ]
    paid = read_payments(fields)
    group, stamp = fields.choice("psvbGroup", tuple(PSVB_RATES), ""), fields.francs(STAMP_DUTY)
    unknown = unknown_fields(body, credit=credit)
    refusals = refusals_of(unknown if strict else misspelt(unknown))
    if errors or (strict and refusals):
        raise InvalidRequest([*errors, *refusals])
    try:
        whole = _complete(head, lines, paid, group=group, stamp=stamp, rules=defaults.rules)
        invoice = as_cut(whole, defaults.as_stored)
        if strict:
            _refuse_changes(invoice)
    except InvalidRequest as refused:
        raise InvalidRequest([*refused.errors, *refusals]) from None
    warnings = (*invoice.warnings, *warnings_of(unknown))
    return msgspec.structs.replace(invoice, warnings=warnings, letterhead=defaults.letterhead)


def _refuse_changes(invoice: Invoice) -> None:
    changed = [warn for warn in invoice.warnings if warn.code in REFUSED_IF_STRICT]
    if changed:
        raise InvalidRequest([FieldError(warn.field, from_stored(warn.message)) for warn in changed])


def _head(fields: Fields, defaults: Defaults, *, credit: bool) -> Invoice:
    """What it says beside its items and payments."""
    types = CREDITS if credit else SALES
    number = _number(fields, defaults.code_page)
    type_ = cast("InvoiceType", fields.choice("invoiceType", types))
    reference = _reference(fields) if credit else ""
    nature, warnings = _nature(fields, reference) if credit else ("", ())
    texts: dict[str, Any] = fields.texts(INVOICE_TEXTS)
    texts |= {"operator_name": texts["operator_name"] or defaults.operator_name}
    return Invoice(
        number=number,
        type=type_,
        operator_id=read_operator_id(fields) or defaults.operator_id,
        isf=_short(fields, "isf") or defaults.isf,
        customer=_customer(fields, defaults.rules, is_local=type_ in LOCAL_TYPES),
        comments=_comments(fields),
        nature=nature,
        reference=reference,
        warnings=warnings,
        price_mode=cast("PriceMode", fields.choice("priceMode", PRICE_MODES, "TTC")),
        items=(),
        payments=(),
        taxes=(),
        total_ttc=0,
        edition=EDITION,
        **texts,
    )


def _nature(fields: Fields, reference: str) -> tuple[str, tuple[Warn, ...]]:
    """The nature of a credit note. RRR has to be both nature and reference, or neither (SFE 2.29). An absent nature is
    assumed with a warning (SFE 2.28: the user has to choose)."""
    is_rebate = reference == NO_SINGLE_ORIGINAL
    if fields.values.get("creditNoteNature") is None:
        assumed = REBATE if is_rebate else "COR"
        message = NATURE_ASSUMED(assumed=assumed)
        warn = Warn("CREDIT_NOTE_NATURE_ASSUMED", to_stored(message), field="creditNoteNature")
        return assumed, (warn,)
    nature = fields.choice("creditNoteNature", tuple(NATURES))
    if nature == REBATE and reference and not is_rebate:
        fields.fault("creditNoteRef", Text("must be RRR for a credit note of nature RRR"))
    elif is_rebate and nature and nature != REBATE:
        fields.fault("creditNoteNature", Text("must be RRR for the reference RRR"))
    return nature, ()


def _number(fields: Fields, code_page: str) -> str:
    """It has to come back from the machine whole (C1h), else the last invoice cannot be recognised."""
    number = _short_enough(fields, "invoiceNumber", fields.number("invoiceNumber", SHORT_LENGTH))
    if not _is_carried(number, code_page):
        fields.fault(
            "invoiceNumber",
            Text("has a character that the machine cannot keep: its texts are {code_page}", code_page=code_page),
        )
    if number != number.strip():
        fields.fault("invoiceNumber", Text("must not begin or end with a space"))
    if _ESCAPE_SEQUENCE.search(number):
        fields.fault("invoiceNumber", Text("must not contain an escape sequence of the machine, as ^lt;"))
    return number


def _is_carried(number: str, code_page: str) -> bool:
    """Whether the machine's texts hold it exactly: a character that they lack would come back as another one."""
    try:
        return number.encode(code_page).decode(code_page) == number
    except UnicodeError:
        return False


def _short(fields: Fields, name: str) -> str:
    return _short_enough(fields, name, fields.text(name, SHORT_LENGTH))


def _short_enough(fields: Fields, name: str, text: str) -> str:
    if escaped_length(text) <= SHORT_LENGTH:
        return text
    fields.fault(name, Text("is longer than {short_length} bytes as the machine stores it", short_length=SHORT_LENGTH))
    return ""


def escaped_length(text: str) -> int:
    """Number of bytes of a text on the line: UTF-8, some characters escaped (protocol 2)."""
    size = len(text.encode())
    if _ESCAPED.search(text):
        size += sum(text.count(char) * (long - 1) for char, long in _ESCAPED_LENGTHS.items())
    return size


def read_operator_id(fields: Fields) -> str:
    """A till may send a number."""
    value = fields.values.get("operatorId")
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return _short(fields, "operatorId")
    try:
        return str(scaled(value, 0))
    except ValueError as error:
        fields.fault("operatorId", sentence(error))
        return ""


def _customer(body: Fields, rules: Rules, *, is_local: bool) -> Customer:
    """The customer (annex of the SFE): a person needs a name; a company or trader also an IFU, in the official form for
    a local sale."""
    fields = body.inside("customer")
    if fields is None:
        return Customer()
    kind = fields.choice("clientType", CLIENT_TYPES, "CC")
    business = kind in BUSINESSES
    ifu = fields.text("ifu", SHORT_LENGTH, required=business)
    if ifu and business and is_local and not rules.is_ifu(ifu):
        of_law = Text("has to be eight digits and a capital letter, as 00012345X")
        other = Text("has not the form of an IFU: {form}", form=rules.ifu_pattern)
        fields.fault("ifu", of_law if rules.ifu_pattern == IFU_PATTERN else other)
    return Customer(
        client_type=cast("ClientType", kind),
        ifu=ifu,
        name=fields.text("name", NAME_LENGTH, required=business or kind == "PP"),
        **fields.texts(CUSTOMER_TEXTS),
    )


def _comments(body: Fields) -> tuple[Comment, ...]:
    """A text without a label takes the first of C to H that no other comment asks for."""
    comments = [
        _comment(body, index, value) for index, value in enumerate(body.each("comments", MAX_COMMENTS, required=False))
    ]
    taken = [label for label, _ in comments if label]
    if len(set(taken)) < len(taken):
        body.fault("comments", Text("must not use a label twice"))
    free = [label for label in FREE_LABELS if label not in taken]
    plain = [index for index, (label, _) in enumerate(comments) if not label]
    for index in plain[len(free) :]:
        body.fault(f"comments[{index}]", Text("needs a label: A or B, as no other is free"))
    labels = dict(zip(plain, free, strict=False))
    return tuple(Comment(label or labels.get(index, ""), text) for index, (label, text) in enumerate(comments))


def _comment(body: Fields, index: int, value: object) -> tuple[str, str]:
    place = f"comments[{index}]"
    if isinstance(value, str):
        return "", Fields({place: value}, body.path, body.errors).text(place, NAME_LENGTH, required=True)
    if not isinstance(value, dict):
        body.fault(place, Text("must be a string or an object"))
        return "", ""
    fields = Fields(value, f"{place}.", body.errors)
    return fields.choice("label", COMMENT_LABELS, ""), fields.text("text", NAME_LENGTH, required=True)


def _reference(fields: Fields) -> str:
    """`<NIM>-<FVC of the original>` in its one form, or `RRR`."""
    text = fields.text("creditNoteRef", SHORT_LENGTH, required=True)
    if text.strip().upper() in ("", NO_SINGLE_ORIGINAL):
        return text.strip().upper()
    if (reference := read_reference(text)) is None:
        fields.fault("creditNoteRef", Text("must be <NIM>-<FVC of the original>, as EL02000015-1-291, or RRR"))
    return str(reference)


def _complete(
    head: Invoice, lines: Sequence[Line], paid: Sequence[Paid], *, group: str, stamp: int, rules: Rules
) -> Invoice:
    errors: list[FieldError] = []
    credit, mode = head.is_credit, head.price_mode
    items = tuple(line.item for line in lines)
    taxes = tax_lines(items, mode)
    due = Due(
        total=sum(tax.ttc for tax in taxes),
        lines=sum(item.amount_ttc for item in items),
        rounded=sum(line.rounded for line in lines),
        exact=sum((Fraction(line.exact) for line in lines), Fraction()),
        leeway=len(items) if credit and mode == "HT" else 0,
    )
    _check_sum(due, len(items), errors)
    payments, adjusted = adjust_payments(paid, due, errors)
    duty, duty_warnings = stamp_duty(stamp, payments, rules.stamp_duty, errors, credit=credit)
    if errors:
        raise InvalidRequest(errors)
    groups = {group, *(item.psvb_group for item in items)} - {""}
    withheld: tuple[Psvb, ...] = ()
    if groups and head.nature != REBATE:
        items = _with_groups(items, group)
        withheld = withholdings(items, group, mode, taxes, rules.psvb_rates)
    of_lines = (warn for line in lines for warn in line.warnings)
    warnings = (*of_lines, *adjusted, *_rounded(due), *head.warnings, *duty_warnings)
    if groups and head.nature == REBATE:  # CGI 200 leaves the withholding as it was first invoiced
        warnings = (*warnings, Warn("PSVB_LEFT_OUT", to_stored(PSVB_LEFT_OUT)))
    return msgspec.structs.replace(
        head,
        warnings=warnings,
        items=items,
        payments=payments,
        taxes=taxes,
        total_ttc=due.total,
        psvb=withheld[0] if withheld else None,
        more_psvb=withheld[1:],
        stamp_duty=duty,
    )


def _check_sum(due: Due, count: int, errors: list[FieldError]) -> None:
    """What the `count` items come to: a franc for each may be lost by rounding."""
    if abs(due.exact - due.lines) > count:
        exact = round_half_up(due.exact)
        message = Text("amountTtc come to {asked}, the unit prices with VAT to {total}", asked=due.lines, total=exact)
        errors.append(FieldError("items", message))
    if due.total > MAX_AMOUNT:
        errors.append(FieldError("items", Text("must come to at most {max_amount}", max_amount=MAX_AMOUNT)))


def _with_groups(items: tuple[Item, ...], group: str) -> tuple[Item, ...]:
    """Where one item names its group, each has the one that counts for it."""
    if not any(item.psvb_group for item in items):
        return items
    return tuple(msgspec.structs.replace(item, psvb_group=item.psvb_group or group) for item in items)


def _rounded(due: Due) -> tuple[Warn, ...]:
    """HT mode, where each line is rounded to whole francs: by how much the total is another one for that."""
    if due.rounded or due.exact == due.lines or due.total == round_half_up(due.exact):
        return ()
    exact = round_half_up(due.exact * HUNDREDTHS)
    message = LINES_ROUNDED(total=due.total, exact=_decimal(exact), difference=_decimal(due.total * HUNDREDTHS - exact))
    return (Warn("LINES_ROUNDED", to_stored(message)),)


def _decimal(hundredths: int) -> str:
    return f"{Decimal(hundredths) / HUNDREDTHS:f}"
