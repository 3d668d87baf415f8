"""The machine's end of the line: repetition, NAK, SYN, pauses, power and plug."""

from __future__ import annotations

import pytest
from support.simulator.simulator_till import FakeClock, Wire, certification, events, is_nak, is_syn

from bridge.frame import MachineReply, Nak, Request, encode
from simulator.line.session import LineSession, Paused, Point, Sent, Unplugged
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions


def tc_of(wire: Wire) -> int:
    return wire.session.machine.fiscal.tc


def test_a_sale_over_frames():
    """The six frames of one invoice, each answered at once with its own SEQ and CMD."""
    wire = Wire()
    assert wire.certify("F-1").startswith("1,1,FV,")
    assert (wire.session.frames_in, wire.session.frames_out) == (6, 6)


def test_every_byte_of_the_line_is_counted():
    """Both directions, as the bench needs them to know how long the line was busy."""
    wire = Wire()
    request = encode(Request(0x20, 0xC1))
    (reply,) = wire.put(request)
    assert (wire.session.bytes_in, wire.session.bytes_out) == (len(request), len(encode(reply)))


def test_an_equal_seq_is_repeated_and_not_executed():
    """Protocol 1: the base of exactly-once. The same bytes again, and the counters stay."""
    wire = Wire()
    wire.certify("F-1")
    (first,) = wire.send(0x25, 0x38, "15000.00")
    (again,) = wire.send(0x25, 0x38, "15000.00")
    assert first == again
    assert first.data.startswith(b"1,1,FV,")
    assert tc_of(wire) == 1


def test_an_equal_seq_repeats_even_when_the_command_differs():
    """The machine looks at the SEQ alone: a till that reuses one gets the old answer, with the old CMD."""
    wire = Wire()
    wire.send(0x20, 0xC1)
    (reply,) = wire.send(0x20, 0xC2)
    assert reply.cmd == 0xC1


def test_only_the_last_seq_is_remembered():
    """Two SEQ in turn are new commands each time."""
    wire = Wire()
    first = wire.text(0x20, 0xC1)
    wire.session.machine.certify_foreign()
    wire.text(0x21, 0xC2)
    assert wire.text(0x20, 0xC1) != first


@pytest.mark.parametrize("position", range(1, 11))
def test_a_damaged_request_gets_nak_or_nothing(position):
    """A frame with one wrong byte is never executed; the same frame again, whole, is."""
    data = bytearray(encode(Request(0x20, 0xC1)))
    wire = Wire()
    data[-position] ^= 0x02
    assert all(is_nak(event) for event in wire.put(bytes(data)))
    assert wire.session.frames_in == 0
    found = wire.send(0x20, 0xC1)
    assert isinstance(found[-1], MachineReply)


def test_nak_on_a_bad_checksum():
    """And the next good frame is answered."""
    data = bytearray(encode(Request(0x20, 0xC1)))
    data[-2] ^= 0x01
    wire = Wire()
    assert wire.put(bytes(data)) == [Nak()]
    assert wire.session.naks == 1


def test_noise_is_not_answered():
    """Bytes that are no frame are passed over, and the frame among them is found."""
    wire = Wire()
    assert wire.put(b"AT\r\n\x16\x15") == []
    (reply,) = wire.put(b"zzz" + encode(Request(0x20, 0xC1)) + b"zzz")
    assert reply.cmd == 0xC1


def test_byte_by_byte():
    """A frame that trickles in is executed when its last byte is there."""
    wire = Wire()
    *early, last = encode(Request(0x20, 0xC1))
    assert all(wire.put(bytes((byte,))) == [] for byte in early)
    assert len(wire.put(bytes((last,)))) == 1


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


def test_outputs_carry_the_time_they_were_due():
    """A host that comes late still knows when; that is what keeps the pace."""
    wire = Wire(LineSession(SimulatedMachine(SimulatorOptions()), think=0.25))
    start = wire.now
    wire.send(0x20, 0xC1)
    wire.look(after=5.0)
    assert [round(output.at - start, 6) for output in wire.outputs] == [0.1, 0.2, 0.25]


def test_wake_at_says_when_to_come_back():
    """None when there is nothing to wait for; else the next SYN or the end of the work."""
    wire = Wire(LineSession(SimulatedMachine(SimulatorOptions()), think=0.15))
    assert wire.session.wake_at() is None
    wire.send(0x20, 0xC1)
    assert wire.session.wake_at() == pytest.approx(wire.now + 0.1)
    wire.look(after=0.1)
    assert wire.session.wake_at() == pytest.approx(wire.now + 0.05)
    wire.look(after=0.06)
    assert wire.session.wake_at() is None


def test_commands_are_executed_one_after_the_other():
    """Two frames at once with a think time: the second begins when the first is done."""
    wire = Wire(LineSession(SimulatedMachine(SimulatorOptions()), think=0.05))
    start = wire.now
    wire.put(encode(Request(0x20, 0xC1)) + encode(Request(0x21, 0xC2)))
    wire.look(after=0.2)
    assert [round(output.at - start, 6) for output in wire.outputs] == [0.05, 0.1]


def test_memory_is_kept_before_the_answer_leaves():
    """`keep` is called after the command and before its answer is to be had."""
    seen: list[int] = []
    machine = SimulatedMachine(SimulatorOptions(), FakeClock())
    session = LineSession(machine, keep=lambda: seen.append(machine.fiscal.tc))
    wire = Wire(session)
    for seq, (command, text) in enumerate(certification("F-1"), 0x20):
        session.receive(encode(Request(seq, command, text.encode())), wire.now)
        outputs = session.poll(wire.now)
        assert len(seen) == seq - 0x1F
        assert len(outputs) == 1
    assert seen[-1] == 1


@pytest.mark.parametrize(
    ("point", "executed", "answered"),
    [
        (Point(6, "before", "in"), 0, False),
        (Point(6, "after", "in"), 1, False),
        (Point(6, "before", "out"), 1, False),
        (Point(6, "after", "out"), 1, True),
    ],
)
def test_it_holds_at_a_pause_point(point, executed, answered):
    """Four points around each frame: nothing goes on until resume, and then everything does."""
    wire = Wire()
    for seq, (command, text) in enumerate(certification("F-1")[:-1], 0x20):
        wire.text(seq, command, text)
    wire.session.pause_at(point)
    found = wire.send(0x25, 0x38, "15000.00")
    assert (tc_of(wire), bool(found)) == (executed, answered)
    assert wire.session.stop_point == point
    assert Paused(wire.now, point) in wire.outputs
    wire.send(0x26, 0xC1)
    assert wire.look(after=60.0) == []
    wire.session.resume()
    assert len(wire.look()) == (1 if answered else 2)
    assert wire.session.stop_point is None


def test_a_pause_after_a_reply_comes_after_its_bytes():
    """So that a host announces it when the client has them."""
    wire = Wire()
    wire.session.pause_at(Point(1, "after", "out"))
    wire.send(0x20, 0xC1)
    assert [type(output) for output in wire.outputs] == [Sent, Paused]


def test_unplug_and_plug():
    """While the port is away nothing is heard; afterwards the machine is as it was, and still knows the last SEQ."""
    wire = Wire()
    (reply,) = wire.send(0x20, 0xC1)
    wire.session.unplug(wire.now, 2.0)
    assert wire.look() == []
    assert isinstance(wire.outputs[-1], Unplugged)
    assert not wire.session.is_plugged(wire.now)
    assert wire.send(0x21, 0xC1) == []
    wire.look(after=2.0)
    assert wire.session.is_plugged(wire.now)
    assert wire.send(0x20, 0xC1) == [reply]


def test_power_cut():
    """Deaf for a while; the last SEQ and the open invoice are forgotten, the counters are not."""
    wire = Wire()
    wire.certify("F-1")
    wire.text(0x30, 0xC0, "1,Awa,00084440Y,FV,TTC,1,F-2")
    wire.session.cut_power(wire.now, 1.0)
    assert wire.send(0x31, 0xC1) == []
    wire.look(after=1.0)
    assert wire.text(0x30, 0x38, "C") == "E:No invoice open"
    assert tc_of(wire) == 1


def test_power_cut_in_the_middle_of_a_command():
    """What was being worked on is not executed and not answered."""
    wire = Wire(LineSession(SimulatedMachine(SimulatorOptions()), think=1.0))
    wire.send(0x20, 0xC1)
    wire.session.cut_power(wire.now, 0.1)
    assert wire.look(after=5.0) == []


def test_no_time_of_darkness_or_silence_swallows_nothing():
    """What a host reports a moment early, because it makes up for its own lateness, is heard all the same."""
    wire = Wire()
    for quiet in (wire.session.cut_power, wire.session.silence):
        quiet(wire.now + 0.01, 0.0)
        assert len(wire.send(0x20, 0xC1)) == 1


def test_silence_ends():
    """Neither hears nor answers, then both."""
    wire = Wire()
    wire.session.silence(wire.now, 1.0)
    assert wire.send(0x20, 0xC1) == []
    wire.look(after=1.0)
    assert len(wire.send(0x20, 0xC1)) == 1


def test_seq_is_taken_up_to_ffh():
    """A driver that works on real machines counts that far: each is answered, with its own SEQ, and none with NAK."""
    wire = Wire()
    for seq in range(0x20, 0x100):
        (reply,) = wire.send(seq, 0xC1)
        assert (type(reply), reply.seq) == (MachineReply, seq)


def test_a_line_may_send_back_what_it_is_sent():
    """The echo comes first, the answer behind it."""
    wire = Wire(habitual(echo=True))
    request, reply = wire.send(0x20, 0xC1)
    assert (type(request), type(reply)) == (Request, MachineReply)


def test_a_reply_may_come_in_two_halves():
    """400 ms apart; together they are the reply."""
    wire = Wire(habitual(halves=0.4))
    assert [type(event) for event in wire.send(0x20, 0xC1)] != [MachineReply]
    first = b"".join(output.data for output in wire.outputs)
    wire.look(0.39)
    wire.look(0.02)
    whole = b"".join(output.data for output in wire.outputs)
    assert (wire.outputs[-1].data, whole[: len(first)]) == (whole[len(first) :], first)
    assert [type(event) for event in events(whole)] == [MachineReply]


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
