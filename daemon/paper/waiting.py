"""The slip of a sale that waits for its certification: it says so, and has nothing of a certified invoice's security."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from common.language import Text
from common.numbers import amount, scaled
from daemon.core.clock import millis_text
from daemon.core.invoice.invoice import Invoice, Item
from daemon.core.ledger.deferred import DeferredSale
from daemon.paper import shop as paper_shop
from daemon.paper.elements import Document, Element, Pair, QrCode, Rule, TextLine, Title
from daemon.paper.figures import moment
from daemon.paper.shop import Shop, Style

WAITING: Final = Text("WAITING FOR CERTIFICATION")
NO_VALUE: Final = Text("WITHOUT FISCAL VALUE")


def waiting_document(sale: DeferredSale, invoice: Invoice, shop: Shop, style: Style, url: str) -> Document:
    """`url` is where the certified invoice is found later; empty where no customer reaches this box."""
    return Document(sale.number, style.language, tuple(_elements(sale, invoice, shop, style, url)))


def _elements(sale: DeferredSale, invoice: Invoice, shop: Shop, style: Style, url: str) -> Iterator[Element]:
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
        yield from _item(item, invoice, style)
    yield Rule()
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(sale.total_ttc, language), bold=True)
    for payment in invoice.payments:
        yield Pair(shop.labels.get(payment.method, payment.method), amount(payment.amount, language))
    yield Rule()
    due = moment(millis_text(sale.due_at), shop.zone, language)
    yield TextLine(say("The certified invoice is due by {due} at the latest.", due=due))
    if url:
        yield TextLine(say("You will find it at this address:"))
        yield QrCode(url)
        yield TextLine(url)
    yield TextLine(style.law(NO_VALUE), align="center", bold=True)
    yield from paper_shop.mark_of_test(shop, style, is_test=False)


def _item(item: Item, invoice: Invoice, style: Style) -> Iterator[Element]:
    language = style.language
    yield TextLine(item.name)
    quantity = " ".join(part for part in (scaled(item.shown_quantity, 3, language), item.unit) if part)
    price = f"{scaled(item.shown_price, 2, language)} {invoice.price_mode}"
    yield Pair(f"{quantity} x {price}", amount(item.line_amount, language), indent=2)
