"""The fiscal machine: executes one command at a time by the table; tests and faults change it by hand."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from simulator.machine import commands
from simulator.machine.command_data import GENERAL_ERROR, MachineRefusal, status
from simulator.machine.fiscal_memory import RememberedInvoice, Snapshot
from simulator.machine.options import Clock, MachineClock, SimulatorOptions
from simulator.machine.working_state import Stage, WorkingState


class MachineAnswer(NamedTuple):
    data: bytes
    status: bytes


class Delay(NamedTuple):
    """Seconds before a command is executed; `silent`: without SYN."""

    seconds: float
    silent: bool


_NO_DELAY = Delay(0.0, silent=False)


class SimulatedMachine(WorkingState):
    def __init__(self, options: SimulatorOptions | None = None, clock: Clock | None = None) -> None:
        super().__init__(options or SimulatorOptions())
        self.clock = clock or MachineClock()

    def execute(self, command: int, data: bytes) -> MachineAnswer:
        now = self._tick()
        if self.options.code_page != "utf-8":
            data = data.decode(self.options.code_page, "replace").encode()
        byte0 = byte1 = 0
        try:
            answer = commands.run(self, command, data, now)
        except MachineRefusal as refusal:
            answer, byte0, byte1 = f"E:{refusal.text}", refusal.byte0, refusal.byte1
        return MachineAnswer(
            answer.encode(self.options.code_page, "replace"), status(byte0, byte1, self.stage is not Stage.IDLE)
        )

    def refuse(self, text: str) -> MachineAnswer:
        """A refusal with this text, whatever the command; nothing is executed."""
        is_open = self.stage is not Stage.IDLE
        return MachineAnswer(f"E:{text}".encode(self.options.code_page, "replace"), status(GENERAL_ERROR, 0, is_open))

    def delay(self, command: int, data: bytes) -> Delay:
        """Time of the tax server's check of a credit note, unless the machine answers `P:` meanwhile."""
        options = self.options
        if command != commands.CLOSE or data == commands.CANCEL_DATA or options.credit_style == "pending":
            return _NO_DELAY
        if self.stage is not Stage.PAID or not self.opened.opening.is_credit:
            return _NO_DELAY
        return Delay(options.credit_check, silent=options.credit_style == "silent")

    def snapshot(self) -> Snapshot:
        return self.fiscal.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Sets counters and last invoice from `snapshot`; an open invoice is lost."""
        self.fiscal.restore(snapshot)
        self.lose_invoice()

    def change(self, **changes: Any) -> None:
        """Changes options from now on."""
        self.options = self.fiscal.options = msgspec.structs.replace(self.options, **changes)

    def reboot(self, nim: str = "") -> None:
        """Only the fiscal memory survives; with `nim`, another machine comes up with the same counters."""
        self.lose_invoice()
        if nim:
            self.change(nim=nim)

    def leave_open(self) -> None:
        """Another program begins an invoice and goes away."""
        self.execute(commands.OPEN, f"1,AUTRE,{self.options.ifu},FV,TTC,1,LEFT-OPEN".encode())

    def certify_foreign(self, *, number: str = "", invoice_type: str = "FV", total: int = 1000) -> RememberedInvoice:
        """Another program uses the machine: an open invoice is lost, counters and last invoice change."""
        now = self._tick()
        self.lose_invoice()
        last = self.fiscal.certify(number or f"FOREIGN-{self.fiscal.tc + 1}", invoice_type, total, now)
        self.log(last, None)
        return last

    def _tick(self) -> datetime:
        now = self.clock() + timedelta(seconds=self.options.clock_offset)
        self.tick(now)
        return now
