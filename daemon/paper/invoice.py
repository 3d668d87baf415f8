"""Document of a certified invoice for the customer (SFE 2.0, section 3), and the slip of a sale that waits for
certification. The slip states this and has no security elements."""

from collections.abc import Iterator
from typing import Final

import msgspec

from common.language import Language, Text
from common.numbers import amount, percentage, scaled
from daemon.core.clock import millis_text
from daemon.core.invoice.invoice import Customer, Invoice, Item, TaxLine
from daemon.core.invoice.taxes import WHOLE, without_vat
from daemon.core.ledger.attempt import Record, is_test_code
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.money import divide_half_up
from daemon.core.report.receipt import counters_text, receipt
from daemon.paper import shop as paper_shop
from daemon.paper.layout import Document, Element, Pair, QrCode, Rule, Table, TextLine, Title, machine_moment, moment
from daemon.paper.letters import sum_of
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
    "RAM": Text("return of goods or services"),
    "RRR": Text("rebate"),
}
CLIENTS: Final = {
    "CC": Text("walk-in customer"),
    "PP": Text("natural person"),
    "PM": Text("company"),
    "PC": Text("trader"),
}
COMMENT_NAMES: Final = {"A": Text("Exemption ref."), "B": Text("Legal basis")}
DUPLICATE: Final = Text("DUPLICATE")
STAMP_DUTY: Final = Text("Stamp duty, payment in cash")

CODE_PART: Final = 4
HUNDREDTHS: Final = 100
WAITING: Final = Text("WAITING FOR CERTIFICATION")
NO_VALUE: Final = Text("WITHOUT FISCAL VALUE")


def invoice_document(record: Record, shop: Shop, style: Style) -> Document:
    """Document of a certified record. A duplicate has the original's number and is marked as one. For a record that
    was read from the machine it contains only the machine's data."""
    return Document(record.number, style.language, tuple(_elements(record, shop, style)))


def _elements(record: Record, shop: Shop, style: Style) -> Iterator[Element]:
    invoice = record.invoice
    yield from paper_shop.head(msgspec.structs.replace(shop, ifu=record.ifu or shop.ifu), style)
    yield from _title(record, shop, style)
    if invoice.items:
        yield Pair(style.say("Operator"), " ".join(dict.fromkeys((invoice.operator_id, invoice.operator_name))))
        yield from _customer(invoice.customer, shop, style)
        yield Rule()
    for item in invoice.items:
        yield from _item(item, invoice, style)
    yield Rule()
    yield from _totals(record, style)
    yield from _payments(invoice, shop, style)
    yield from _comments(invoice, shop, style)
    yield Rule()
    yield from _security(record, shop, style)


def _title(record: Record, shop: Shop, style: Style) -> Iterator[Element]:
    say, invoice = style.say, record.invoice
    if style.is_duplicate:
        yield Title(style.law(DUPLICATE) + (f" N° {style.copy}" if style.copy else ""))
    yield from paper_shop.mark_of_test(shop, style, is_test=is_test_code(record.code))
    yield Title(style.law(TITLES[invoice.type]))
    yield TextLine(say("No. {number}", number=invoice.number), align="center", bold=True)
    if invoice.deferred:
        sold_at = moment(millis_text(invoice.deferred.sold_at), shop.zone, style.language)
        yield TextLine(
            style.law(Text("Regularisation of the sale of {sold_at}", sold_at=sold_at)), align="center", bold=True
        )
    if record.ended_at:
        yield Pair(say("Issued on"), moment(millis_text(record.ended_at), shop.zone, style.language))
    if invoice.nature:
        nature = style.beside(shop.natures[invoice.nature], NATURES[invoice.nature])
        yield Pair(say("Nature"), f"{invoice.nature} {nature}")
    if invoice.reference:
        yield Pair(say("Original"), invoice.reference)


def _customer(customer: Customer, shop: Shop, style: Style) -> Iterator[Element]:
    say, kind = style.say, customer.client_type
    yield Pair(say("Customer"), f"[{kind}] {style.beside(shop.clients[kind], CLIENTS[kind])}")
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
    """Line amounts include VAT if the prices do: `invoice.price_mode`."""
    say, language = style.say, style.language
    yield TextLine(f"{item.name} [{item.item_type}]")
    if item.code:
        yield TextLine(say("Code {code}", code=item.code), indent=2)
    quantity = " ".join(part for part in (scaled(item.quantity, 3, language), item.unit) if part)
    price = f"{scaled(item.price, 2, language)} {invoice.price_mode}"
    yield Pair(f"{quantity} x {price}", f"{_line(item, language)} {item.group}", indent=2)
    if item.till_price or item.till_quantity:
        text = f"{scaled(item.printed_quantity, 3, language)} x {scaled(item.printed_price, 2, language)}"
        yield Pair(say("Quantity and price entered"), f"{text} {invoice.price_mode}", indent=2)
    if item.original_price and (item.discount or item.original_price != item.printed_price):
        before = f"{scaled(item.original_price, 2, language)} {invoice.price_mode}"
        yield Pair(say("Price before reduction") if item.discount else say("Price before change"), before, indent=2)
    if item.discount:
        reduction = f"{amount(-_reduction(item, invoice))} {invoice.price_mode}"
        yield Pair(say("Reduction included"), reduction, indent=2)
    if item.specific_tax:
        name = item.specific_name or say("specific tax")
        rate = scaled(item.specific_rate, 2, language)
        value = f"{quantity} x {rate} = {amount(item.specific_tax)}"
        yield TextLine(say("{name}: {value}", name=name, value=value), indent=2)
        vat = divide_half_up(item.specific_tax * item.rate * HUNDREDTHS, WHOLE)
        if vat:
            yield Pair(say("VAT on the specific tax"), scaled(vat, 2, language), indent=2)


def _line(item: Item, language: Language) -> str:
    return scaled(item.line_hundredths, 2, language) if item.line_cents else amount(item.line_amount)


def _reduction(item: Item, invoice: Invoice) -> int:
    """The reduction with or without VAT, as the line's amounts."""
    return item.discount if invoice.price_mode == "TTC" else without_vat(item.discount, item.rate)


def _totals(record: Record, style: Style) -> Iterator[Element]:
    invoice, say, language = record.invoice, style.say, style.language
    if invoice.items:
        yield Table(
            (say("Group"), say("Excl. tax"), say("VAT"), say("Incl. tax")),
            tuple(
                (
                    f"{line.group} {percentage(line.rate, language)}",
                    *(scaled(value, 2, language) for value in figures(line)),
                )
                for line in invoice.taxes
            ),
        )
    for line in invoice.taxes:
        if reduction := sum(item.discount for item in invoice.items if item.group == line.group):
            gross, net = amount(line.ttc + reduction), amount(line.ttc)
            value = f"{gross} - {amount(reduction)} = {net}"
            yield Pair(say("{group} before and after reduction", group=line.group), value)
    if invoice.specific_tax:
        yield Pair(say("of which specific tax"), amount(invoice.specific_tax))
    if invoice.items:
        yield Pair(say("Total excl. tax"), scaled(sum(figures(line)[0] for line in invoice.taxes), 2, language))
        yield Pair(say("Total VAT"), scaled(sum(figures(line)[1] for line in invoice.taxes), 2, language))
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(record.total_ttc), bold=True)
    yield TextLine(say("The sum {amount}", amount=sum_of(record.total_ttc, language)))
    if invoice.discount:
        yield Pair(say("Reductions included"), amount(-invoice.discount))
    yield from _withholdings(invoice, style)


def _withholdings(invoice: Invoice, style: Style) -> Iterator[Element]:
    for psvb in invoice.withholdings:
        rate, base = percentage(psvb.rate, style.language), amount(psvb.base)
        name = style.say("PSVB {group} ({rate} of {base})", group=psvb.group, rate=rate, base=base)
        yield Pair(name, amount(psvb.amount))


def figures(line: TaxLine) -> tuple[int, int, int]:
    """Amounts without VAT, of VAT and with VAT, in hundredths of a franc; from the machine's cents if it returns them
    (SFE 6.7)."""
    tva = line.tva_hundredths or line.tva * HUNDREDTHS
    return line.ttc * HUNDREDTHS - tva, tva, line.ttc * HUNDREDTHS


def _payments(invoice: Invoice, shop: Shop, style: Style) -> Iterator[Element]:
    yield Rule()
    for payment in invoice.payments:
        yield Pair(shop.labels.get(payment.method, payment.method), amount(payment.amount))
    if invoice.stamp_duty:
        yield Pair(style.law(STAMP_DUTY), amount(invoice.stamp_duty))


def _comments(invoice: Invoice, shop: Shop, style: Style) -> Iterator[Element]:
    if invoice.comments:
        yield Rule()
    for comment in invoice.comments:
        name = shop.comments.get(comment.label, "")
        if comment.label in COMMENT_NAMES:
            name = style.beside(name, COMMENT_NAMES[comment.label])
        name = " ".join(part for part in (comment.label, name) if part)
        yield TextLine(style.say("{name}: {value}", name=name, value=comment.text))


def _security(record: Record, shop: Shop, style: Style) -> Iterator[Element]:
    """Proof of certification: code, NIM, counters, the machine's time, and a QR code of all of them."""
    say, content = style.say, receipt(record)
    yield TextLine(say("Code SECeF/DGI"), align="center")
    yield TextLine(grouped(record.code), align="center", bold=True)
    yield from paper_shop.machine(record.nim, [record.invoice.isf] if record.invoice.isf else [])
    yield Pair(say("Counters"), counters_text(record))
    yield Pair(say("MCF date"), machine_moment(record.machine_time, style.language))
    yield QrCode(content.qr_content)
    yield from paper_shop.mark_of_test(shop, style, is_test=is_test_code(record.code))


def grouped(code: str) -> str:
    """Groups of four characters, easy to compare."""
    return "-".join(code[at : at + CODE_PART] for at in range(0, len(code), CODE_PART))


def waiting_document(sale: DeferredSale, invoice: Invoice, shop: Shop, style: Style, url: str) -> Document:
    """`url` is the address of the future certified invoice; empty if customers cannot reach this box."""
    return Document(sale.number, style.language, tuple(_waiting_elements(sale, invoice, shop, style, url)))


def _waiting_elements(sale: DeferredSale, invoice: Invoice, shop: Shop, style: Style, url: str) -> Iterator[Element]:
    say, language = style.say, style.language
    yield from paper_shop.head(shop, style)
    yield Title(style.law(WAITING))
    yield Title(style.law(NO_VALUE))
    yield TextLine(say("No. {number}", number=sale.number), align="center", bold=True)
    yield Pair(say("Sold on"), moment(millis_text(sale.sold_at), shop.zone, language))
    if invoice.customer.name:
        yield Pair(say("Customer"), invoice.customer.name)
    yield Rule()
    for item in invoice.items:
        yield from _waiting_item(item, invoice, style)
    yield Rule()
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(sale.total_ttc), bold=True)
    yield from _withholdings(invoice, style)
    yield from _payments(invoice, shop, style)
    yield Rule()
    due = moment(millis_text(sale.due_at), shop.zone, language)
    yield TextLine(say("The certified invoice is due by {due} at the latest.", due=due))
    if url:
        yield TextLine(say("You will find it at this address:"))
        yield QrCode(url)
        yield TextLine(url)
    yield TextLine(style.law(NO_VALUE), align="center", bold=True)
    yield from paper_shop.mark_of_test(shop, style, is_test=False)


def _waiting_item(item: Item, invoice: Invoice, style: Style) -> Iterator[Element]:
    language = style.language
    yield TextLine(item.name)
    quantity = " ".join(part for part in (scaled(item.printed_quantity, 3, language), item.unit) if part)
    price = f"{scaled(item.printed_price, 2, language)} {invoice.price_mode}"
    yield Pair(f"{quantity} x {price}", _line(item, language), indent=2)
