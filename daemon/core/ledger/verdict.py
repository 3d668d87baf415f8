"""What became of an attempt whose outcome is unknown, by the machine's own word (protocol 5): its last invoice and its counters.

Two sets of counters stand behind a judgement. `Record.base` are those known when the intent was written; it may have
been written while the invoice before it was still on the line, so it may be older than that one's outcome. `known` is
the head of the book: the last outcome that is durable. No 38h is sent before the outcome of the invoice before it is
durable, so whatever the machine counted beyond `known` is the work of this one attempt, or not ours at all.

A ledger that was put back is another matter: each attempt that is begun in it may have been certified since, and others besides.

The machine's last invoice against what the ledger knows: whether it is new, and whether it is the one in question."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

import msgspec

from common.language import NO_TEXT, Text
from common.language.reasons import (
    ACTIVATED_SINCE_BACKUP,
    FOREIGN_INVOICE,
    FOREIGN_INVOICES,
    LAST_INVOICE,
    LEDGER_EMPTY,
    LEDGER_KNOWS,
    MACHINE_BEHIND,
    MACHINE_SAYS,
    NO_LAST_INVOICE,
    NONE,
    NOT_CERTIFIED,
    NOT_SENT,
    OUTCOME_UNKNOWN,
    from_stored,
)
from daemon.core.invoice.invoice import CREDITS, SALES, Invoice
from daemon.core.invoice.number import same_number
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import BookState, LastSeen
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState

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

MAY_NOT_COUNT = ("EV", "ET", "EA")
"""Types that some machines count in TC alone (protocol 5.2)."""

_TC_ALONE: tuple[tuple[str, ...], ...] = ((), ("EV", "ET"), ("EA",), MAY_NOT_COUNT)
"""What a machine may count in TC alone: one of these."""


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
    """Whether it may be the one in question although the machine reports it otherwise: its number with another total or type, or its total and
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


class NotCertified(msgspec.Struct, frozen=True):
    """The machine did not certify it; the number is free. `sent`: something of it may have been at the machine."""

    sent: bool = True


def not_certified(verdict: NotCertified) -> Text:
    """The reason in the ledger."""
    return NOT_CERTIFIED if verdict.sent else NOT_SENT


class Disputed(msgspec.Struct, frozen=True):
    """It cannot be known. `found` is the evidence, for an operator."""

    found: Text


class Evidence(msgspec.Struct, frozen=True):
    """The state of the machine while its book was in attention, for the person who settles it; `at` in ms."""

    at: int
    state: MachineState


Verdict = Certified | NotCertified | Disputed


def verdicts(
    unfinished: Sequence[Record],
    before: FiscalCounters,
    state: MachineState,
    last: Standing,
    *,
    activated: str = "",
    is_restored: bool = False,
) -> list[tuple[Record, Verdict]]:
    """Of all attempts that are begun, oldest first, in the order in which they have to be written: what is left over when that breaks off in the
    middle must not be judged by counters that one of them has moved.

    38h of an invoice is never sent before the outcome of the one before it is durable, so only the oldest can have been on the line. In a
    ledger that was put back, as it is marked or as the machine's last invoice shows, each may have been."""
    judged = len(unfinished) if is_restored else 1
    if last not in ("none", "gone", "known"):
        judged = max([judged, *(place for place, r in enumerate(unfinished, 1) if is_last(r, state))])
    found: list[tuple[Record, Verdict]] = []
    is_taken = False
    for place, record in enumerate(unfinished):
        verdict = (
            judge(record, before, state, last, activated=activated) if place < judged else NotCertified(sent=False)
        )
        if is_taken and isinstance(verdict, Certified):  # 0.1.0 took two spellings of a number for two numbers
            verdict = Disputed(evidence(record, before, state))
        is_taken = is_taken or isinstance(verdict, Certified)
        found.append((record, verdict))
    order = (NotCertified, Disputed, Certified)
    return sorted(found, key=lambda pair: order.index(type(pair[1])))


def judge(
    attempt: Record, before: FiscalCounters, state: MachineState, last: Standing, *, activated: str = ""
) -> Verdict:
    """`before` includes everything that ended before `attempt`; `state` is a fresh C1h, `last` says whether its last invoice is new. `activated`: the
    machine was activated anew meanwhile, and is called that now: it may have begun to count again, so no counter proves anything."""
    now, ours = state.counters, is_last(attempt, state)
    moved = (now.fvc - before.fvc, now.frc - before.frc)
    if activated or went_down(before, now):
        verdict = _across_an_activation(before, state, last, ours=ours, nim=activated) if activated else None
    elif last == "known":
        verdict = None if any(moved) else NotCertified()
    elif last == "gone":
        verdict = None
    elif ours and last == "new":
        verdict = _word(state) if may_be_certified(attempt.type, None, before, now) else None
    elif ours:
        verdict = _by_counters(attempt, before, state, last)
    else:
        verdict = _of_another(attempt, before, state, last)
    return verdict or Disputed(evidence(attempt, before, state))


def _across_an_activation(
    before: FiscalCounters, state: MachineState, last: Standing, *, ours: bool, nim: str
) -> Verdict | None:
    """A last invoice that is known says that the machine kept its memory, and that nothing was certified since."""
    if last == "known":
        return NotCertified()
    if ours and last == "new":
        return _word(state, nim if state.counters.tc <= before.tc else "")
    return None


def _of_another(attempt: Record, before: FiscalCounters, state: MachineState, last: Standing) -> Verdict | None:
    """The machine's last invoice is foreign. It may have come after ours, where the counters leave room for both."""
    now = state.counters
    if state.last is not None and resembles(attempt, state.last):
        return None
    if last == "new" and now.tc == before.tc:
        return None  # it was certified without being counted: the machine counts anew, and says so nowhere
    kind = state.last.type if state.last is not None else None
    return None if may_be_certified(attempt.type, kind, before, now) else NotCertified()


def may_be_certified(kind: str, last: str | None, before: FiscalCounters, now: FiscalCounters) -> bool:
    """Whether an invoice of the type `kind` may be among those that were counted since `before`, beside the last one, of the type `last` (None:
    there is none), whatever this machine counts in TC alone."""
    moved = (now.tc - before.tc, now.fvc - before.fvc, now.frc - before.frc)
    for alone in _TC_ALONE:
        for ours, other in product(_ways(kind, alone), _ways(last, alone)):
            tc, fvc, frc = (all_ - one - two for all_, one, two in zip(moved, ours, other, strict=True))
            if fvc >= 0 and frc >= 0 and fvc + frc <= tc:
                return True
    return False


def _ways(kind: str | None, alone: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    """How TC, FVC and FRC may move by an invoice of that type; one in words of the machine's own may be any."""
    if kind is None:
        return ((0, 0, 0),)
    if kind in alone:
        return ((1, 0, 0),)
    if kind in SALES:
        return ((1, 1, 0),)
    if kind in CREDITS:
        return ((1, 0, 1),)
    return ((1, 1, 0), (1, 0, 1), (1, 0, 0))


def _by_counters(attempt: Record, before: FiscalCounters, state: MachineState, last: Standing) -> Verdict | None:
    """Our invoice is the machine's last, and nothing but the counters tells whether it is new: there is no code, or the ledger does not know what was
    the last before."""
    now = state.counters
    moved = now.tc - before.tc
    expected = (before.fvc, before.frc + 1) if attempt.invoice.is_credit else (before.fvc + 1, before.frc)
    if (now.fvc, now.frc) == expected and moved:
        return _word(state)
    if (now.fvc, now.frc) != (before.fvc, before.frc):
        return None
    if moved == 1 and attempt.type in MAY_NOT_COUNT and last == "unrecorded":
        return _word(state)
    # `before` may be past the intent without ours: an operator took the machine's counters over without settling it
    is_settled = moved == 0 and (before.fvc, before.frc) == (attempt.base.fvc, attempt.base.frc)
    return NotCertified() if is_settled else None


def _word(state: MachineState, nim: str = "") -> Certified | None:
    last = state.last
    return None if last is None else Certified(last.code, last.time, state.ifu, state.counters, nim)


def fc_moved(kind: str, before: FiscalCounters, certified: FiscalCounters) -> bool:
    """Whether the counter that 38h named is one that this machine may have after an invoice of that type."""
    moved = (certified.fvc - before.fvc) + (certified.frc - before.frc)
    return moved > 0 or (moved == 0 and kind in MAY_NOT_COUNT)


def strangers(invoice: Invoice, before: FiscalCounters, now: FiscalCounters) -> int:
    """How many foreign invoices the machine has counted since `before`, beside this one, which it may have counted in TC alone."""
    sold, credited = now.fvc - before.fvc, now.frc - before.frc
    is_counted = (credited if invoice.is_credit else sold) > 0
    return max(0, sold + credited - is_counted)


def evidence(attempt: Record, before: FiscalCounters, state: MachineState) -> Text:
    """What there is to decide on, for an operator."""
    return OUTCOME_UNKNOWN(
        number=attempt.number,
        type=attempt.type,
        total=attempt.total_ttc,
        known=_text(before),
        counters=_text(state.counters),
        last=_last(state),
    )


def behind(
    before: FiscalCounters,
    last_number: str,
    state: MachineState,
    last: Standing,
    *,
    ours: Invoice | None = None,
    is_restored: bool = False,
) -> Text:
    """What is wrong when the machine and a ledger with nothing unfinished, or with `ours` just found certified, do not agree; empty when they do.

    More transactions alone are explained: the machine writes daily reports of its own (protocol 4). Not so beside a last invoice that is in no
    ledger, and in one that was put back: a machine may count an invoice in TC alone."""
    now = state.counters
    ledger_text = LEDGER_KNOWS(counters=_text(before), number=_named(last_number))
    theirs = MACHINE_SAYS(counters=_text(now), last=_last(state))
    if went_down(before, now):
        return MACHINE_BEHIND(ours=ledger_text, theirs=theirs)
    moved = now.tc - before.tc
    if ours:
        foreign, is_unknown = strangers(ours, before, now), is_restored and moved > 1
    else:
        foreign = now.fvc - before.fvc + now.frc - before.frc
        is_unknown = last == "new" or (last in ("none", "unrecorded", "gone") and is_restored and moved > 0)
    if foreign or is_unknown:
        if foreign > 1:
            return FOREIGN_INVOICES(count=foreign, ours=ledger_text, theirs=theirs)
        return FOREIGN_INVOICE(ours=ledger_text, theirs=theirs)
    return NO_TEXT


def disagreement(
    stored: BookState, before: FiscalCounters, state: MachineState, last: Standing, *, met: bool, is_lost: bool
) -> Text:
    """What an operator has to look at before the machine's counters are believed; empty when nothing. `before`: the stored ones, or newer ones of
    this process; `met`: it has reconciled with the machine before; `is_lost`: a ledger has worked here, and this one knows nothing."""
    if stored.counters is None:
        return vanished(state) if is_lost else from_stored(stored.lost)
    if met and not went_down(before, state.counters):
        return NO_TEXT
    found = behind(before, stored.last_number, state, last, is_restored=stored.is_restored)
    return found or from_stored(stored.lost)


def vanished(state: MachineState, *, is_activated: bool = False) -> Text:
    """What is wrong when an empty ledger meets a machine with which one has worked here before; empty when it has certified nothing, so that
    there is nothing the ledger could lack. A machine that was activated anew meanwhile may have begun to count again."""
    if not is_activated and state.last is None and not state.counters.fvc and not state.counters.frc:
        return NO_TEXT
    return LEDGER_EMPTY(counters=_text(state.counters), last=_last(state))


def activated_since(before: FiscalCounters, state: MachineState, last: Standing) -> Text:
    """What is wrong when an older copy of the ledger meets a machine that was activated anew after the copy was made; empty when the machine's last
    invoice shows that it has certified nothing since."""
    if last == "known":
        return NO_TEXT
    return ACTIVATED_SINCE_BACKUP(known=_text(before), counters=_text(state.counters), last=_last(state))


def went_down(before: FiscalCounters, now: FiscalCounters) -> bool:
    """No counter of one machine ever does (protocol 3)."""
    return now.tc < before.tc or now.fvc < before.fvc or now.frc < before.frc


def _text(counters: FiscalCounters) -> str:
    return f"TC {counters.tc}, FVC {counters.fvc}, FRC {counters.frc}"


def _last(state: MachineState) -> str:
    last = state.last
    if last is None:
        return NO_LAST_INVOICE
    return LAST_INVOICE(number=last.number, type=last.type, total=last.total)


def _named(number: str) -> str:
    return repr(number) if number else NONE
