"""A configured machine, read as `daemon.machines.inspect_port` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daemon.machines.port_reading import PortReading, Silence
    from daemon.settings import Machine


async def read_machine(machine: Machine) -> PortReading | Silence:
    from bridge.link import Timers
    from daemon.machines.inspect_port import PATIENCE_SECONDS, look

    timers = Timers(tries=machine.tries, first_byte=machine.reply_timeout)
    patience = PATIENCE_SECONDS + 4 * machine.tries * machine.reply_timeout
    return await look(machine.port, machine.baudrate, timers, patience)
