"""What a credit note refers to: `<NIM>-<FVC of the original>`, or `RRR`."""

from __future__ import annotations

import re
from typing import NamedTuple

NO_SINGLE_ORIGINAL = "RRR"
"""A credit note on many invoices."""


class Reference(NamedTuple):
    """What a credit note names: the counter of a sale, in an activation of a machine (None: not said). Its text has one form."""

    machine: str
    """without the activation counter"""
    activation: int | None
    counter: int

    def __str__(self) -> str:
        return "-".join(str(part) for part in self if part is not None)


_DASHES = re.compile("[\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d]")
_REFERENCE = re.compile("([A-Z]{2}[0-9]{8})(?:-([0-9]{1,9}))?-([0-9]{1,18})")
"""No counter has more digits (protocol 3)."""


def read_reference(text: str) -> Reference | None:
    """However it is written: small letters, leading zeros, other dashes. None when it names no invoice."""
    found = _REFERENCE.fullmatch(_DASHES.sub("-", text).strip().upper())
    return found and Reference(found[1], int(found[2]) if found[2] else None, int(found[3]))
