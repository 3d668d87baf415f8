"""The machine's end of the line: repetition, NAK, SYN, pauses, power and plug; and the port in memory of sandbox and driver's tests."""

import asyncio

from support.simulator.simulator_till import FakeClock, Wire, events, is_syn

from bridge.frame import MachineReply, Request, encode
from simulator.line.faults import FaultPlan
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions


def test_an_equal_seq_is_repeated_and_not_executed():
    """Protocol 1, the base of exactly-once: the SEQ alone counts, and only the last one is remembered."""
    wire = Wire()
    wire.certify("F-1")
    (first,) = wire.send(0x25, 0x38, "15000.00")
    (again,) = wire.send(0x25, 0x38, "15000.00")
    assert first == again
    assert first.data.startswith(b"1,1,FV,")
    assert wire.session.machine.fiscal.tc == 1
    (old,) = wire.send(0x25, 0xC2)
    assert old == first
    before = wire.text(0x20, 0xC1)
    wire.session.machine.certify_foreign()
    wire.text(0x21, 0xC2)
    assert wire.text(0x20, 0xC1) != before


def test_think_time_brings_syn_only_above_100_ms():
    """100 ms: none. 250 ms: at 100 and at 200."""
    wire = Wire(LineSession(SimulatedMachine(SimulatorOptions()), think=0.1))
    assert wire.send(0x20, 0xC1) == []
    (reply,) = wire.look(after=0.1)
    assert isinstance(reply, MachineReply)
    wire.session.think = 0.25
    wire.send(0x21, 0xC1)
    assert [is_syn(event) for event in wire.look(after=0.3)] == [True, True, False]
    assert wire.session.syns == 2


def test_commands_are_executed_one_after_the_other():
    """Two frames at once with a think time: the second begins when the first is done."""
    wire = Wire(LineSession(SimulatedMachine(SimulatorOptions()), think=0.05))
    start = wire.now
    wire.put(encode(Request(0x20, 0xC1)) + encode(Request(0x21, 0xC2)))
    wire.look(after=0.2)
    assert [round(output.at - start, 6) for output in wire.outputs] == [0.05, 0.1]


def test_seq_is_taken_up_to_ffh():
    """A driver that works on real machines counts that far: each is answered, with its own SEQ, and none with NAK."""
    wire = Wire()
    for seq in range(0x20, 0x100):
        (reply,) = wire.send(seq, 0xC1)
        assert (type(reply), reply.seq) == (MachineReply, seq)


def test_a_reply_may_come_in_two_halves_or_behind_an_echo():
    """400 ms apart; together they are the reply. A line may send back what it is sent: first."""
    wire = Wire(habitual(halves=0.4))
    assert [type(event) for event in wire.send(0x20, 0xC1)] != [MachineReply]
    first = b"".join(output.data for output in wire.outputs)
    wire.look(0.39)
    wire.look(0.02)
    whole = b"".join(output.data for output in wire.outputs)
    assert (wire.outputs[-1].data, whole[: len(first)]) == (whole[len(first) :], first)
    assert [type(event) for event in events(whole)] == [MachineReply]
    assert [type(event) for event in Wire(habitual(echo=True)).send(0x20, 0xC1)] == [Request, MachineReply]


def test_a_machine_may_doze():
    """The first answer after two idle seconds is slow, and silent; the next is not."""
    wire = Wire(habitual(wake=0.7))
    assert wire.send(0x20, 0xC1) == []
    (_,) = wire.look(0.7)
    (_,) = wire.send(0x21, 0xC1)
    wire.now += 2.5
    assert wire.send(0x22, 0xC1) == []


def habitual(**habits) -> LineSession:
    return LineSession(SimulatedMachine(SimulatorOptions(**habits), FakeClock()))


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
