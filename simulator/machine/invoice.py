"""The invoice on the machine between C0h and 38h; its VAT, exact and rounded half up on a group's total unless the
machine has other habits (fiscal-rules.md); and this machine's notation of numbers, times and texts."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from simulator.machine.command_data import (
    GROUPS,
    CommentData,
    CustomerData,
    ItemData,
    MachineRefusal,
    Opening,
    PaymentData,
    escape,
    format_hundredths,
    format_rate,
    not_now,
)
from simulator.machine.options import FirmwareHabits, SimulatorOptions, Vat

_DASH_EVERY = 4
_PAD = "  "
_OWN_WORDS: Mapping[str, str] = {
    "FV": "VENTE",
    "FT": "ACOMPTE",
    "EV": "EXPORT",
    "ET": "EXPORT ACOMPTE",
    "FA": "AVOIR",
    "EA": "AVOIR EXPORT",
}
_PERCENT = 10_000  # a rate of 100 %
_FRANC = 100
_EXACT = 10**9  # price/100 × quantity/1000 × (1 + rate/10 000) is whole in these units


class AnswerFormat:
    def __init__(self, habits: FirmwareHabits) -> None:
        self._habits = habits

    def amount(self, hundredths: int) -> str:
        """Zero is `0` in every style except `empty`: 33h would not fit into a frame otherwise."""
        style = self._habits.numbers
        if not hundredths:
            return "" if style == "empty" else "0"
        whole = f"{hundredths // 100}"
        if style == "decimals":
            return f"{whole}.{hundredths % 100:02d}"
        if style == "comma":
            return f"{whole},{hundredths % 100:02d}"
        text = format_hundredths(hundredths)
        if style == "spaces":
            return f"{hundredths // 100:,}".replace(",", " ") + text[len(whole) :]
        return f"00{text}" if style == "zeros" else text

    def francs(self, amount: int) -> str:
        return self.amount(amount * 100)

    def rate(self, rate: int) -> str:
        if self._habits.numbers == "comma":
            return format_rate(rate).replace(".", ",")
        if self._habits.numbers == "empty":
            return format_hundredths(rate) if rate else ""
        return format_rate(rate)

    def text(self, text: str) -> str:
        style = self._habits.texts
        if style == "capitals":
            text = text.upper()
        return escape(text) + (_PAD if style == "padded" else "")

    def time(self, digits: str) -> str:
        """From 14 digits; empty stays empty."""
        if self._habits.times == "digits" or not digits:
            return digits
        return f"{datetime.strptime(digits, '%Y%m%d%H%M%S'):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ007  only reformatted

    def type(self, invoice_type: str) -> str:
        return _OWN_WORDS[invoice_type] if self._habits.odd_types else invoice_type

    def code(self, code: str) -> str:
        if not self._habits.dashed_codes:
            return code
        return "-".join(code[i : i + _DASH_EVERY] for i in range(0, len(code), _DASH_EVERY))

    def last_code(self, code: str) -> str:
        """The code in C1h."""
        return "" if self._habits.no_codes else self.code(code)

    def fields(self, fields: Iterable[str]) -> str:
        """Fields of a reply whose last one may be omitted."""
        values = list(fields)
        if self._habits.fields == "fewer":
            values.pop()
        elif self._habits.fields == "more":
            values += ["0", "NEUF"]
        return ",".join(values)


class Share(msgspec.Struct, frozen=True):
    """An amount in hundredths of a franc, split: `ht + tva = ttc`, except for cents rounded away from `ttc`."""

    ht: int
    tva: int
    ttc: int


def round_half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def split(whole: int, rate: int, price_mode: str, rounding: Vat = "half-up", untaxed: int = 0) -> Share:
    """`whole`, in hundredths, includes VAT in TTC mode and excludes it in HT mode; `untaxed` is its part without VAT.
    If it has cents, as some machines accept, total and net are rounded to whole francs, and VAT is their difference."""
    if whole % _FRANC:
        total, before = _whole(round_half_up(whole * (_PERCENT + rate), _PERCENT)), _whole(whole)
        return Share(before, total - before, total)
    weight = _PERCENT + rate if price_mode == "TTC" else _PERCENT
    if price_mode == "TTC" and rounding == "half-up":
        ht = round_half_up(whole * _PERCENT, weight * _FRANC) * _FRANC
        return Share(ht, whole - ht, whole)
    tva = _rounded((whole - untaxed) * rate, weight, rounding)
    return Share(whole - tva, tva, whole) if price_mode == "TTC" else Share(whole, tva, _whole(whole + tva))


def _rounded(numerator: int, denominator: int, rounding: Vat) -> int:
    """Hundredths of a franc, with cents only in the style `cents`."""
    if rounding == "cents":
        return round_half_up(numerator, denominator)
    denominator *= _FRANC
    if rounding == "half-up":
        return round_half_up(numerator, denominator) * _FRANC
    return (numerator // denominator if rounding == "down" else -(-numerator // denominator)) * _FRANC


def _whole(hundredths: int) -> int:
    return round_half_up(hundredths, _FRANC) * _FRANC


def add_up(shares: Iterable[Share]) -> Share:
    """Sum of one group; its total is in whole francs."""
    parts = list(shares)
    return Share(sum(s.ht for s in parts), sum(s.tva for s in parts), _whole(sum(s.ttc for s in parts)))


def check_line(line: ItemData, rate: int, price_mode: str) -> None:
    """Checks of a line before it is accepted (protocol 3, 31h; protocol 4)."""
    if line.rate != rate:
        raise MachineRefusal("Wrong tax rate")
    if line.hundredths <= 0 or line.price <= 0 or line.quantity <= 0:
        raise MachineRefusal("Amount not above 0")
    if line.unit_tax is not None and (line.tax <= 0 or line.unit_tax * line.quantity != line.tax * 1000):
        raise MachineRefusal("No amount!")
    weight = _PERCENT + rate if price_mode == "TTC" else _PERCENT
    expected = line.price * line.quantity * _PERCENT + line.tax * 1000 * weight
    if abs(line.hundredths * _EXACT // _FRANC - expected) > _EXACT:
        raise MachineRefusal("No amount!" if line.unit_tax is not None else "Wrong amount")


_NOTHING = Share(0, 0, 0)


class InvoiceUnderway:
    """VAT is computed once, at the subtotal."""

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
        if any(other.label == comment.label for other in self.comments):
            raise MachineRefusal(f"Comment {comment.label} already there")
        self.comments.append(comment)

    def shares(self) -> dict[str, Share]:
        """Shares of the groups that occur."""
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
        """Share of lines of one group, taken together."""
        options, mode = self._options, self.opening.price_mode
        amount, tax = sum(line.hundredths for line in lines), sum(line.tax for line in lines)
        untaxed = tax if options.untaxed_specific and mode == "HT" else 0
        return split(amount, options.rates[lines[0].group], mode, options.vat, untaxed)

    def subtotal(self) -> str:
        """34 fields; `0` for a group that does not occur."""
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
