"""Inspects a machine outside the daemon's line: only reads, and only on a free port."""

import asyncio
from pathlib import Path

from bridge.errors import BridgeError, PortUnavailable, PortVanished
from bridge.link import Link, Timers
from bridge.machine import LinkedMachine, handshake
from bridge.port_network import is_network, open_line
from bridge.ports import find_holders
from common.language import sentence
from common.language.reasons import NO_END, PORT_HANGS_UP, PORT_USED_BY
from common.wire.instants import now_millis
from daemon.core.errors import MachineError
from daemon.core.machine.state import PortReading, Silence
from daemon.machines.adapter import ConnectedMachine, machine_state

PATIENCE_SECONDS = 6.0
"""Limit of the whole inspection: three tries of a few commands on a slow line; a machine needs 0.1 s."""


async def inspect(
    place: str | Path, baudrate: int = 115_200, timers: Timers | None = None, patience: float = PATIENCE_SECONDS
) -> PortReading | Silence:
    """First searches programs that have the port open: its lock is only advisory for some of them."""
    port = str(place)
    if not is_network(port) and (others := find_holders(Path(port))):
        return Silence(PORT_USED_BY(port=port, names=", ".join(map(str, others))), "busy")
    try:
        link = Link(await open_line(port, baudrate), timers=timers)
    except PortUnavailable as error:
        return Silence(sentence(error), error.why)
    try:
        async with asyncio.timeout(patience):
            return await _read(link)
    except (BridgeError, MachineError, TimeoutError) as error:
        if is_network(port) and isinstance(error.__cause__ or error, PortVanished):
            return Silence(PORT_HANGS_UP(port=port), "busy")
        answers = link.counters.bytes_received > 0
        return Silence(sentence(error) or NO_END, "stranger" if answers else "silent")
    finally:
        link.close()


async def _read(link: Link) -> PortReading:
    state = machine_state(await handshake(link))
    read_at = now_millis()
    machine = ConnectedMachine(LinkedMachine(link))
    return PortReading(state, await machine.server_link_or_error(), await machine.taxpayer(), read_at)
