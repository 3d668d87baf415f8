"""The count of the drawer at the end of a day, as a form has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from common.language import Speaker
from common.numbers import parse_integer
from daemon.api.page.visit import without_thousands
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.money import MAX_AMOUNT

NOTES: Final = (10_000, 5000, 2000, 1000, 500)
COINS: Final = (500, 250, 200, 100, 50, 25, 10, 5)
"""Of the CFA franc."""
MAX_DIGITS: Final = 13


def read_count(form: Mapping[str, str], say: Speaker) -> int | None:
    """The cash count: notes and coins, or one total; None if not counted. Raises InvalidRequest."""
    pieces = [
        (value, form.get(f"{kind}{value}", "")) for kind, values in (("n", NOTES), ("c", COINS)) for value in values
    ]
    typed = form.get("counted", "")
    if not typed and not any(text for _, text in pieces):
        return None
    wrong = FieldError("counted", say("must be a whole number of francs, 0 or more"))
    sums = [value * _whole(text, wrong) for value, text in pieces if text]
    total = sum(sums) if sums else _whole(typed, wrong)
    if sums and typed and _whole(typed, wrong) != total:
        raise InvalidRequest.at("counted", say("notes and coins come to another sum"))
    if total > MAX_AMOUNT:
        raise InvalidRequest([wrong])
    return total


def _whole(text: str, wrong: FieldError) -> int:
    if (number := parse_integer(without_thousands(text), MAX_DIGITS)) is None:
        raise InvalidRequest([wrong])
    return number
