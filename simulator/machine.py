"""The fiscal machine: one command at a time through the table, and what tests and faults do to it by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from simulator import commands
from simulator.fiscal import FiscalMemory, LastInvoice, Snapshot
from simulator.options import Clock, MachineClock, Options
from simulator.refusal import Refusal, status
from simulator.register import Mode, Register, Stage


class Answer(NamedTuple):
    data: bytes
    status: bytes


class Delay(NamedTuple):
    """Seconds before a command is executed; `silent`: without SYN."""

    seconds: float
    silent: bool


_NO_DELAY = Delay(0.0, silent=False)


class Machine:
    def __init__(self, options: Options | None = None, clock: Clock | None = None) -> None:
        self.clock = clock or MachineClock()
        self._register = Register(options or Options())

    @property
    def options(self) -> Options:
        return self._register.options

    @property
    def fiscal(self) -> FiscalMemory:
        return self._register.fiscal

    @property
    def stage(self) -> Stage:
        return self._register.stage

    @property
    def mode(self) -> Mode:
        return self._register.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._register.mode = mode

    def execute(self, command: int, data: bytes) -> Answer:
        now = self._tick()
        register = self._register
        byte0 = byte1 = 0
        try:
            answer = commands.run(register, command, data, now)
        except Refusal as refusal:
            answer, byte0, byte1 = f"E:{refusal.text}", refusal.byte0, refusal.byte1
        return Answer(answer.encode(), status(byte0, byte1, register.stage is not Stage.IDLE))

    def delay(self, command: int, data: bytes) -> Delay:
        """What the tax server's check of a credit note adds, unless the machine answers `P:` meanwhile."""
        options, register = self.options, self._register
        if command != commands.CLOSE or data == commands.CANCEL_DATA or options.credit_style == "pending":
            return _NO_DELAY
        if register.stage is not Stage.PAID or not register.opened.opening.is_credit:
            return _NO_DELAY
        return Delay(options.credit_check, silent=options.credit_style == "silent")

    def snapshot(self) -> Snapshot:
        return self.fiscal.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Counters and last invoice as of `snapshot`; an open invoice is gone."""
        self.fiscal.restore(snapshot)
        self._register.forget()

    def change(self, **changes: Any) -> None:
        """Other options from now on."""
        self._register.options = self.fiscal.options = msgspec.structs.replace(self.options, **changes)

    def reboot(self, nim: str = "") -> None:
        """Only the fiscal memory stays; with `nim`, another machine stands there with the same counters."""
        self._register.forget()
        if nim:
            self.change(nim=nim)

    def lose_invoice(self) -> None:
        self._register.forget()

    def certify_foreign(self, *, number: str = "", invoice_type: str = "FV", total: int = 1000) -> LastInvoice:
        """Somebody else uses the machine: an open invoice is gone, the counters move, the last invoice is theirs."""
        now = self._tick()
        self._register.forget()
        number = number or f"FOREIGN-{self.fiscal.tc + 1}"
        return self._register.certify_foreign(number, invoice_type, total, now)

    def _tick(self) -> datetime:
        now = self.clock()
        self._register.tick(now)
        return now
