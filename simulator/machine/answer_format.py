"""How this machine writes what it answers: numbers, times and texts by its habits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from simulator.machine.command_data import escape, format_hundredths, format_rate
from simulator.machine.habits import FirmwareHabits

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


class AnswerFormat:
    def __init__(self, habits: FirmwareHabits) -> None:
        self._habits = habits

    def amount(self, hundredths: int) -> str:
        """Zero is `0` in every style that does not leave it empty: 33h would not fit a frame otherwise."""
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
        """Of 14 digits; empty stays empty."""
        if self._habits.times == "digits" or not digits:
            return digits
        return f"{datetime.strptime(digits, '%Y%m%d%H%M%S'):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ007  # only written otherwise

    def type(self, invoice_type: str) -> str:
        return _OWN_WORDS[invoice_type] if self._habits.odd_types else invoice_type

    def code(self, code: str) -> str:
        if not self._habits.dashed_codes:
            return code
        return "-".join(code[i : i + _DASH_EVERY] for i in range(0, len(code), _DASH_EVERY))

    def last_code(self, code: str) -> str:
        """Of C1h."""
        return "" if self._habits.no_codes else self.code(code)

    def fields(self, fields: Iterable[str]) -> str:
        """Of a reply whose last field may be left out."""
        known = list(fields)
        if self._habits.fields == "fewer":
            known.pop()
        elif self._habits.fields == "more":
            known += ["0", "NEUF"]
        return ",".join(known)
