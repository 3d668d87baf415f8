"""When two invoice numbers are the same (decision 37): in the index, the duplicate check, the verdict and `adopt` alike."""

from __future__ import annotations

import unicodedata


def number_key(number: str) -> str:
    """The one spelling of equal numbers: NFC without regard to case, in the capitals that a machine may keep a number in.

    Nearly every number is its own key: digits, signs and capitals."""
    if number.isascii():
        return number.upper()
    return _composed(_composed(number).casefold().upper())


def same_number(one: str, other: str) -> bool:
    return one == other or number_key(one) == number_key(other)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)
