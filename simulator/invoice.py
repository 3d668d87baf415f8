"""The invoice on the machine between C0h and 38h."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.refusal import Refusal, not_now
from simulator.taxes import Share, check_line, split
from simulator.wire import GROUPS, Comment, Customer, Line, Opening, Payment, format_hundredths

_NOTHING = Share(0, 0, 0)


class OpenInvoice:
    """Group sums are kept in the basis of the price mode; VAT is taken from them once, at the subtotal."""

    __slots__ = ("_sums", "comments", "customer", "lines", "opening", "paid", "payments", "rates", "total")

    def __init__(self, opening: Opening, customer: Customer, rates: Mapping[str, int]) -> None:
        self.opening = opening
        self.customer = customer
        self.rates = rates
        self.lines: list[Line] = []
        self.comments: list[Comment] = []
        self.payments: list[Payment] = []
        self.total = 0  # whole francs, known from the subtotal on
        self.paid = 0  # hundredths
        self._sums: dict[str, int] = {}

    def add_line(self, line: Line) -> str:
        mode, rate = self.opening.price_mode, self.rates[line.group]
        check_line(line, rate, mode)
        self.lines.append(line)
        self._sums[line.group] = self._sums.get(line.group, 0) + line.amount
        share = split(line.amount, rate, mode)
        return f"{share.ttc},{share.ht},{share.tva},{format_hundredths(line.tax)}"

    def add_comment(self, comment: Comment) -> None:
        if any(known.label == comment.label for known in self.comments):
            raise Refusal(f"Comment {comment.label} already there")
        self.comments.append(comment)

    def shares(self) -> dict[str, Share]:
        return {
            group: split(amount, self.rates[group], self.opening.price_mode) for group, amount in self._sums.items()
        }

    def subtotal(self) -> str:
        """34 fields; a group that does not occur is `0`."""
        shares = self.shares()
        self.total = sum(share.ttc for share in shares.values())
        by_group = [shares.get(group, _NOTHING) for group in GROUPS]
        fields = [self.total, *(share.ttc for share in by_group), *(share.tva for share in by_group)]
        return ",".join(map(str, fields)) + "," + format_hundredths(sum(line.tax for line in self.lines))

    @property
    def due(self) -> int:
        """Hundredths of a franc; negative is change."""
        return self.total * 100 - self.paid

    def pay(self, payment: Payment) -> str:
        if payment.amount <= 0:
            raise Refusal("Payment not above 0")
        self.payments.append(payment)
        self.paid += payment.amount
        return f"D{format_hundredths(self.due)}" if self.due > 0 else f"R{format_hundredths(-self.due)}"

    def check_close(self, total: int) -> None:
        """`total` in hundredths."""
        if self.due > 0:
            raise not_now(f"Still due: {format_hundredths(self.due)}")
        if total != self.total * 100:
            raise Refusal("Wrong total")
        if self.total <= 0:
            raise Refusal("Total not above 0")
