"""The machine's last invoice against what the ledger knows: whether it is new, and whether it is the one in question."""

from __future__ import annotations

from typing import Literal

from daemon.core.invoice.invoice import CREDITS, SALES, Invoice
from daemon.core.invoice.number import same_number
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import LastSeen
from daemon.core.machine.state import LastInvoice, MachineState

Standing = Literal["none", "gone", "known", "alike", "new", "unrecorded"]
"""
none        the machine has no last invoice, or does not tell it
gone        it has none, and had one when the ledger looked last
known       its code is in the ledger, or is the one that was seen last: nothing was certified since
alike       without a code to prove it, it looks like the one that was seen last
new         it is not the one that was seen last: it was certified since
unrecorded  its code is not in the ledger, and what was seen last was not written down (a ledger of 0.1.0)
"""

_CUT = 16
"""Characters of a number that a machine has cut off, at the least."""


def standing(last: LastInvoice | None, seen: LastSeen | None, *, in_ledger: bool) -> Standing:
    """`seen`: the machine's last invoice when the ledger's known counters were read. `in_ledger`: a certification of the book has its code."""
    if last is None:
        return "none" if seen is None or seen.last is None else "gone"
    if in_ledger:
        return "known"
    if seen is None:
        return "unrecorded"
    before = seen.last
    if before is None:
        return "new"
    is_alike = same_number(last.number, before.number) and last.total == before.total
    if last.code and before.code:
        # A firmware may tell a code in two ways; a machine refuses the number of its last invoice, so that two of them in one second are one.
        return "known" if last.code == before.code or (is_alike and last.time == before.time) else "new"
    return "alike" if is_alike else "new"


def is_last(attempt: Record | Invoice, state: MachineState) -> bool:
    """Whether the machine's last invoice has its number, total and type, which a machine may tell in words of its own."""
    last = state.last
    return (
        last is not None
        and same_number(last.number, attempt.number)
        and last.total == attempt.total_ttc
        and _fits(attempt, last)
    )


def resembles(attempt: Record | Invoice, last: LastInvoice) -> bool:
    """Whether it may be the one in question although it is not told as it was sent: its number with another total or type, or its total and
    type under a number that the machine may have changed: signs and accents left out or replaced, a long one cut off."""
    if same_number(last.number, attempt.number):
        return True
    if last.total != attempt.total_ttc or not _fits(attempt, last):
        return False
    theirs, ours = _bare(last.number), _bare(attempt.number)
    return theirs == ours or (len(theirs) >= _CUT and ours.startswith(theirs))


def _fits(attempt: Record | Invoice, last: LastInvoice) -> bool:
    return last.type == attempt.type or last.type not in (*SALES, *CREDITS)


def _bare(number: str) -> str:
    """Letters and digits that every code page has."""
    return "".join(sign for sign in number.upper() if sign.isascii() and sign.isalnum())
