"""Documents of reports X, Z and A and of month and year closures (SFE 2.0, section 4), of the report of articles,
which the law calls A (section 5), and of an outage: the declaration to the administration and the distributor, ready
to be signed (arrêté 2025-0049, article 7 c)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec
from msgspec import UnsetType

from common.language import Counted, Text
from common.numbers import amount, money, percentage, scaled
from common.wire.closure import WaitingSales
from daemon.core.clock import HOUR, millis_text
from daemon.core.ledger.entries import OutageReason, Recipient
from daemon.core.ledger.outage import Outage
from daemon.core.report.articles import ArticlesReport, ArticleTotal
from daemon.core.report.calendar_report import CalendarReport
from daemon.core.report.fiscal_reports import AReport, Period, Totals, XReport, ZReport
from daemon.paper import shop as paper_shop
from daemon.paper.invoice import DUPLICATE, NATURES, STAMP_DUTY, TITLES
from daemon.paper.layout import Document, Element, Pair, Rule, Table, TextLine, Title, last_moment, moment
from daemon.paper.shop import Shop, Style

Report = XReport | ZReport | AReport | CalendarReport
WHOLE_PERCENT = 100

PERIODIC: Final = Text("PERIODIC X REPORT")
DAILY: Final = Text("DAILY X REPORT")
MONTHLY: Final = Text("MONTHLY CLOSURE No. {number}")
YEARLY: Final = Text("YEARLY CLOSURE No. {number}")
ARTICLES: Final = Text("A REPORT - ARTICLES")

TITLE: Final = Text("DECLARATION OF AN OUTAGE")
REASONS: Final[Mapping[OutageReason, Text]] = {
    "line_lost": Text("the line to the machine was lost"),
    "no_answer": Text("the machine did not answer"),
    "blocked": Text("the machine refused every invoice, as when the tax server has not heard of it for too long"),
    "deactivated": Text("the machine was not activated"),
    "attention": Text("the machine and the records did not agree; a person had to decide"),
    "disk": Text("the box could not store any more"),
    "box_off": Text("the box was switched off"),
}
RECIPIENTS: Final[Mapping[Recipient, Text]] = {
    "administration": Text("the tax administration"),
    "distributor": Text("the distributor"),
}
MINUTE: Final = 60_000
LINE: Final = "." * 24


def report_document(report: Report, shop: Shop, style: Style, *, printed_at: str, periodic: bool = False) -> Document:
    """`printed_at` (RFC 3339) is shown beside the period; a closure shows its own time instead."""
    title = _title(report, style, periodic=periodic)
    is_range = periodic or isinstance(report, AReport | CalendarReport)
    return Document(title, style.language, tuple(_report(report, shop, style, title, printed_at, is_range=is_range)))


def _title(report: Report, style: Style, *, periodic: bool) -> str:
    match report:
        case ZReport():
            return style.law(Text("Z REPORT No. {number}", number=report.z_number))
        case AReport():
            return style.law(Text("A REPORT - TOTALS OF A PERIOD"))
        case CalendarReport():
            return style.law((MONTHLY if report.kind == "month" else YEARLY)(number=report.number))
        case _:
            return style.law(PERIODIC if periodic else DAILY)


def _report(
    report: Report, shop: Shop, style: Style, title: str, printed_at: str, *, is_range: bool
) -> Iterator[Element]:
    yield from _head(report.nim, shop, style, title, report.isfs or ([shop.isf] if shop.isf else []))
    start, end = (report.from_, report.to) if isinstance(report, AReport) else (report.period_start, report.period_end)
    at = report.created_at if isinstance(report, ZReport | CalendarReport) else printed_at
    yield from _times(start, last_moment(end) if is_range else end, at, shop, style)
    if report.stands_for is not msgspec.UNSET:
        yield Pair(style.say("In the place of"), report.stands_for)
    if isinstance(report, Period):
        yield Pair("FVC", f"{report.fvc_start} - {report.fvc_end}")
    for kind in report.by_type:
        yield from _type(report, kind.invoice_type, kind.count, style)
    yield Rule()
    yield from _sums(report, shop, style)
    yield from _payments(report, style)
    yield from _cash(report, style)
    if isinstance(report, ZReport):
        yield from _closure(report, style)
    if isinstance(report, CalendarReport):
        yield from _calendar(report, style)
    if isinstance(report, AReport):
        yield from _closures(report, shop, style)
    yield from paper_shop.mark_of_test(shop, style, is_test=False)


def _head(nim: str, shop: Shop, style: Style, title: str, isfs: Sequence[str]) -> Iterator[Element]:
    """`nim` is the machine's number when the report was made."""
    yield from paper_shop.head(shop, style)
    if style.is_duplicate:
        yield Title(style.law(DUPLICATE))
    yield from paper_shop.mark_of_test(shop, style, is_test=False)
    yield Title(title)
    yield from paper_shop.machine(nim, isfs)


def _times(start: str, end: str, at: str, shop: Shop, style: Style) -> Iterator[Element]:
    for name, text in ((style.say("From"), start), (style.say("To"), end), (style.say("Date"), at)):
        yield Pair(name, moment(text, shop.zone, style.language))


def _type(report: Totals, kind: str, count: int, style: Style) -> Iterator[Element]:
    """One invoice type by tax group, with totals; positive for credit notes too."""
    say = style.say
    groups = [entry for entry in report.by_type_and_group if entry.invoice_type == kind]
    rows = [(entry.group, entry.ht, entry.tva, entry.ttc) for entry in groups]
    rows.append(("Total", sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows)))
    yield Rule()
    yield Pair(f"{kind} {style.law(TITLES[kind])}", say("{count} doc.", count=count), bold=True)
    yield Table(
        (say("Group"), say("Excl. tax"), say("VAT"), say("Incl. tax")),
        tuple((name, *(amount(value) for value in values)) for name, *values in rows),
    )


def _sums(report: Totals, shop: Shop, style: Style) -> Iterator[Element]:
    """Net totals (sales minus credit notes), then the reductions."""
    say, language = style.say, style.language
    yield Pair(say("Documents"), str(report.certs_count))
    yield Pair(say("Total excl. tax"), amount(report.total_ht))
    yield Pair(say("Total VAT"), amount(report.total_tva))
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(report.total_ttc), bold=True)
    credit = report.credit_notes
    yield Pair(say("Credit notes ({count})", count=credit.count), amount(-credit.total))
    for entry in report.by_nature:
        label = style.beside(shop.natures.get(entry.nature, entry.label), NATURES[entry.nature])
        yield Pair(f"{entry.nature} {label} ({entry.count})", amount(-entry.total), indent=2)
    if report.specific_tax:
        yield Pair(say("of which specific tax"), amount(report.specific_tax))
    for psvb in report.psvb:
        rate = percentage(round(psvb.rate * WHOLE_PERCENT), language)
        name = say("PSVB {group} ({rate} of {base})", group=psvb.group, rate=rate, base=amount(psvb.base))
        yield Pair(name, amount(psvb.amount))
    if report.reductions:
        yield Pair(say("Price reductions"), amount(-report.reductions))
    yield Pair(say("Incomplete sales"), str(report.incomplete))
    if isinstance(report, Period) and isinstance(report.waiting, WaitingSales) and report.waiting.count:
        yield Pair(
            say("Waiting for certification ({count})", count=report.waiting.count),
            amount(report.waiting.total),
        )
    if report.test is not msgspec.UNSET:
        yield Pair(say("of which in test mode, without fiscal value"), str(report.test), bold=True)


def _payments(report: Totals, style: Style) -> Iterator[Element]:
    yield Rule()
    yield TextLine(style.say("Payments"), bold=True)
    for entry in report.by_payment:
        yield Pair(entry.label, amount(entry.amount))
    if report.stamp_duty:
        yield Pair(style.law(STAMP_DUTY), amount(report.stamp_duty))


def _cash(report: Totals, style: Style) -> Iterator[Element]:
    """Cash movements beside sales, and the expected cash."""
    say, cash = style.say, report.cash
    if isinstance(cash, UnsetType):
        return
    yield Rule()
    if cash.deposits or cash.withdrawals:
        yield Pair(say("Cash put in"), amount(cash.deposits))
        yield Pair(say("Cash taken out"), amount(-cash.withdrawals))
    if isinstance(report, AReport | CalendarReport):  # several days, or part of one: not the content of a drawer
        yield Pair(say("Cash of the range"), amount(cash.expected))
    else:
        yield Pair(say("Expected in the drawer"), amount(cash.expected), bold=True)
    if isinstance(report, ZReport) and not isinstance(report.cash_count, UnsetType):
        yield Pair(say("Counted in the drawer"), amount(report.cash_count.counted), bold=True)
        yield Pair(say("Difference"), amount(report.cash_count.difference), bold=True)


def _closure(report: ZReport, style: Style) -> Iterator[Element]:
    say, counters = style.say, report.mcf_counters
    yield Rule()
    yield Pair(say("Counters"), f"TC {counters.tc} FVC {counters.fvc} FRC {counters.frc}")
    if report.without_machine is True:
        yield TextLine(say("Closed without the machine, by the counters known last"))
    if report.unexplained:
        yield Pair(say("Invoices of another program"), str(report.unexplained))
    yield TextLine(report.report_id)


def _calendar(report: CalendarReport, style: Style) -> Iterator[Element]:
    say, grand = style.say, report.grand_total
    yield Rule()
    if report.supplements is not msgspec.UNSET:
        yield TextLine(
            say("Supplement to closure No. {number}, made too early by a fast clock", number=report.supplements)
        )
    numbers = f"{report.first_z} - {report.last_z}" if report.z_count else "-"
    yield Pair(say("Z reports ({count})", count=report.z_count), numbers)
    yield TextLine(say("Grand total since the beginning"), bold=True)
    yield Pair(say("Documents"), str(grand.certs_count))
    for name, value in ((say("Total excl. tax"), grand.total_ht), (say("Total VAT"), grand.total_tva)):
        yield Pair(name, amount(value))
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(grand.total_ttc), bold=True)
    yield TextLine(report.report_id)


def _closures(report: AReport, shop: Shop, style: Style) -> Iterator[Element]:
    if not report.closures:
        return
    say = style.say
    yield Rule()
    yield Table(
        (say("Z of"), "Z", say("Documents"), say("Incl. tax")),
        tuple(
            (
                moment(entry.period_end, shop.zone, style.language)[:10],
                str(entry.z_number),
                str(entry.certs_count),
                amount(entry.total_ttc),
            )
            for entry in report.closures
        ),
    )


def articles_document(report: ArticlesReport, shop: Shop, style: Style, *, printed_at: str) -> Document:
    """`printed_at` is an RFC 3339 timestamp."""
    title = style.law(ARTICLES)
    if report.number:
        title = f"{title} {style.say('No. {number}', number=report.number)}"
    return Document(title, style.language, tuple(_articles(report, shop, style, title, printed_at)))


def _articles(report: ArticlesReport, shop: Shop, style: Style, title: str, printed_at: str) -> Iterator[Element]:
    say = style.say
    yield from _head(report.nim, shop, style, title, report.isfs or ([shop.isf] if shop.isf else []))
    end = report.to if report.number else last_moment(report.to)
    yield from _times(report.from_, end, report.created_at if report.number else printed_at, shop, style)
    yield Pair(say("Documents"), str(report.certs_count))
    yield Rule()
    for category, articles in groupby(report.articles, key=lambda article: article.category):
        if category:
            yield TextLine(category, bold=True)
        subtotal = 0
        for article in articles:
            yield from _article(article, style)
            subtotal += article.amount
        if category:
            yield Pair(say("Total of {category}", category=category), amount(subtotal), bold=True)
    yield Rule()
    total = sum(article.amount for article in report.articles)
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(total), bold=True)
    yield from paper_shop.mark_of_test(shop, style, is_test=False)


def _article(article: ArticleTotal, style: Style) -> Iterator[Element]:
    say, language = style.say, style.language
    yield TextLine(article.name)
    if article.code:
        yield TextLine(say("Code {code}", code=article.code), indent=2)
    rate = percentage(round(article.rate * WHOLE_PERCENT), language)
    price = f"x {scaled(int(article.unit_price.scaleb(2)), 2, language)} {article.price_mode}"
    sold, returned = (int(value.scaleb(3)) for value in (article.quantity_sold, article.quantity_returned))
    yield Pair(f"{say('Group')} {article.group} {rate}", price, indent=2)
    if article.amount_sold:
        name = say("Sold {quantity}", quantity=scaled(sold, 3, language))
        yield Pair(name, amount(article.amount_sold), indent=2)
    if article.amount_returned:
        name = say("Returned {quantity}", quantity=scaled(returned, 3, language))
        yield Pair(name, amount(-article.amount_returned), indent=2)


def outage_document(outage: Outage, shop: Shop, style: Style, *, at: int) -> Document:
    """`at` (ms) is the time of printing: a lasting outage is declared with its duration until then."""
    title = style.say("Outage No. {number}", number=outage.number)
    return Document(title, style.language, tuple(_elements(outage, shop, style, at)))


def duration_text(milliseconds: int, style: Style) -> str:
    """For example `3 h 05 min`."""
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
    say = style.say
    if not outage.sales:
        yield TextLine(say("No sale made meanwhile waits for its invoice on this box."))
        return
    count = Counted("{count} sale made meanwhile", "{count} sales made meanwhile", outage.sales)
    yield Pair(say(count), money(outage.sales_total), bold=True)
