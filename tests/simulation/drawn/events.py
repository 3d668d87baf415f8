"""What a history is made of: machines, and events that each can be left out; and how one that fails is told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from simulator.machine.options import SimulatorOptions

UNNUMBERED = "that of "


def by_total(total: int) -> str:
    """Stands for the number of a sale to which the box gives it: no other one has its total."""
    return f"{UNNUMBERED}{total}"


class Event(NamedTuple):
    """`at` in seconds of the history; `what` is a method of `History`, `how` its arguments."""

    at: float
    what: str
    how: dict[str, object]
    machine: int = 0

    def __str__(self) -> str:
        how = ", ".join(f"{name}={value!r}" for name, value in self.how.items())
        return f"{self.at:8.3f}  {self.what}({how})" + f" at machine {self.machine}" * bool(self.machine)


class MachinePart(NamedTuple):
    """One machine of the box and its line; `think`: seconds that each command takes."""

    options: SimulatorOptions
    faults: str
    think: float


class LanePart(NamedTuple):
    """Which share of calls, and of their answers, is lost, comes twice, and comes late."""

    loses: float
    doubles: float
    delays: float


class Script(NamedTuple):
    """`pace`: seconds an access to the disk takes at the most, usually. `is_late`: a day of late answers; `has_spare`: the second machine is
    the spare of the first; `lane`: there are tills outside, which sell through relays; `gives_numbers`: the box does where a till sends none;
    `is_new_year`: the year begins in the first seconds, and a number is taken for a year."""

    seed: int
    machines: tuple[MachinePart, ...]
    pace: float
    synchronised: bool
    events: tuple[Event, ...]
    is_late: bool = False
    has_spare: bool = False
    lane: LanePart | None = None
    gives_numbers: bool = False
    is_new_year: bool = False

    @property
    def cuts_power(self) -> bool:
        """Of the box: what was synced matters."""
        return any(
            event.what in ("cut_box", "cut_all", "fail_disk") or event.how.get("sync") or event.how.get("kills")
            for event in self.events
        )

    def keeping(self, indexes: Collection[int]) -> Script:
        return self._replace(events=tuple(event for at, event in enumerate(self.events) if at in indexes))


def in_words(script: Script, indexes: Sequence[int]) -> str:
    """A history that fails, and how to see it again."""
    machines = "".join(f"{_part_in_words(part)}\n" for part in script.machines)
    events = "\n".join(f"  {at:3} {script.events[at]}" for at in indexes)
    keep = ",".join(map(str, indexes))
    lane = f"{script.lane}\n" if script.lane else ""
    return (
        f"again: make simulate SEED={script.seed} KEEP={keep}\n{machines}disk {script.pace * 1000:g} ms\n{lane}{events}"
    )


def _part_in_words(part: MachinePart) -> str:
    usual = SimulatorOptions(nim=part.options.nim)
    options = {
        name: getattr(part.options, name)
        for name in usual.__struct_fields__
        if getattr(part.options, name) != getattr(usual, name)
    }
    return f"machine {part.options.nim} {options}, {part.think * 1000:g} ms for each command; line {part.faults or 'in order'}"
