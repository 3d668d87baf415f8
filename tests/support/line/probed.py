"""A probe of simulated machines in memory: many at once, since most of a probe is waiting for a clock to tick."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from daemon.probe import connect
from daemon.probe.run import ProbeResult, probe
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import MachineClock, SimulatorOptions


class Probed:
    """Machines behind addresses of their own, in the place of `open_line`."""

    def __init__(self, monkeypatch) -> None:
        self.sessions: dict[str, LineSession] = {}
        monkeypatch.setattr(connect, "open_line", self._open)

    def add(self, options: Mapping[str, Any]) -> str:
        place = f"tcp://machine-{len(self.sessions)}:1"
        self.sessions[place] = LineSession(SimulatedMachine(SimulatorOptions(**options), MachineClock()))
        return place

    async def probe_each(self, options: Mapping[str, Mapping[str, Any]]) -> dict[str, ProbeResult]:
        """Each has certified an invoice, so that there is a last one to read."""
        places = [self.add(each) for each in options.values()]
        for place in places:
            self.sessions[place].machine.certify_foreign(total=15_000)
        return dict(zip(options, await self.probe_places(places), strict=True))

    async def probe_places(self, places: Sequence[str]) -> list[ProbeResult]:
        return await asyncio.gather(*(probe(place) for place in places))

    async def _open(self, place: str, _: int) -> MemoryPort:
        return MemoryPort(self.sessions[place])


def contradicted(result: ProbeResult) -> set[str]:
    return {finding.check for finding in result.findings if finding.verdict == "contradicted"}
