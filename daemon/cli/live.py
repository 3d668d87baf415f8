"""A configured machine, read as `daemon.machines.look` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.settings import Machine

if TYPE_CHECKING:
    from daemon.machines.reading import Reading, Silence


async def read_machine(machine: Machine) -> Reading | Silence:
    from bridge.link import Timers
    from daemon.machines.look import PATIENCE_SECONDS, look

    timers = Timers(tries=machine.tries, first_byte=machine.reply_timeout)
    patience = PATIENCE_SECONDS + 4 * machine.tries * machine.reply_timeout
    return await look(machine.port, machine.baudrate, timers, patience)
