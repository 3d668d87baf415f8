"""A certified invoice as it is handed to the customer (SFE 2.0, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from common.language import Speaker, Text
from common.numbers import amount, percentage, scaled
from daemon.core.invoice.invoice import Customer, Invoice, Item
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.test_mode import is_test_code
from daemon.core.report.receipt import counters_text, receipt
from daemon.paper import shop as paper_shop
from daemon.paper.elements import Document, Element, Pair, QrCode, Rule, Table, TextLine, Title
from daemon.paper.figures import machine_moment
from daemon.paper.letters import in_letters
from daemon.paper.shop import Shop, Style

TITLES: Final = {
    "FV": Text("SALES INVOICE"),
    "FT": Text("ADVANCE INVOICE"),
    "EV": Text("EXPORT SALES INVOICE"),
    "ET": Text("EXPORT ADVANCE INVOICE"),
    "FA": Text("CREDIT NOTE"),
    "EA": Text("EXPORT CREDIT NOTE"),
}
NATURES: Final = {
    "COR": Text("correction"),
    "RAN": Text("cancellation"),
    "RAM": Text("return of goods"),
    "RRR": Text("rebate"),
}
COMMENT_LABELS: Final = {"A": Text("Exemption ref."), "B": Text("Legal basis")}
"""The labels C to H are reserved; they are printed as letters."""

CODE_PART: Final = 4


def invoice_document(record: Record, shop: Shop, style: Style) -> Document:
    """Of a certified record. A duplicate has the number of its original and says what it is."""
    return Document(record.number, style.language, tuple(_elements(record, shop, style)))


def _elements(record: Record, shop: Shop, style: Style) -> Iterator[Element]:
    invoice = record.invoice
    yield from paper_shop.head(shop, style)
    yield from _title(record, shop, style)
    yield from _customer(invoice.customer, style.say)
    yield Rule()
    for item in invoice.items:
        yield from _item(item, invoice, style)
    yield Rule()
    yield from _totals(record, shop, style)
    yield from _comments(invoice, style)
    yield Rule()
    yield from _security(record, shop, style)


def _title(record: Record, shop: Shop, style: Style) -> Iterator[Element]:
    say, invoice = style.say, record.invoice
    if style.is_duplicate:
        yield Title(say("DUPLICATE"))
    yield from paper_shop.mark_of_test(shop, style, is_test=is_test_code(record.code))
    yield Title(TITLES[invoice.type].told(style.language))
    yield TextLine(say("No. {number}", number=invoice.number), align="center", bold=True)
    if invoice.is_credit:
        yield Pair(say("Nature"), f"{invoice.nature} ({NATURES[invoice.nature].told(style.language)})")
        yield Pair(say("Original"), invoice.reference)
    yield Pair(say("Operator"), " ".join(dict.fromkeys((invoice.operator_id, invoice.operator_name))))


def _customer(customer: Customer, say: Speaker) -> Iterator[Element]:
    yield Pair(say("Customer"), f"[{customer.client_type}]")
    for name, value in (
        (say("Name"), customer.name),
        ("IFU", customer.ifu),
        ("RCCM", customer.rccm),
        (say("Address"), customer.address),
        (say("Phone"), customer.phone),
        (say("E-mail"), customer.email),
    ):
        if value:
            yield Pair(name, value, indent=2)


def _item(item: Item, invoice: Invoice, style: Style) -> Iterator[Element]:
    """The amount of a line is with VAT where prices are, and without where they are not: `invoice.price_mode`."""
    say, language = style.say, style.language
    yield TextLine(f"{item.name} [{item.item_type}]")
    if item.code:
        yield TextLine(say("Code {code}", code=item.code), indent=2)
    quantity = " ".join(part for part in (scaled(item.quantity, 3, language), item.unit) if part)
    price = f"{scaled(item.price, 2, language)} {invoice.price_mode}"
    yield Pair(f"{quantity} x {price}", f"{amount(item.line_amount, language)} {item.group}", indent=2)
    if item.original_price:
        yield Pair(say("Price before reduction"), scaled(item.original_price, 2, language), indent=2)
    if item.discount:
        yield Pair(say("Reduction included"), amount(-item.discount, language), indent=2)
    if item.specific_tax:
        name = item.specific_name or say("specific tax")
        rate = scaled(item.specific_rate, 2, language)
        value = f"{quantity} x {rate} = {amount(item.specific_tax, language)}"
        yield TextLine(say("{name}: {value}", name=name, value=value), indent=2)


def _totals(record: Record, shop: Shop, style: Style) -> Iterator[Element]:
    invoice, say, language = record.invoice, style.say, style.language
    yield Table(
        (say("Group"), say("Excl. tax"), say("VAT"), say("Incl. tax")),
        tuple(
            (
                f"{line.group} {percentage(line.rate, language)}",
                *(amount(value, language) for value in (line.ht, line.tva, line.ttc)),
            )
            for line in invoice.taxes
        ),
    )
    if invoice.specific_tax:
        yield Pair(say("of which specific tax"), amount(invoice.specific_tax, language))
    yield Pair(say("Total excl. tax"), amount(sum(line.ht for line in invoice.taxes), language))
    yield Pair(say("Total VAT"), amount(sum(line.tva for line in invoice.taxes), language))
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(record.total_ttc, language), bold=True)
    yield TextLine(say("The sum of {amount}", amount=in_letters(record.total_ttc, language)))
    if invoice.discount:
        yield Pair(say("Reductions included"), amount(-invoice.discount, language))
    if invoice.psvb:
        rate, base = percentage(invoice.psvb.rate, language), amount(invoice.psvb.base, language)
        name = say("PSVB {group} ({rate} of {base})", group=invoice.psvb.group, rate=rate, base=base)
        yield Pair(name, amount(invoice.psvb.amount, language))
    yield Rule()
    for payment in invoice.payments:
        yield Pair(shop.labels.get(payment.method, payment.method), amount(payment.amount, language))
    if invoice.stamp_duty:
        yield Pair(say("Stamp duty, payment in cash"), amount(invoice.stamp_duty, language))


def _comments(invoice: Invoice, style: Style) -> Iterator[Element]:
    if invoice.comments:
        yield Rule()
    for comment in invoice.comments:
        name = COMMENT_LABELS[comment.label].told(style.language) if comment.label in COMMENT_LABELS else ""
        name = " ".join(part for part in (comment.label, name) if part)
        yield TextLine(style.say("{name}: {value}", name=name, value=comment.text))


def _security(record: Record, shop: Shop, style: Style) -> Iterator[Element]:
    """What proves the certification: code, NIM, counters, the machine's own time, and all of it as a QR code."""
    say, told = style.say, receipt(record)
    yield TextLine(say("Code SECeF/DGI"), align="center")
    yield TextLine(grouped(record.code), align="center", bold=True)
    yield from paper_shop.machine(shop, record.nim)
    yield Pair(say("Counters"), counters_text(record))
    yield Pair(say("MCF date"), machine_moment(record.machine_time, style.language))
    yield QrCode(told.qr_content)
    yield from paper_shop.mark_of_test(shop, style, is_test=is_test_code(record.code))


def grouped(code: str) -> str:
    """A code in fours, so that a person can compare it."""
    return "-".join(code[at : at + CODE_PART] for at in range(0, len(code), CODE_PART))
