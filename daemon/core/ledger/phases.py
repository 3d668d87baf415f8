"""The life of an attempt in one daemon, as a table: where it may stand, what may happen to it there, and what each place means.

    intending ──▶ prepared ──▶ on the line ──▶ ending ──▶ ended
        │            │              │            ▲          ▲
        │            └──────────────│────────────┘          │
        └─▶ ended                   └──▶ in doubt ──────────┘

Nothing else knows these rules: code that needs to know whether an attempt blocks another reads its phase. The table in
docs/reliability.md is made from `TABLE`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Phase(Enum):
    INTENDING = "intending"
    """Its intent is on its way to the disk; on the line at most what can be cancelled (C3h to 35h)."""
    PREPARED = "prepared"
    """Its intent is durable; no 38h has been sent."""
    ON_THE_LINE = "on the line"
    """38h may have left: what becomes of it is the machine's to say."""
    IN_DOUBT = "in doubt"
    """38h had no believable answer, or the daemon that sent it is gone: only the machine can tell."""
    ENDING = "ended, not durable"
    """Its end is known and on its way to the disk."""
    ENDED = "ended"
    """Its end is durable, or its intent never was."""


class Step(Enum):
    WRITTEN = "its intent is durable"
    NOT_WRITTEN = "its intent was refused"
    CLOSING = "38h is the next command"
    ANSWERED = "38h was answered"
    FOUND = "its number was certified for an earlier attempt of ours"
    FAILED = "nothing was certified"
    UNKNOWN = "the outcome is unknown in this process"
    STORED = "its end is durable"
    SETTLED = "the outcome was read from the machine, or decided by an operator"


class PhaseMeaning(NamedTuple):
    """What a phase means to others. `ours`: this process brings it to its end, and `recover` has no business with it; `blocks`: no
    other attempt may send 38h, since the machine remembers only its last invoice."""

    ours: bool
    blocks: bool
    then: Mapping[Step, Phase]


TABLE: Mapping[Phase, PhaseMeaning] = {
    Phase.INTENDING: PhaseMeaning(
        ours=True,
        blocks=False,
        then={Step.WRITTEN: Phase.PREPARED, Step.NOT_WRITTEN: Phase.ENDED, Step.UNKNOWN: Phase.IN_DOUBT},
    ),
    Phase.PREPARED: PhaseMeaning(
        ours=True,
        blocks=False,
        then={
            Step.CLOSING: Phase.ON_THE_LINE,
            Step.FOUND: Phase.ENDING,
            Step.FAILED: Phase.ENDING,
            Step.UNKNOWN: Phase.IN_DOUBT,
        },
    ),
    Phase.ON_THE_LINE: PhaseMeaning(
        ours=True,
        blocks=True,
        then={Step.ANSWERED: Phase.ENDING, Step.UNKNOWN: Phase.IN_DOUBT},
    ),
    Phase.IN_DOUBT: PhaseMeaning(ours=False, blocks=True, then={Step.SETTLED: Phase.ENDED}),
    Phase.ENDING: PhaseMeaning(ours=True, blocks=True, then={Step.STORED: Phase.ENDED, Step.UNKNOWN: Phase.IN_DOUBT}),
    Phase.ENDED: PhaseMeaning(ours=False, blocks=False, then={}),
}


class NotInTheTable(Exception):
    """A step that has no meaning in that phase: a programming error, raised before it has an effect."""

    def __init__(self, phase: Phase, step: Step) -> None:
        super().__init__(f"an attempt that is {phase.value!r} cannot take the step {step.value!r}")


def after(phase: Phase, step: Step) -> Phase:
    """NotInTheTable when there is no such way."""
    try:
        return TABLE[phase].then[step]
    except KeyError:
        raise NotInTheTable(phase, step) from None
