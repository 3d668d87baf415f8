"""What was sold, by article: an article is what has the same name, code and tax group.

Amounts are whole XOF with VAT, as the till asked them to be certified. A credit note gives back; one for a rebate (RRR) gives
back money and no goods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from common.language import Text
from daemon.core.clock import millis_text
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.invoice.invoice import Invoice, Item
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.core.report.journal import QUANTITY_DECIMALS, Exact, exact


class ArticleTotal(msgspec.Struct, frozen=True):
    """`amount` is net: sold minus returned."""

    name: Annotated[str, Meta(description="Label on the ticket")]
    code: Annotated[str, Meta(description="The shop's code; empty without one")]
    group: Annotated[str, Meta(description="Tax group")]
    quantity_sold: Annotated[Exact, Meta(description="At most 3 decimals")]
    quantity_returned: Annotated[Exact, Meta(description="By credit notes, without those for a rebate (RRR)")]
    amount_sold: Annotated[int, Meta(description="XOF, with VAT, as the till gave the lines")]
    amount_returned: Annotated[int, Meta(description="XOF, with VAT; positive")]
    amount: Annotated[int, Meta(description="XOF, net: sold minus returned")]


class ArticlesReport(msgspec.Struct, frozen=True, kw_only=True):
    nim: Annotated[str, Meta(description="The NIM of the path")]
    from_: Annotated[str, Meta(description="Start of the range, included")] = msgspec.field(name="from")
    to: Annotated[str, Meta(description="End of the range, excluded")]
    certs_count: Annotated[int, Meta(description="Certifications, credit notes included")]
    articles: Annotated[tuple[ArticleTotal, ...], Meta(description="Sorted by name, code and group")]


class _Sums(msgspec.Struct):
    sold: int = 0
    """thousandths, as `returned`"""
    returned: int = 0
    amount_sold: int = 0
    amount_returned: int = 0


MOST = 20_000
"""Different articles in one report: some ten megabytes while it is made. A supermarket has fewer in a month, a sandbox makes as many as it likes."""


class Articles:
    """Adds up one certification after the other; holds one entry for each article, `MOST` at the most, and raises InvalidRequest beyond."""

    def __init__(self) -> None:
        self.certs_count = 0
        self._sums: dict[tuple[str, str, str], _Sums] = {}

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.state == "certified":
                self.certs_count += 1
                for item in record.invoice.items:
                    self._add(record.invoice, item)

    def _add(self, invoice: Invoice, item: Item) -> None:
        sums = self._sums.setdefault((item.name, item.code, item.group), _Sums())
        if len(self._sums) > MOST:
            raise InvalidRequest(
                [FieldError("from", Text("more than {most} different articles were sold since then", most=MOST))]
            )
        if not invoice.is_credit:
            sums.sold += item.quantity
            sums.amount_sold += item.amount_ttc
            return
        sums.amount_returned += item.amount_ttc
        if not invoice.is_rebate:
            sums.returned += item.quantity

    def report(self, book: Book, start: int, end: int) -> ArticlesReport:
        """Sorted by name, code and group; `start <= t < end` (ms) is what was added."""
        return ArticlesReport(
            nim=book.nim,
            from_=millis_text(start),
            to=millis_text(end),
            certs_count=self.certs_count,
            articles=tuple(_total(key, sums) for key, sums in sorted(self._sums.items(), key=lambda entry: entry[0])),
        )


def _total(key: tuple[str, str, str], sums: _Sums) -> ArticleTotal:
    name, code, group = key
    return ArticleTotal(
        name=name,
        code=code,
        group=group,
        quantity_sold=exact(sums.sold, QUANTITY_DECIMALS),
        quantity_returned=exact(sums.returned, QUANTITY_DECIMALS),
        amount_sold=sums.amount_sold,
        amount_returned=sums.amount_returned,
        amount=sums.amount_sold - sums.amount_returned,
    )
