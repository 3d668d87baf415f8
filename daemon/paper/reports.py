"""X, Z and A on paper (SFE 2.0, section 4), and the report of articles, which the law calls A (section 5)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UnsetType

from common.language import Speaker
from common.numbers import amount, percentage, scaled
from daemon.core.report.articles import ArticlesReport, ArticleTotal
from daemon.core.report.fiscal_reports import AReport, Period, Totals, XReport, ZReport
from daemon.paper import shop as paper_shop
from daemon.paper.elements import Document, Element, Pair, Rule, Table, TextLine, Title
from daemon.paper.figures import moment
from daemon.paper.invoice import TITLES
from daemon.paper.shop import Shop, Style

Report = XReport | ZReport | AReport
WHOLE_PERCENT = 100


def report_document(report: Report, shop: Shop, style: Style, *, printed_at: str, periodic: bool = False) -> Document:
    """`printed_at` (RFC 3339) stands on it beside the period; a Z has the time of its closure instead."""
    title = _title(report, style.say, periodic=periodic)
    return Document(title, style.language, tuple(_report(report, shop, style, title, printed_at)))


def _title(report: Report, say: Speaker, *, periodic: bool) -> str:
    match report:
        case ZReport():
            return say("Z REPORT No. {number}", number=report.z_number)
        case AReport():
            return say("A REPORT - TOTALS OF A PERIOD")
        case _:
            return say("PERIODIC X REPORT") if periodic else say("DAILY X REPORT")


def _report(report: Report, shop: Shop, style: Style, title: str, printed_at: str) -> Iterator[Element]:
    yield from _head(shop, style, title)
    yield from _times(report, shop, style, printed_at)
    for kind in report.by_type:
        yield from _type(report, kind.invoice_type, kind.count, style)
    yield Rule()
    yield from _sums(report, style)
    yield from _payments(report, style)
    yield from _cash(report, style)
    if isinstance(report, ZReport):
        yield from _closure(report, style)
    if isinstance(report, AReport):
        yield from _closures(report, shop, style)
    yield from paper_shop.mark_of_test(shop, style, is_test=False)


def _head(shop: Shop, style: Style, title: str) -> Iterator[Element]:
    yield from paper_shop.head(shop, style)
    if style.is_duplicate:
        yield Title(style.say("DUPLICATE"))
    yield from paper_shop.mark_of_test(shop, style, is_test=False)
    yield Title(title)
    yield from paper_shop.machine(shop, shop.nim)


def _times(report: Report, shop: Shop, style: Style, printed_at: str) -> Iterator[Element]:
    say = style.say
    start, end = (report.period_start, report.period_end) if isinstance(report, Period) else (report.from_, report.to)
    yield Pair(say("From"), moment(start, shop.zone, style.language))
    yield Pair(say("To"), moment(end, shop.zone, style.language))
    at = report.created_at if isinstance(report, ZReport) else printed_at
    yield Pair(say("Date"), moment(at, shop.zone, style.language))
    if isinstance(report, Period):
        yield Pair("FVC", f"{report.fvc_start} - {report.fvc_end}")


def _type(report: Totals, kind: str, count: int, style: Style) -> Iterator[Element]:
    """One invoice type by tax group, with its sums; positive for credit notes too."""
    say, language = style.say, style.language
    groups = [entry for entry in report.by_type_and_group if entry.invoice_type == kind]
    rows = [(entry.group, entry.ht, entry.tva, entry.ttc) for entry in groups]
    rows.append(("Total", sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows)))
    yield Rule()
    yield Pair(f"{kind} {TITLES[kind].told(language)}", say("{count} doc.", count=count), bold=True)
    yield Table(
        (say("Group"), say("Excl. tax"), say("VAT"), say("Incl. tax")),
        tuple((name, *(amount(value, language) for value in values)) for name, *values in rows),
    )


def _sums(report: Totals, style: Style) -> Iterator[Element]:
    """Net: sales minus credit notes; then what reduced them."""
    say, language = style.say, style.language
    yield Pair(say("Documents"), str(report.certs_count))
    yield Pair(say("Total excl. tax"), amount(report.total_ht, language))
    yield Pair(say("Total VAT"), amount(report.total_tva, language))
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(report.total_ttc, language), bold=True)
    credit = report.credit_notes
    yield Pair(say("Credit notes ({count})", count=credit.count), amount(-credit.total, language))
    if report.specific_tax:
        yield Pair(say("of which specific tax"), amount(report.specific_tax, language))
    for entry in report.psvb:
        rate = percentage(round(entry.rate * WHOLE_PERCENT), language)
        name = say("PSVB {group} ({rate} of {base})", group=entry.group, rate=rate, base=amount(entry.base, language))
        yield Pair(name, amount(entry.amount, language))
    if report.reductions:
        yield Pair(say("Price reductions"), amount(-report.reductions, language))
    yield Pair(say("Incomplete sales"), str(report.incomplete))
    if report.test is not msgspec.UNSET:
        yield Pair(say("of which in test mode, without fiscal value"), str(report.test), bold=True)


def _payments(report: Totals, style: Style) -> Iterator[Element]:
    yield Rule()
    yield TextLine(style.say("Payments"), bold=True)
    for entry in report.by_payment:
        yield Pair(entry.label, amount(entry.amount, style.language))


def _cash(report: Totals, style: Style) -> Iterator[Element]:
    """What moved in the drawer beside sales, and what should be in it."""
    say, cash = style.say, report.cash
    if isinstance(cash, UnsetType):
        return
    yield Rule()
    if cash.deposits or cash.withdrawals:
        yield Pair(say("Cash put in"), amount(cash.deposits, style.language))
        yield Pair(say("Cash taken out"), amount(-cash.withdrawals, style.language))
    if report.kind == "A":  # of several days, or a part of one: no drawer has that
        yield Pair(say("Cash of the range"), amount(cash.expected, style.language))
    else:
        yield Pair(say("Expected in the drawer"), amount(cash.expected, style.language), bold=True)


def _closure(report: ZReport, style: Style) -> Iterator[Element]:
    say, counters = style.say, report.mcf_counters
    yield Rule()
    yield Pair(say("Counters"), f"TC {counters.tc} FVC {counters.fvc} FRC {counters.frc}")
    if report.without_machine is True:
        yield TextLine(say("Closed without the machine, by the counters known last"))
    if report.unexplained:
        yield Pair(say("Invoices of another program"), str(report.unexplained))
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
                amount(entry.total_ttc, style.language),
            )
            for entry in report.closures
        ),
    )


def articles_document(
    report: ArticlesReport, rates: dict[str, int], shop: Shop, style: Style, *, printed_at: str
) -> Document:
    """`rates` in hundredths of a percent by tax group, as the machine holds them; `printed_at` in RFC 3339."""
    title = style.say("A REPORT - ARTICLES")
    return Document(title, style.language, tuple(_articles(report, rates, shop, style, printed_at)))


def _articles(
    report: ArticlesReport, rates: dict[str, int], shop: Shop, style: Style, printed_at: str
) -> Iterator[Element]:
    say = style.say
    yield from _head(shop, style, say("A REPORT - ARTICLES"))
    yield Pair(say("From"), moment(report.from_, shop.zone, style.language))
    yield Pair(say("To"), moment(report.to, shop.zone, style.language))
    yield Pair(say("Date"), moment(printed_at, shop.zone, style.language))
    yield Pair(say("Documents"), str(report.certs_count))
    yield Rule()
    for article in report.articles:
        yield from _article(article, rates, style)
    yield Rule()
    total = sum(article.amount for article in report.articles)
    yield Pair(say("TOTAL INCL. TAX (XOF)"), amount(total, style.language), bold=True)
    yield from paper_shop.mark_of_test(shop, style, is_test=False)


def _article(article: ArticleTotal, rates: dict[str, int], style: Style) -> Iterator[Element]:
    say, language = style.say, style.language
    yield TextLine(article.name)
    if article.code:
        yield TextLine(say("Code {code}", code=article.code), indent=2)
    rate = f" {percentage(rates[article.group], language)}" if article.group in rates else ""
    sold, returned = (int(value.scaleb(3)) for value in (article.quantity_sold, article.quantity_returned))
    yield Pair(f"{say('Group')} {article.group}{rate}", _unit_price(article, sold, style), indent=2)
    yield Pair(
        say("Sold {quantity}", quantity=scaled(sold, 3, language)), amount(article.amount_sold, language), indent=2
    )
    if article.amount_returned:
        name = say("Returned {quantity}", quantity=scaled(returned, 3, language))
        yield Pair(name, amount(-article.amount_returned, language), indent=2)


def _unit_price(article: ArticleTotal, sold: int, style: Style) -> str:
    """The mean price with VAT, to the hundredth: an article may have been sold at several prices in the period."""
    if not sold:
        return ""
    hundredths = (2 * article.amount_sold * 100_000 + sold) // (2 * sold)
    return f"x {scaled(hundredths, 2, style.language)} TTC"
