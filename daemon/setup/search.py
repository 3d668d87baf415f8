"""Searches every serial port of the box for a fiscal machine: all in parallel, with a time limit, only reading."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bridge.ports import find_ports
from common.language import Text
from daemon.core.machine.state import Silence, short_nim
from daemon.machines.inspect_port import inspect
from daemon.setup.request import PortResult

CONSOLE: Final = Text("the system's own console; it is left alone")


@dataclass(frozen=True)
class PortCandidate:
    """A tty or a network address; `console`: the system itself uses it."""

    place: str
    console: bool = False


def candidates(named: Sequence[str]) -> list[PortCandidate]:
    """The named ports, or else all."""
    if named:
        return [PortCandidate(place) for place in named]
    return [PortCandidate(str(port.stable), console=port.console) for port in find_ports()]


async def search(ports: Iterable[PortCandidate], baudrate: int) -> list[PortResult]:
    return await asyncio.gather(*(_probe(port, baudrate) for port in ports))


def machines(results: Iterable[PortResult]) -> list[PortResult]:
    """The ports with a machine, each machine once."""
    found: dict[str, PortResult] = {}
    for each in results:
        if each.nim:
            found.setdefault(short_nim(each.nim), each)
    return list(found.values())


async def _probe(candidate: PortCandidate, baudrate: int) -> PortResult:
    if candidate.console:
        return PortResult(candidate.place, Silence(CONSOLE, "busy"))
    return PortResult(candidate.place, await inspect(candidate.place, baudrate))
