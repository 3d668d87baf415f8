"""One line kept alive: on a machine in memory, with a listener that only notes its calls."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from bridge.errors import PortUnavailable
from bridge.link import Port, Timers
from daemon.core.errors import StorageFull
from daemon.core.machine.state import MachineState
from daemon.machines.adapter import ConnectedMachine
from daemon.machines.line import LineSettings, run_line
from simulator.line.memory_port import MemoryPort, PortLost
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers

NIM, OTHER = "EL02000015-1", "EL02000044-1"
TIMERS = Timers(first_byte=0.05, first_byte_close=0.05, quiet=0.01)


@dataclass
class Notes:
    """`trouble` is raised once by the next `connected`; every heartbeat is a look at the machine."""

    reasons: list[str] = field(default_factory=list)
    machine: ConnectedMachine | None = None
    trouble: Exception | None = None
    beats: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def connected(self, machine: ConnectedMachine, state: MachineState) -> None:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble
        self.machine = machine
        self.note(f"up {state.nim}")

    async def heartbeat(self) -> None:
        self.beats += 1
        self.news.set()
        await self.machine.state()

    def lost(self, reason: str) -> None:
        self.machine = None
        self.note(f"down {reason}")

    def note(self, text: str) -> None:
        if not self.reasons or self.reasons[-1] != text:
            self.reasons.append(text)
        self.news.set()

    async def until(self, fact: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not fact():
                self.news.clear()
                await self.news.wait()


class ClosedPort(MemoryPort):
    is_closed = False

    def close(self) -> None:
        super().close()
        self.is_closed = True


@dataclass
class Cable:
    """Opens ports to whatever machine stands at its end; none at all while `session` is None."""

    session: LineSession | None
    ports: list[ClosedPort] = field(default_factory=list)
    opened: int = 0

    def open(self) -> Port:
        self.opened += 1
        if self.session is None:
            raise PortUnavailable("/dev/mcf", "missing", "there is no such device")
        try:
            self.ports.append(ClosedPort(self.session))
        except PortLost as error:
            raise PortUnavailable("/dev/mcf", "missing", str(error)) from error
        return self.port

    @property
    def port(self) -> MemoryPort:
        return self.ports[-1]

    def pull(self) -> None:
        assert self.session
        self.session.unplug(asyncio.get_running_loop().time(), 3600)
        self.port.pump()


def standing(nim: str = NIM) -> LineSession:
    return LineSession(SimulatedMachine(SimulatorOptions(nim=nim, ifu="00084440Y")))


@asynccontextmanager
async def running_line(cable: Cable, notes: Notes, *, heartbeat: float = 0.02) -> AsyncIterator[None]:
    settings = LineSettings(NIM, cable.open, TIMERS, retry=0.01, heartbeat=heartbeat)
    task = asyncio.get_running_loop().create_task(run_line(settings, notes))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("first", [None, standing])
async def test_the_wrong_machine_is_refused_with_both_nims(first: Callable[[], LineSession] | None) -> None:
    """At the start, and after the right one was there; it is never handed over, and the right one is taken when it comes."""
    cable, notes = Cable(first() if first else standing(OTHER)), Notes()
    async with running_line(cable, notes):
        if first:
            await notes.until(lambda: notes.machine)
            cable.pull()
            cable.session = standing(OTHER)
        await notes.until(lambda: notes.reasons and OTHER in notes.reasons[-1])
        assert (
            notes.reasons[-1] == f"down the machine on this line is {OTHER}, not {NIM}: check cable and configuration"
        )
        assert notes.machine is None
        cable.session = standing()
        await notes.until(lambda: notes.machine)
    assert f"up {OTHER}" not in notes.reasons


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (StorageFull("no room"), "the ledger cannot be read or written: no room"),
        (RuntimeError("a mistake of ours"), "mcfd failed here (RuntimeError); its log has the reason"),
    ],
)
async def test_what_hinders_the_keeper_is_tried_again(trouble: Exception, expected: str) -> None:
    """A full disk at the connection, or a mistake of ours: the machine is not out of service until a restart, and the reason is shown. The next try
    finds the port closed: a serial device lets nobody else in while it is open."""
    cable, notes = Cable(standing()), Notes(trouble=trouble)
    with capture_logs() as lines:
        async with running_line(cable, notes):
            await notes.until(lambda: notes.machine)
            assert [port.is_closed for port in cable.ports] == [True, False]
    assert notes.reasons == [f"down {expected}", f"up {NIM}"]
    failed = [line for line in lines if line["event"] == "line.failed"]
    assert len(failed) == (0 if isinstance(trouble, StorageFull) else 1)


async def test_trouble_is_logged_when_it_begins_and_when_it_ends() -> None:
    """Twenty tries, one line; and the line that says it is over says what it was."""
    cable, notes = Cable(None), Notes()
    with capture_logs() as lines:
        async with running_line(cable, notes):
            await notes.until(lambda: notes.reasons)
            async with asyncio.timeout(30):
                while cable.opened < 20:  # noqa: ASYNC110  the cable has no bell
                    await asyncio.sleep(0.01)
            cable.session = standing()
            await notes.until(lambda: notes.machine)
            await notes.until(lambda: notes.beats)
    heads = ("line.down", "line.up")
    rows = [(line["event"], line.get("reason") or line.get("after")) for line in lines if line["event"] in heads]
    reason = "/dev/mcf: there is no such device"
    assert rows == [("line.down", reason), ("line.up", reason)]
