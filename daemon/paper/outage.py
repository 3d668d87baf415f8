"""The declaration of an outage, for the administration and the distributor: ready to be signed (arrêté 2025-0049, article 7 c)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from common.language import Counted, Text
from common.numbers import amount
from daemon.core.clock import HOUR, millis_text
from daemon.core.ledger.entries import OutageReason, Recipient
from daemon.core.ledger.outage import Outage
from daemon.paper import shop as paper_shop
from daemon.paper.layout import Document, Element, Pair, Rule, TextLine, Title, moment
from daemon.paper.shop import Shop, Style

TITLE: Final = Text("DECLARATION OF AN OUTAGE")
REASONS: Final[Mapping[OutageReason, Text]] = {
    "line_lost": Text("the line to the machine was lost"),
    "no_answer": Text("the machine did not answer"),
    "blocked": Text("the machine refused every invoice, as when the tax server has not heard of it for too long"),
    "deactivated": Text("the machine was not activated"),
    "attention": Text("the machine and the records did not agree; somebody had to look"),
    "disk": Text("the box could not store any more"),
    "box_off": Text("the box was switched off"),
}
RECIPIENTS: Final[Mapping[Recipient, Text]] = {
    "administration": Text("the tax administration"),
    "distributor": Text("the distributor"),
}
MINUTE: Final = 60_000
LINE: Final = "." * 24


def outage_document(outage: Outage, shop: Shop, style: Style, *, at: int) -> Document:
    """`at` (ms): an outage that lasts is declared as it is then."""
    title = style.say("Outage No. {number}", number=outage.number)
    return Document(title, style.language, tuple(_elements(outage, shop, style, at)))


def duration_text(milliseconds: int, style: Style) -> str:
    """As `3 h 05 min`."""
    hours, rest = divmod(milliseconds, HOUR)
    minutes = rest // MINUTE
    return style.say("{hours} h {minutes} min", hours=hours, minutes=f"{minutes:02d}")


def _elements(outage: Outage, shop: Shop, style: Style, at: int) -> Iterator[Element]:
    say, language = style.say, style.language

    def time_text(instant: int) -> str:
        return moment(millis_text(instant), shop.zone, language)

    yield from paper_shop.head(shop, style)
    yield Title(style.law(TITLE))
    yield TextLine(
        style.law(Text("Certified electronic invoicing system (SECeF), arrêté 2025-0049, article 7 c")), "center"
    )
    yield TextLine(say("Outage No. {number}", number=outage.number), align="center", bold=True)
    yield Rule()
    yield from paper_shop.machine(outage.nim, [shop.isf] if shop.isf else [])
    if shop.ifu:
        yield Pair("IFU", shop.ifu)
    yield Pair(say("From"), time_text(outage.since))
    yield Pair(say("To"), time_text(outage.until) if outage.until else say("it lasts still"))
    yield Pair(say("Duration"), duration_text(outage.duration(at), style))
    yield TextLine(say("Reason: {reason}", reason=say(REASONS[outage.reason])))
    yield Rule()
    yield from _sales(outage, style)
    for notice in outage.notices:
        who = say(RECIPIENTS[notice.who])
        yield Pair(say("Notified to {who}", who=who), time_text(notice.at))
        yield TextLine(say("Reference: {reference}", reference=notice.reference), indent=2)
    yield Rule()
    yield TextLine(
        say(
            "I, the undersigned, declare that for the time stated above this machine did not let the shop certify its invoices. The sales made "
            "meanwhile are regularised by certified electronic invoices within 48 hours (article 6 g)."
        )
    )
    yield TextLine()
    yield Pair(say("Place:"), LINE)
    yield Pair(say("Date:"), LINE)
    yield Pair(say("Name and capacity:"), LINE)
    yield TextLine(say("Signature and stamp:"))
    for _ in range(4):
        yield TextLine()
    yield TextLine(say("Printed on {moment}", moment=time_text(at)))
    yield from paper_shop.mark_of_test(shop, style, is_test=False)


def _sales(outage: Outage, style: Style) -> Iterator[Element]:
    say, language = style.say, style.language
    if not outage.sales:
        yield TextLine(say("No sale made meanwhile waits for its invoice on this box."))
        return
    count = Counted("{count} sale made meanwhile", "{count} sales made meanwhile", outage.sales)
    yield Pair(say(count), f"{amount(outage.sales_total, language)} XOF", bold=True)
