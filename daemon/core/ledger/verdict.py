"""What became of an attempt whose outcome is unknown, by the machine's own word (protocol 5): number, total and counters.

Two sets of counters stand behind a judgement. `Record.base` are those known when the intent was written; it may have
been written while the invoice before it was still on the line, so it may be older than that one's outcome. `known` is
the head of the book: the last outcome that is durable. No 38h is sent before the outcome of the invoice before it is
durable, so whatever the machine counted beyond `known` is the work of this one attempt, or not ours at all.
"""

from __future__ import annotations

import msgspec

from daemon.core.invoice.invoice import CREDITS, SALES, Invoice
from daemon.core.ledger.attempt import Record
from daemon.core.machine.state import Certified, FiscalCounters, MachineState
from daemon.language import Counted, Text


class NotCertified(msgspec.Struct, frozen=True):
    """The machine did not certify it; the number is free. `sent`: something of it may have been at the machine."""

    sent: bool = True


class Disputed(msgspec.Struct, frozen=True):
    """It cannot be known. `found` is the evidence, for an operator."""

    found: str


class Evidence(msgspec.Struct, frozen=True):
    """What the machine said of itself while its book was in attention, for whoever settles it; `at` in ms."""

    at: int
    state: MachineState


MAY_NOT_COUNT = ("EV", "ET", "EA")
"""Types that some machines count in TC alone (protocol 5.2)."""

Verdict = Certified | NotCertified | Disputed


def judge(attempt: Record, known: FiscalCounters, state: MachineState, *, activated: str = "") -> Verdict:
    """`known` includes everything that ended before `attempt`; `state` is a fresh C1h. `activated`: the machine was activated anew meanwhile, and is
    called that now; where it has begun to count again, what it remembers is of this activation, else nobody knows of which."""
    now = state.counters
    if activated and state.last is not None and is_last(attempt, state):
        nim = activated if now.tc <= known.tc else ""
        return Certified(state.last.code, state.last.time, state.ifu, now, nim)
    credit = attempt.invoice.is_credit
    expected = (known.fvc, known.frc + 1) if credit else (known.fvc + 1, known.frc)
    last = state.last
    if (now.fvc, now.frc) == (known.fvc, known.frc) and now.tc >= known.tc:
        return _unmoved(attempt, known, state)
    if (now.fvc, now.frc) != expected or now.tc <= known.tc or last is None or not is_last(attempt, state):
        return Disputed(_evidence(attempt, known, state))
    return Certified(last.code, last.time, state.ifu, now)


def _unmoved(attempt: Record, known: FiscalCounters, state: MachineState) -> Verdict:
    """FVC and FRC are where they were. Then nothing was certified since `known` was written down, whatever number the machine remembers,
    with two exceptions that both have our invoice as the machine's last one.

    TC moved: a machine may count only FV and FT in FVC; an export that moved TC by one was certified, anything else nobody knows (protocol
    5.2). `known` is already past the intent: somebody took the machine's counters over without settling."""
    last = state.last
    if last is None or not is_last(attempt, state):
        return NotCertified()
    moved = state.counters.tc - known.tc
    if moved == 1 and attempt.type in MAY_NOT_COUNT:
        return Certified(last.code, last.time, state.ifu, state.counters)
    if moved or (known.fvc, known.frc) != (attempt.base.fvc, attempt.base.frc):
        return Disputed(_evidence(attempt, known, state))
    return NotCertified()


def fc_moved(kind: str, known: FiscalCounters, certified: FiscalCounters) -> bool:
    """Whether the counter that 38h named is one that this machine may have after an invoice of that type."""
    moved = (certified.fvc - known.fvc) + (certified.frc - known.frc)
    return moved > 0 or (moved == 0 and kind in MAY_NOT_COUNT)


def strangers(invoice: Invoice, known: FiscalCounters, now: FiscalCounters) -> int:
    """How many invoices of somebody else the machine has counted since `known`, beside this one, which it may have counted in TC alone."""
    sold, credited = now.fvc - known.fvc, now.frc - known.frc
    is_counted = (credited if invoice.is_credit else sold) > 0
    return max(0, sold + credited - is_counted)


def is_last(attempt: Record | Invoice, state: MachineState) -> bool:
    """Whether the machine's last invoice has its number, total and type, which a machine may tell in words of its own."""
    last = state.last
    return (
        last is not None
        and last.number.casefold() == attempt.number.casefold()  # a machine may keep it in capitals
        and last.total == attempt.total_ttc
        and (last.type == attempt.type or last.type not in (*SALES, *CREDITS))
    )


def _evidence(attempt: Record, known: FiscalCounters, state: MachineState) -> str:
    return Text(
        "invoice {number!r} ({type}, {total} XOF) has no known outcome: the ledger knows {known}, the machine says {counters} and {last}",
        number=attempt.number,
        type=attempt.type,
        total=attempt.total_ttc,
        known=_text(known),
        counters=_text(state.counters),
        last=_last(state),
    )


def behind(known: FiscalCounters, last_number: str, state: MachineState) -> str:
    """What is wrong when the machine and a ledger with nothing unfinished do not agree; empty when they do.

    More transactions alone are explained: the machine writes daily reports of its own (protocol 4).
    """
    now = state.counters
    ours = Text(
        "the ledger knows {counters} and {number} as the last invoice",
        counters=_text(known),
        number=_named(last_number),
    )
    theirs = Text("the machine says {counters} and {last}", counters=_text(now), last=_last(state))
    if went_down(known, now):
        return Text(
            "the machine's counters went down, so it is another or a reset machine: {ours}; {theirs}",
            ours=ours,
            theirs=theirs,
        )
    foreign = now.fvc - known.fvc + now.frc - known.frc
    if foreign:
        what = Counted(
            "the machine has certified an invoice that this ledger does not know",
            "the machine has certified {count} invoices that this ledger does not know",
            foreign,
        )
        return Text(
            "{what} (a restored backup, or another program on the machine): {ours}; {theirs}",
            what=what,
            ours=ours,
            theirs=theirs,
        )
    return ""


def vanished(state: MachineState) -> str:
    """What is wrong when an empty ledger meets a machine with which one has worked here before; empty when it has certified nothing, so that
    there is nothing the ledger could lack."""
    if state.last is None and not state.counters.fvc and not state.counters.frc:
        return ""
    return Text(
        "this ledger is empty, but a ledger has worked with this machine here before: put that one back, or its newest backup (mcfd "
        "restore); if both are lost, adopt: the machine says {counters} and {last}",
        counters=_text(state.counters),
        last=_last(state),
    )


def activated_since(known: FiscalCounters, state: MachineState) -> str:
    """What is wrong when an older copy of the ledger meets a machine that was activated anew after the copy was made."""
    return Text(
        "an older copy of this ledger was put back, and the machine has been activated anew since that copy was made: what it certified "
        "in between is in no ledger; adopt: the ledger knows {known}, the machine says {counters} and {last}",
        known=_text(known),
        counters=_text(state.counters),
        last=_last(state),
    )


def went_down(known: FiscalCounters, now: FiscalCounters) -> bool:
    """No counter of one machine ever does (protocol 3)."""
    return now.tc < known.tc or now.fvc < known.fvc or now.frc < known.frc


def _text(counters: FiscalCounters) -> str:
    return f"TC {counters.tc}, FVC {counters.fvc}, FRC {counters.frc}"


def _last(state: MachineState) -> str:
    last = state.last
    if last is None:
        return Text("no last invoice")
    return Text(
        "{number!r} ({type}, {total} XOF) as its last invoice", number=last.number, type=last.type, total=last.total
    )


def _named(number: str) -> str:
    return repr(number) if number else Text("none")
