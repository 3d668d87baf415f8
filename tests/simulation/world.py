"""One machine and all who are at it: what was done to it, and why an operator may be asked about it."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from simulation.box import Box, Seat, Unreachable
from simulation.drawn.events import MachinePart

from simulator.line.faults import FaultPlan
from simulator.line.session import LineSession
from simulator.machine.fiscal_memory import CertifiedInvoice
from simulator.machine.machine import SimulatedMachine

T = TypeVar("T")

HALF = "half a job"
"""What a job of the writer that fails has written before."""
CALM = 5.0
"""Seconds without trouble after which the daemon has had its look at the machine."""


class World:
    def __init__(self, box: Box, part: MachinePart, seed: str) -> None:
        self.box = box
        self.options = part.options
        self.faults = part.faults
        self.nim = part.options.nim
        """As the configuration has it."""
        self.machine_jump = 0.0
        self.box_was_wrong_at_first = self.was_restored = self.was_reset = self.was_activated = False
        self.wrong_box_times = self.wrong_machine_times = 0
        """How often the box's clock, and the machine's, was set to a wrong time."""
        self.clock_was_wrong = bool(part.options.clock_offset)
        """The machine's, or the box's: a time on paper need not be between an intent and now."""
        self.time_was_repaired = False
        """By `mcfd time repair`, of a book that was ahead."""
        self.had_report = False
        """The machine wrote a report of the day: TC moved alone."""
        self.decided = 0
        """Decisions of the operator."""
        self.entered_as_printed = False
        """One of them was of a paper whose time or counters do not fit."""
        self.foreign = 0
        """Invoices of somebody else, that the machine counted as such."""
        self.is_unsure_of_foreign = False
        """Some were there before a new ledger met the machine: it begins with what it finds."""
        self.has_met = False
        self.certified: list[tuple[float, CertifiedInvoice]] = []
        """What mcfd had the machine certify, each with its seconds of the loop."""
        self.unsure_by: dict[str, float] = {}
        """By how many seconds the box could take a call for younger than it was when that number was certified."""
        self.names: dict[str, str] = {}
        """What the machine was called when it certified, by the code it gave."""
        machine = SimulatedMachine(part.options, lambda: box.true_time() + timedelta(seconds=self.machine_jump))
        machine.fiscal.on_certified = self._certified
        self.session = LineSession(machine, plan=FaultPlan(part.faults, seed), think=part.think)
        self.cause = ""
        """Why an operator may be asked."""
        self.refusals: list[tuple[int, float]] = []
        """When tills were refused because the machine cannot certify: in the book's time (ms), and on the loop."""
        self.ends: list[float] = []
        """When a life of the daemon ended."""
        self.disk_faults: list[tuple[float, float]] = []
        """From when to when the disk takes nothing."""
        self._calm_since = 0.0

    def _certified(self, entry: CertifiedInvoice) -> None:
        self.names[entry.code] = self.session.machine.options.nim
        if not entry.foreign:
            self.certified.append((self.box.loop.now, entry))
        if self.box.lane is not None and self.box.life is not None:
            self.unsure_by[entry.number] = self.box.lane.unsure_by(self.box.life)

    def note(self, text: str) -> None:
        self.box.note(text)

    def serving(self) -> Seat:
        """Unreachable without an answer, and while the configuration has no such machine."""
        if (seat := self.box.serving().seats.get(self.nim)) is None:
            raise Unreachable
        return seat

    async def ask(self, work: Coroutine[Any, Any, T], seat: Seat) -> T:
        return await seat.life.ask(work)

    def pump(self) -> None:
        """After something was done to the machine by hand."""
        seat = self.box.life.seats.get(self.nim) if self.box.life is not None else None
        port = seat.ports[-1] if seat is not None and seat.ports else None
        if port is not None and port._usable:
            port.pump()
        else:
            self.session.poll(self.box.loop.now)

    def blame(self, cause: str) -> None:
        """From now on an operator may be asked, until the daemon has had time to look."""
        self.cause = cause
        self._calm_since = self.box.loop.now

    async def watch_for_calm(self) -> None:
        """Once nothing has been wrong for a while, the daemon knows all that happened at the machine: no operator is to be asked later."""
        while True:
            await asyncio.sleep(0.5)
            if not self._is_calm():
                self._calm_since = self.box.loop.now
            elif self.box.loop.now - self._calm_since > CALM:
                self.cause = ""

    def _is_calm(self) -> bool:
        life = self.box.life
        if life is None or not life.accepts or not self.box.disk.in_order or self.nim not in life.seats:
            return False
        worker = life.seats[self.nim].worker
        self.has_met = self.has_met or worker.attempts.met_machine
        return worker.connected and not worker.waiting and not worker.attention
