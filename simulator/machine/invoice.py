"""The invoice on the machine between C0h and 38h."""

from __future__ import annotations

from simulator.machine.answer_format import AnswerFormat
from simulator.machine.command_data import (
    GROUPS,
    CommentData,
    CustomerData,
    ItemData,
    Opening,
    PaymentData,
    format_hundredths,
)
from simulator.machine.options import SimulatorOptions
from simulator.machine.refusal import MachineRefusal, not_now
from simulator.machine.taxes import Share, add_up, check_line, split

_NOTHING = Share(0, 0, 0)


class InvoiceUnderway:
    """VAT is taken once, at the subtotal."""

    __slots__ = ("_format", "_options", "comments", "customer", "lines", "opening", "paid", "payments", "total")

    def __init__(self, opening: Opening, customer: CustomerData, options: SimulatorOptions) -> None:
        self.opening = opening
        self.customer = customer
        self.lines: list[ItemData] = []
        self.comments: list[CommentData] = []
        self.payments: list[PaymentData] = []
        self.total = 0  # whole francs, known from the subtotal on
        self.paid = 0  # hundredths
        self._options = options
        self._format = AnswerFormat(options)

    def add_line(self, line: ItemData) -> str:
        if line.cents and not (self._options.line_decimals and self.opening.price_mode == "HT"):
            raise MachineRefusal("Amount must be whole")
        check_line(line, self._options.rates[line.group], self.opening.price_mode)
        self.lines.append(line)
        share = self._share([line])
        amounts = (share.ttc, share.ht, share.tva, line.tax)
        return self._format.fields(self._format.amount(amount) for amount in amounts)

    def add_comment(self, comment: CommentData) -> None:
        if any(known.label == comment.label for known in self.comments):
            raise MachineRefusal(f"Comment {comment.label} already there")
        self.comments.append(comment)

    def shares(self) -> dict[str, Share]:
        """Of the groups that occur."""
        by_group: dict[str, list[ItemData]] = {}
        for line in self.lines:
            by_group.setdefault(line.group, []).append(line)
        return {
            group: add_up(self._share([line]) for line in lines)
            if self._options.vat_per_line
            else add_up([self._share(lines)])
            for group, lines in by_group.items()
        }

    def _share(self, lines: list[ItemData]) -> Share:
        """Of lines of one group, taken together."""
        options, mode = self._options, self.opening.price_mode
        amount, tax = sum(line.hundredths for line in lines), sum(line.tax for line in lines)
        untaxed = tax if options.untaxed_specific and mode == "HT" else 0
        return split(amount, options.rates[lines[0].group], mode, options.vat, untaxed)

    def subtotal(self) -> str:
        """34 fields; a group that does not occur is `0`."""
        shares = self.shares()
        self.total = sum(share.ttc for share in shares.values()) // 100
        by_group = [shares.get(group, _NOTHING) for group in GROUPS]
        totals = [share.ht if self._options.groups_without_vat else share.ttc for share in by_group]
        specific = 0 if self._options.untold_specific else sum(line.tax for line in self.lines)
        amounts = (self.total * 100, *totals, *(share.tva for share in by_group), specific)
        return self._format.fields(self._format.amount(amount) for amount in amounts)

    @property
    def due(self) -> int:
        """Hundredths of a franc; negative is change."""
        return self.total * 100 - self.paid

    def pay(self, payment: PaymentData) -> str:
        if payment.amount <= 0:
            raise MachineRefusal("Payment not above 0")
        self.payments.append(payment)
        self.paid += payment.amount
        return f"{'D' if self.due > 0 else 'R'}{self._format.amount(abs(self.due))}"

    def check_close(self, total: int) -> None:
        """`total` in hundredths."""
        if self.due > 0:
            raise not_now(f"Still due: {format_hundredths(self.due)}")
        if total != self.total * 100:
            raise MachineRefusal("Wrong total")
        if self.total <= 0:
            raise MachineRefusal("Total not above 0")
