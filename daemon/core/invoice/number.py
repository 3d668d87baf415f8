"""When two invoice numbers are the same (decision 37): in the index, the duplicate check, the verdict and `adopt` alike."""

from __future__ import annotations

import unicodedata


def normalised(number: str) -> str:
    """An invoice number as it is kept (decision 37): the same characters may come composed or decomposed."""
    return number if number.isascii() else unicodedata.normalize("NFC", number)


def number_key(number: str) -> str:
    """The one spelling of equal numbers: NFC without regard to case, in the capitals that a machine may keep a number in.

    Nearly every number is its own key: digits, signs and capitals."""
    if number.isascii():
        return number.upper()
    return normalised(normalised(number).casefold().upper())


def same_number(one: str, other: str) -> bool:
    return one == other or number_key(one) == number_key(other)
