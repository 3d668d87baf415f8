"""A look at a machine by whoever happens to be there: only reads, and only where no daemon holds the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daemon.core.certification import MachineState, ServerLink
from daemon.core.errors import MachineError
from daemon.settings import Machine

if TYPE_CHECKING:
    from bridge.link import Timers

TAXPAYER_LINES = range(6)


@dataclass(frozen=True)
class Reading:
    """C1h, C2h and the six lines of 2Bh, at one moment."""

    state: MachineState
    link: ServerLink
    taxpayer: tuple[str, ...]


@dataclass(frozen=True)
class Silence:
    """Why nothing was read; `busy` when another program, most likely the daemon, holds the line."""

    reason: str
    busy: bool


async def read_machine(machine: Machine) -> Reading | Silence:
    from bridge.errors import BridgeError, PortUnavailable
    from bridge.link import Link
    from bridge.machine import Machine as Wire
    from bridge.machine import handshake
    from bridge.port import open_port
    from daemon.machines.adapter import ConnectedMachine, machine_state

    try:
        port = open_port(str(machine.port), machine.baudrate)
    except PortUnavailable as error:
        return Silence(str(error), busy=error.why == "busy")
    link = Link(port, timers=_timers(machine))
    try:
        state = machine_state(await handshake(link))
        asked = ConnectedMachine(Wire(link))
        server = await asked.server_link()
        return Reading(state, server, tuple([await asked.taxpayer(line) for line in TAXPAYER_LINES]))
    except (BridgeError, MachineError) as error:
        return Silence(str(error), busy=False)
    finally:
        link.close()


def _timers(machine: Machine) -> Timers:
    from bridge.link import Timers

    return Timers(tries=machine.tries, first_byte=machine.reply_timeout)
