"""What became of an attempt whose outcome is unknown, by the machine's own word (protocol 5): number, total and counters.

Two sets of counters stand behind a judgement. `Record.base` are those known when the intent was written; it may have
been written while the invoice before it was still on the line, so it may be older than that one's outcome. `known` is
the head of the book: the last outcome that is durable. No 38h is sent before the outcome of the invoice before it is
durable, so whatever the machine counted beyond `known` is the work of this one attempt, or not ours at all.
"""

from __future__ import annotations

import msgspec

from daemon.core.certification import Certified, Counters, MachineState, Record
from daemon.core.receipt import short_nim


class NotCertified(msgspec.Struct, frozen=True):
    """The machine did not certify it; the number is free."""


class Disputed(msgspec.Struct, frozen=True):
    """It cannot be known. `found` is the evidence, for an operator."""

    found: str


class Evidence(msgspec.Struct, frozen=True):
    """What the machine said of itself while its book was in attention, for whoever settles it; `at` in ms."""

    at: int
    state: MachineState


Verdict = Certified | NotCertified | Disputed


def judge(attempt: Record, known: Counters, state: MachineState) -> Verdict:
    """`known` includes everything that ended before `attempt`; `state` is a fresh C1h."""
    now = state.counters
    credit = attempt.invoice.is_credit
    expected = (known.fvc, known.frc + 1) if credit else (known.fvc + 1, known.frc)
    last = state.last
    if (now.fvc, now.frc) == (known.fvc, known.frc) and now.tc >= known.tc:
        return _unmoved(attempt, known, state)
    if (now.fvc, now.frc) != expected or now.tc <= known.tc or last is None or not is_last(attempt, state):
        return Disputed(_evidence(attempt, known, state))
    return Certified(last.code, last.time, state.ifu, now)


def _unmoved(attempt: Record, known: Counters, state: MachineState) -> Verdict:
    """Nothing was certified since `known` was written down, whatever number the machine remembers. Only where `known` is
    already past the intent and that number is ours, somebody took the machine's counters over without settling."""
    if is_last(attempt, state) and (known.fvc, known.frc) != (attempt.base.fvc, attempt.base.frc):
        return Disputed(_evidence(attempt, known, state))
    return NotCertified()


def is_last(attempt: Record, state: MachineState) -> bool:
    last = state.last
    return last is not None and (last.number, last.total, last.type) == (
        attempt.number,
        attempt.total_ttc,
        attempt.type,
    )


def _evidence(attempt: Record, known: Counters, state: MachineState) -> str:
    return (
        f"invoice {attempt.number!r} ({attempt.type}, {attempt.total_ttc} XOF) has no known outcome: "
        f"the ledger knows {_text(known)}, the machine says {_text(state.counters)} and {_last(state)}"
    )


def behind(known: Counters, last_number: str, state: MachineState) -> str:
    """What is wrong when the machine and a ledger with nothing unfinished do not agree; empty when they do.

    More transactions alone are explained: the machine writes daily reports of its own (protocol 4).
    """
    now = state.counters
    ours = f"the ledger knows {_text(known)} and {_named(last_number)} as the last invoice"
    theirs = f"the machine says {_text(now)} and {_last(state)}"
    if went_down(known, now):
        return f"the machine's counters went down, so it is another or a reset machine: {ours}, {theirs}"
    foreign = now.fvc - known.fvc + now.frc - known.frc
    if foreign:
        return (
            f"the machine has certified {foreign} invoice(s) this ledger does not know "
            f"(a restored backup, or another program on the machine): {ours}, {theirs}"
        )
    return ""


def went_down(known: Counters, now: Counters) -> bool:
    """No counter of one machine ever does (protocol 3)."""
    return now.tc < known.tc or now.fvc < known.fvc or now.frc < known.frc


def same_machine(one: str, other: str) -> bool:
    """Compared up to the dash: some firmware leaves out the activation counter (protocol 3)."""
    return short_nim(one) == short_nim(other)


def _text(counters: Counters) -> str:
    return f"TC {counters.tc}, FVC {counters.fvc}, FRC {counters.frc}"


def _last(state: MachineState) -> str:
    last = state.last
    if last is None:
        return "no last invoice"
    return f"{last.number!r} ({last.type}, {last.total} XOF) as its last invoice"


def _named(number: str) -> str:
    return repr(number) if number else "none"
