"""The port in memory: what the sandbox and the driver's tests stand on."""

import asyncio

from support.simulator.simulator_till import FakeClock, events

from bridge.frame import MachineReply, Request, encode
from simulator.line.faults import FaultPlan
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions

DEADLINE = 60.0


class Client:
    def __init__(self, session: LineSession, **how: object) -> None:
        self.port = MemoryPort(session, **how)
        self.got: asyncio.Queue[bytes] = asyncio.Queue()
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self.port.attach(self.got.put_nowait, self.lost.set_result)

    async def ask(self, seq: int, command: int, text: str = "") -> MachineReply:
        self.port.write(encode(Request(seq, command, text.encode())))
        (reply,) = events(await asyncio.wait_for(self.got.get(), DEADLINE))
        return reply


def new_session(spec: str = "", **how: object) -> LineSession:
    return LineSession(SimulatedMachine(SimulatorOptions(), FakeClock()), plan=FaultPlan(spec), **how)


async def test_nothing_comes_after_close():
    """Neither what was on its way nor what was still being worked on."""
    client = Client(new_session(think=0.01))
    client.port.write(encode(Request(0x20, 0xC1)))
    client.port.close()
    client.port.write(encode(Request(0x21, 0xC1)))
    await asyncio.sleep(0.03)
    assert client.got.empty()
    assert not client.lost.done()


async def test_a_command_leaves_the_loop_to_others_first():
    """For as long as `rest` says, and then it is answered; not when the port was closed meanwhile."""
    rests = [0.02, 0.0, 0.01]
    client = Client(new_session(), rest=rests.pop)
    client.port.write(encode(Request(0x20, 0xC1)))
    await asyncio.sleep(0)
    assert client.got.empty()
    (reply,) = events(await asyncio.wait_for(client.got.get(), DEADLINE))
    assert reply.seq == 0x20
    client.port.write(encode(Request(0x21, 0xC1)))
    await asyncio.sleep(0)
    assert not client.got.empty()
    client.got.get_nowait()
    client.port.write(encode(Request(0x22, 0xC1)))
    client.port.close()
    await asyncio.sleep(0.05)
    assert client.got.empty()
    assert rests == []
