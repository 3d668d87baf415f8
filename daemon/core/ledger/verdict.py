"""The outcome of an attempt in doubt, from the machine's last invoice and counters (protocol 5).

Two sets of counters are compared with the machine's. `Record.base` are the counters known when the intent was written;
the previous invoice may still have been on the line then, so `base` may lack it. `before` is the head of the book: the
last durable outcome. No 38h is sent before the previous outcome is durable. So whatever the machine counted beyond
`before` is this one attempt, or a foreign invoice.

In a restored ledger every begun attempt may have been certified since the copy, and so may others that it lacks."""

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

LastComparison = Literal["none", "gone", "known", "alike", "new", "unrecorded"]
"""
The machine's last invoice, compared with the ledger:

none        the machine has no last invoice, or does not send it
gone        the machine has none now, and had one when the ledger last read it
known       its code is in the ledger, or equals the last one read: nothing was certified since
alike       there is no code to compare; number and total equal the last one read
new         it differs from the last one read: it was certified since
unrecorded  its code is not in the ledger, which has no last one read (a ledger of 0.1.0)
"""

_CUT = 16
"""Shortest number, in characters, that counts as a truncated one."""

MAY_NOT_COUNT = ("EV", "ET", "EA")
"""Types that some machines count in TC alone (protocol 5.2)."""

_TC_ALONE: tuple[tuple[str, ...], ...] = ((), ("EV", "ET"), ("EA",), MAY_NOT_COUNT)
"""A machine counts one of these sets of types in TC alone."""


def compare_last(last: LastInvoice | None, seen: LastSeen | None, *, in_ledger: bool) -> LastComparison:
    """`seen`: the machine's last invoice when the known counters were read. `in_ledger`: the book has its code."""
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
        # A firmware may spell one code in two ways. A machine refuses the number of its last invoice again, so an
        # equal number in the same second is the same invoice.
        return "known" if last.code == before.code or (is_alike and last.time == before.time) else "new"
    return "alike" if is_alike else "new"


def is_last(attempt: Record | Invoice, state: MachineState) -> bool:
    """Whether the machine's last invoice has the attempt's number, total and type (or an unknown type)."""
    last = state.last
    return (
        last is not None
        and same_number(last.number, attempt.number)
        and last.total == attempt.total_ttc
        and _fits(attempt, last)
    )


def resembles(attempt: Record | Invoice, last: LastInvoice) -> bool:
    """Whether `last` may be the attempt although the machine reports it differently: the same number with another total
    or type, or the same total and type with a number that the machine changed (signs, accents, truncation)."""
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
    """The machine did not certify the invoice; its number is free. `sent`: part of it may have reached the machine."""

    sent: bool = True


def not_certified(verdict: NotCertified) -> Text:
    """The reason in the ledger."""
    return NOT_CERTIFIED if verdict.sent else NOT_SENT


class Disputed(msgspec.Struct, frozen=True):
    """The machine cannot tell. `found` is the evidence, for an operator."""

    found: Text


class Evidence(msgspec.Struct, frozen=True):
    """The machine's state while its book is in attention, for the person who settles it; `at` in ms since 1970."""

    at: int
    state: MachineState


Verdict = Certified | NotCertified | Disputed


def verdicts(
    unfinished: Sequence[Record],
    before: FiscalCounters,
    state: MachineState,
    last: LastComparison,
    *,
    activated: str = "",
    is_restored: bool = False,
) -> list[tuple[Record, Verdict]]:
    """The verdict on each begun attempt (`unfinished`, oldest first), in the order in which they have to be written:
    certified ones last. If writing stops midway, the rest must not be judged by counters that a certified one moved.

    No 38h is sent before the previous outcome is durable, so only the oldest attempt can have been on the line. In a
    restored ledger (`is_restored`, or the machine's last invoice shows it) each of them can."""
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
    attempt: Record, before: FiscalCounters, state: MachineState, last: LastComparison, *, activated: str = ""
) -> Verdict:
    """The verdict on one attempt. `before`: counters after everything that ended before it. `state`: a fresh C1h.
    `activated`: the machine's new name if it was activated again since; it may count from zero, so counters prove
    nothing."""
    now, ours = state.counters, is_last(attempt, state)
    moved = (now.fvc - before.fvc, now.frc - before.frc)
    if activated or went_down(before, now):
        verdict = _across_an_activation(before, state, last, ours=ours, nim=activated) if activated else None
    elif last == "known":
        verdict = None if any(moved) else NotCertified()
    elif last == "gone":
        verdict = None
    elif ours and last == "new":
        verdict = _certified_by(state) if may_be_certified(attempt.type, None, before, now) else None
    elif ours:
        verdict = _by_counters(attempt, before, state, last)
    else:
        verdict = _of_another(attempt, before, state, last)
    return verdict or Disputed(evidence(attempt, before, state))


def _across_an_activation(
    before: FiscalCounters, state: MachineState, last: LastComparison, *, ours: bool, nim: str
) -> Verdict | None:
    """A known last invoice shows that the machine still has its memory and has certified nothing since."""
    if last == "known":
        return NotCertified()
    if ours and last == "new":
        return _certified_by(state, nim if state.counters.tc <= before.tc else "")
    return None


def _of_another(attempt: Record, before: FiscalCounters, state: MachineState, last: LastComparison) -> Verdict | None:
    """The machine's last invoice is foreign. Ours may precede it if the counters leave room for both."""
    now = state.counters
    if state.last is not None and resembles(attempt, state.last):
        return None
    if last == "new" and now.tc == before.tc:
        return None  # certified and not counted: the machine counts from zero without saying so
    kind = state.last.type if state.last is not None else None
    return None if may_be_certified(attempt.type, kind, before, now) else NotCertified()


def may_be_certified(kind: str, last: str | None, before: FiscalCounters, now: FiscalCounters) -> bool:
    """Whether an invoice of type `kind` may be among those counted since `before`, beside the last one of type `last`
    (None: no last one), for any set of types that a machine may count in TC alone."""
    moved = (now.tc - before.tc, now.fvc - before.fvc, now.frc - before.frc)
    for alone in _TC_ALONE:
        for ours, other in product(_ways(kind, alone), _ways(last, alone)):
            tc, fvc, frc = (all_ - one - two for all_, one, two in zip(moved, ours, other, strict=True))
            if fvc >= 0 and frc >= 0 and fvc + frc <= tc:
                return True
    return False


def _ways(kind: str | None, alone: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    """By how much one invoice of that type may move TC, FVC and FRC; an unknown type may be any."""
    if kind is None:
        return ((0, 0, 0),)
    if kind in alone:
        return ((1, 0, 0),)
    if kind in SALES:
        return ((1, 1, 0),)
    if kind in CREDITS:
        return ((1, 0, 1),)
    return ((1, 1, 0), (1, 0, 1), (1, 0, 0))


def _by_counters(attempt: Record, before: FiscalCounters, state: MachineState, last: LastComparison) -> Verdict | None:
    """Our invoice is the machine's last, and only the counters tell whether it is new: there is no code, or the ledger
    does not know the last one before."""
    now = state.counters
    moved = now.tc - before.tc
    expected = (before.fvc, before.frc + 1) if attempt.invoice.is_credit else (before.fvc + 1, before.frc)
    if (now.fvc, now.frc) == expected and moved:
        return _certified_by(state)
    if (now.fvc, now.frc) != (before.fvc, before.frc):
        return None
    if moved == 1 and attempt.type in MAY_NOT_COUNT and last == "unrecorded":
        return _certified_by(state)
    # An operator may have adopted the machine's counters without settling this attempt: then `before` is past `base`.
    is_settled = moved == 0 and (before.fvc, before.frc) == (attempt.base.fvc, attempt.base.frc)
    return NotCertified() if is_settled else None


def _certified_by(state: MachineState, nim: str = "") -> Certified | None:
    last = state.last
    return None if last is None else Certified(last.code, last.time, state.ifu, state.counters, nim)


def fc_moved(kind: str, before: FiscalCounters, certified: FiscalCounters) -> bool:
    """Whether the counters in the reply to 38h are possible after an invoice of that type."""
    moved = (certified.fvc - before.fvc) + (certified.frc - before.frc)
    return moved > 0 or (moved == 0 and kind in MAY_NOT_COUNT)


def foreign_count(invoice: Invoice, before: FiscalCounters, now: FiscalCounters) -> int:
    """How many foreign invoices the machine counted since `before`, beside this one, which may count in TC alone."""
    sold, credited = now.fvc - before.fvc, now.frc - before.frc
    is_counted = (credited if invoice.is_credit else sold) > 0
    return max(0, sold + credited - is_counted)


def evidence(attempt: Record, before: FiscalCounters, state: MachineState) -> Text:
    """The facts on which an operator decides."""
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
    last: LastComparison,
    *,
    ours: Invoice | None = None,
    is_restored: bool = False,
) -> Text:
    """Why machine and ledger disagree; empty when they agree. Nothing is unfinished, or `ours` was just found
    certified.

    A higher TC alone is normal: the machine writes daily reports of its own (protocol 4). It is not when the last
    invoice is in no ledger, or in a restored ledger: a machine may count an invoice in TC alone."""
    now = state.counters
    ledger_text = LEDGER_KNOWS(counters=_text(before), number=_named(last_number))
    theirs = MACHINE_SAYS(counters=_text(now), last=_last(state))
    if went_down(before, now):
        return MACHINE_BEHIND(ours=ledger_text, theirs=theirs)
    moved = now.tc - before.tc
    if ours:
        foreign, is_unknown = foreign_count(ours, before, now), is_restored and moved > 1
    else:
        foreign = now.fvc - before.fvc + now.frc - before.frc
        is_unknown = last == "new" or (last in ("none", "unrecorded", "gone") and is_restored and moved > 0)
    if foreign or is_unknown:
        if foreign > 1:
            return FOREIGN_INVOICES(count=foreign, ours=ledger_text, theirs=theirs)
        return FOREIGN_INVOICE(ours=ledger_text, theirs=theirs)
    return NO_TEXT


def disagreement(
    stored: BookState, before: FiscalCounters, state: MachineState, last: LastComparison, *, met: bool, is_lost: bool
) -> Text:
    """What an operator has to check before the machine's counters become the known ones; empty for nothing. `before`:
    the stored counters, or newer ones of this process. `met`: this process has reconciled with the machine before.
    `is_lost`: the ledger is empty although one was in use here."""
    if stored.counters is None:
        return vanished(state) if is_lost else from_stored(stored.lost)
    if met and not went_down(before, state.counters):
        return NO_TEXT
    found = behind(before, stored.last_number, state, last, is_restored=stored.is_restored)
    return found or from_stored(stored.lost)


def vanished(state: MachineState, *, is_activated: bool = False) -> Text:
    """The problem when an empty ledger meets a machine that was in use here before; empty if the machine has certified
    nothing, so that nothing can be missing. A machine that was activated again may count from zero."""
    if not is_activated and state.last is None and not state.counters.fvc and not state.counters.frc:
        return NO_TEXT
    return LEDGER_EMPTY(counters=_text(state.counters), last=_last(state))


def activated_since(before: FiscalCounters, state: MachineState, last: LastComparison) -> Text:
    """The problem when a restored ledger meets a machine that was activated again after the copy was made; empty if its
    last invoice shows that it has certified nothing since."""
    if last == "known":
        return NO_TEXT
    return ACTIVATED_SINCE_BACKUP(known=_text(before), counters=_text(state.counters), last=_last(state))


def went_down(before: FiscalCounters, now: FiscalCounters) -> bool:
    """Whether a counter is lower than before, which never happens within one activation (protocol 3)."""
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
