"""Every serial port of the box is asked whether a fiscal machine is behind it: all at once, each in bounded time, only reading."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.ports import FoundPort, find_ports
from daemon.core.receipt import short_nim
from daemon.machines.look import look
from daemon.machines.reading import Reading, Silence
from daemon.setup import wording


@dataclass(frozen=True)
class Asked:
    """One port and what came of asking it."""

    port: Path
    found: Reading | Silence

    @property
    def nim(self) -> str:
        return self.found.state.nim if isinstance(self.found, Reading) else ""


def candidates(named: Sequence[Path]) -> list[FoundPort]:
    """The ports to ask: those that were named, or else all there are."""
    return [FoundPort(path, path) for path in named] if named else find_ports()


async def search(ports: Iterable[FoundPort], baudrate: int) -> list[Asked]:
    return await asyncio.gather(*(_ask(port, baudrate) for port in ports))


def machines(asked: Iterable[Asked]) -> list[Asked]:
    """Those that answered, each machine once, however many ports it has."""
    found: dict[str, Asked] = {}
    for each in asked:
        if each.nim:
            found.setdefault(short_nim(each.nim), each)
    return list(found.values())


async def _ask(port: FoundPort, baudrate: int) -> Asked:
    if port.console:
        return Asked(port.stable, Silence(str(wording.IS_CONSOLE), "busy"))
    return Asked(port.stable, await look(port.stable, baudrate))
