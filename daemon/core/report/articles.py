"""Sales by article: lines with the same name, code, category and tax group, at one price in one mode.

Amounts are whole XOF with VAT as certified; those of an invoice add up to its tax groups. Prices and quantities are the
till's. A credit note subtracts both; one for a rebate (RRR) subtracts money only."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from common.language import Text
from daemon.core.clock import millis_text
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.invoice import Invoice, Item
from daemon.core.invoice.taxes import percent
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.core.money import divide_half_up
from daemon.core.report.journal import PRICE_DECIMALS, QUANTITY_DECIMALS, Exact, exact
from daemon.core.report.report_parts import Letterhead

MAX_ARTICLES = 20_000
"""Greatest number of articles in one report, some ten megabytes of memory; a supermarket has fewer in a month."""


class ArticleTotal(msgspec.Struct, frozen=True):
    """`amount` is net: sold minus returned."""

    name: Annotated[str, Meta(description="Label on the ticket")]
    code: Annotated[str, Meta(description="The shop's code; empty without one")]
    group: Annotated[str, Meta(description="Tax group")]
    quantity_sold: Annotated[Exact, Meta(description="At most 3 decimals")]
    quantity_returned: Annotated[Exact, Meta(description="By credit notes, without those for a rebate (RRR)")]
    amount_sold: Annotated[int, Meta(description="XOF, with VAT, as certified")]
    amount_returned: Annotated[int, Meta(description="XOF, with VAT; positive")]
    amount: Annotated[int, Meta(description="XOF, net: sold minus returned")]
    category: Annotated[str, Meta(description="As sent; empty without one")] = ""
    unit_price: Annotated[Exact, Meta(description="The till's own, in `price_mode`")] = Exact(0)
    price_mode: Annotated[str, Meta(description="TTC or HT")] = "TTC"
    rate: Annotated[int | float, Meta(description="VAT in percent")] = 0


class ArticlesReport(msgspec.Struct, frozen=True, kw_only=True):
    nim: Annotated[str, Meta(description="The NIM of the path")]
    from_: Annotated[str, Meta(description="Start of the range, included")] = msgspec.field(name="from")
    to: Annotated[str, Meta(description="End of the range, excluded")]
    certs_count: Annotated[int, Meta(description="Certifications, credit notes included")]
    articles: Annotated[
        tuple[ArticleTotal, ...], Meta(description="Sorted by category, name, code, group, mode and price")
    ]
    kind: Annotated[Literal["A"], Meta(description="A: the report of articles of the law")] = "A"
    name: Annotated[str, Meta(description="Trade name")] = ""
    ifu: Annotated[str, Meta(description="IFU of the taxpayer")] = ""
    isfs: Annotated[tuple[str, ...], Meta(description="The ISFs under which it was certified")] = ()
    created_at: Annotated[str, Meta(description="When it was made")] = ""
    total_ttc: Annotated[int, Meta(description="XOF, net: what X and A say of the same certifications")] = 0
    number: Annotated[int | None, Meta(description="Of a closed one, from 1; null for a look")] = None
    letterhead: Annotated[
        str, Meta(description="Which letterhead stands on its paper, for ever; empty where it is the present one")
    ] = ""


class _Key(NamedTuple):
    """In the order in which they stand."""

    category: str
    name: str
    code: str
    group: str
    mode: str
    price: int
    rate: int


class _Sums(msgspec.Struct):
    sold: int = 0
    """thousandths, as `returned`"""
    returned: int = 0
    amount_sold: int = 0
    amount_returned: int = 0


class Articles:
    """Sums of certifications by article; InvalidRequest beyond `MAX_ARTICLES` articles."""

    def __init__(self) -> None:
        self.certs_count = 0
        self.first_at = 0
        """Of the first certification in it, in ms."""
        self.upto_seq = 0
        """How far the book was read."""
        self._isfs: set[str] = set()
        self._sums: dict[_Key, _Sums] = {}

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.state == "certified" and record.invoice.items:  # as X and A count them
                self.certs_count += 1
                self.first_at = self.first_at or record.ended_at
                self._isfs.add(record.invoice.isf)
                for item, amount in certified_amounts(record.invoice):
                    self._add(record.invoice, item, amount)

    def _add(self, invoice: Invoice, item: Item, amount: int) -> None:
        key = _Key(item.category, item.name, item.code, item.group, invoice.price_mode, item.printed_price, item.rate)
        sums = self._sums.setdefault(key, _Sums())
        if len(self._sums) > MAX_ARTICLES:
            raise InvalidRequest.at(
                "from", Text("more than {most} different articles were sold since then", most=MAX_ARTICLES)
            )
        if not invoice.is_credit:
            sums.sold += item.printed_quantity
            sums.amount_sold += amount
            return
        sums.amount_returned += amount
        if not invoice.is_rebate:
            sums.returned += item.printed_quantity

    def report(
        self, book: Book, start: int, end: int, *, at: int, ifu: str = "", letterhead: Letterhead | None = None
    ) -> ArticlesReport:
        """Sorted; `start <= t < end` (ms) is what was added, `at` when."""
        articles = tuple(_total(key, sums) for key, sums in sorted(self._sums.items(), key=lambda entry: entry[0]))
        return ArticlesReport(
            nim=book.nim,
            from_=millis_text(start),
            to=millis_text(end),
            certs_count=self.certs_count,
            articles=articles,
            name=letterhead.trade_name if letterhead else "",
            ifu=ifu,
            isfs=tuple(sorted(self._isfs - {""})),
            created_at=millis_text(at),
            total_ttc=sum(article.amount for article in articles),
        )


def certified_amounts(invoice: Invoice) -> Iterator[tuple[Item, int]]:
    """Each line with its share of the tax group's certified total: its amount in TTC mode, in proportion in HT mode."""
    totals = Counter({line.group: line.ttc for line in invoice.taxes})
    sums, done = Counter[str](), Counter[str]()
    for item in invoice.items:
        sums[item.group] += item.line_hundredths
    for item in invoice.items:
        before = done[item.group]
        done[item.group] += item.line_hundredths
        total, after, whole = totals[item.group], done[item.group], sums[item.group]
        yield item, divide_half_up(total * after, whole) - divide_half_up(total * before, whole)


def _total(key: _Key, sums: _Sums) -> ArticleTotal:
    return ArticleTotal(
        name=key.name,
        code=key.code,
        group=key.group,
        quantity_sold=exact(sums.sold, QUANTITY_DECIMALS),
        quantity_returned=exact(sums.returned, QUANTITY_DECIMALS),
        amount_sold=sums.amount_sold,
        amount_returned=sums.amount_returned,
        amount=sums.amount_sold - sums.amount_returned,
        category=key.category,
        unit_price=exact(key.price, PRICE_DECIMALS),
        price_mode=key.mode,
        rate=percent(key.rate),
    )
