"""Plans of faults: how they are written, when they strike, and what each of them does on the line."""

import pytest
from support.simulator.simulator_till import FakeClock, Wire, certification, is_nak, is_syn

from bridge.frame import MachineReply, Nak, encode
from simulator.line.faults import FaultPlan
from simulator.line.session import LineSession, Unplugged
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions


def wire_with(spec: str, seed: int = 1) -> Wire:
    return Wire(LineSession(SimulatedMachine(SimulatorOptions(), FakeClock()), plan=FaultPlan(spec, seed)))


def at_38h(spec: str) -> Wire:
    """All but 38h is done; the fault is written for that command."""
    wire = wire_with(spec)
    for seq, (command, text) in enumerate(certification("F-1")[:-1], 0x20):
        wire.text(seq, command, text)
    return wire


def close(wire: Wire, seq: int = 0x25) -> list[object]:
    return wire.send(seq, 0x38, "15000.00")


def tc_of(wire: Wire) -> int:
    return wire.session.machine.fiscal.tc


# --- how a plan is written and when it strikes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "strikes"),
    [
        ("drop-reply", [1, 1, 1, 1, 1, 1]),
        ("drop-reply@C1h", [1, 0, 1, 0, 1, 0]),
        ("drop-reply@c1", [1, 0, 1, 0, 1, 0]),
        ("drop-reply#2", [0, 1, 0, 0, 0, 0]),
        ("drop-reply@C1h#2", [0, 0, 1, 0, 0, 0]),
        ("drop-reply@C1h#2+", [0, 0, 1, 0, 1, 0]),
        ("drop-reply=0%", [0, 0, 0, 0, 0, 0]),
        ("drop-reply#2=100%", [0, 1, 0, 0, 0, 0]),
        ("", [0, 0, 0, 0, 0, 0]),
    ],
)
def test_when_a_rule_strikes(spec, strikes):
    """By command, by number, from a number on, by rate; here over C1h and 38h in turn."""
    plan = FaultPlan(spec)
    assert [len(plan.strike(command)) for command in (0xC1, 0x38) * 3] == strikes


@pytest.mark.parametrize(
    "spec", ["explode", "drop-reply#0x", "late:x", "late:-1", "drop-reply:5", "drop-reply@38hh", "spoil=3", "late:nan"]
)
def test_what_cannot_be_read_is_refused(spec):
    """With the words that were wrong, and nothing of the plan added."""
    plan = FaultPlan()
    with pytest.raises(ValueError):  # noqa: PT011  # the text is another one for each
        plan.add(f"nak,{spec}")
    assert not plan.strike(0x31)


# --- what each does ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "came", "executed", "again"),
    [
        ("drop-request@38h#1", [], 0, b"1,1,FV"),
        ("drop-reply@38h#1", [], 1, b"1,1,FV"),
        ("nak@38h#1", [Nak()], 0, b"1,1,FV"),
        ("slow:4@38h#1", [], 0, None),
        ("refuse:Not today@38h#1", [b"E:Not today"], 0, b"E:Not today"),
        ("lose-invoice@38h#1", [b"E:No invoice open"], 0, b"E:No invoice open"),
    ],
)
def test_what_comes_of_38h(spec, came, executed, again):
    """What is answered, whether it was executed, and what the same frame brings again: the answer that was lost, and no second execution."""
    wire = at_38h(spec)
    assert [event.data if isinstance(event, MachineReply) else event for event in close(wire)] == came
    assert tc_of(wire) == executed
    found = close(wire) if again else wire.look(after=4.0)  # a slow machine is not asked again
    assert len(found) == 1
    assert found[0].data.startswith(again or b"1,1,FV")
    assert tc_of(wire) == (not (again or b"").startswith(b"E:"))


def test_nonsense():
    """A good frame whose data is rubbish, though the command was executed."""
    wire = at_38h("nonsense@38h#1")
    (reply,) = close(wire)
    assert not reply.data.startswith(b"1,1")
    assert tc_of(wire) == 1


@pytest.mark.parametrize(("spec", "syns"), [("syn-storm:0.5#1", 24), ("work:0.5#1", 4)])
def test_syns_come_before_the_answer(spec, syns):
    """Every 20 ms in a storm, every 100 ms from a machine that is busy."""
    wire = wire_with(spec)
    wire.send(0x20, 0xC1)
    assert [is_syn(event) for event in wire.look(after=0.6)] == [True] * syns + [False]


@pytest.mark.parametrize("seed", range(40))
def test_damage_at_random(seed):
    """A flipped bit of a request: at most NAK; of a reply: never a good frame. Noise: random bytes, then the reply whole."""
    wire = wire_with("flip-request#1", seed)
    assert all(is_nak(event) for event in wire.send(0x20, 0xC1))
    assert isinstance(wire.send(0x20, 0xC1)[-1], MachineReply)
    wire = wire_with("flip-reply#1", seed)
    assert not any(isinstance(event, MachineReply) for event in wire.send(0x20, 0xC1))
    assert wire.session.plan.struck == {"flip-reply": 1}
    wire = wire_with("noise#1", seed)
    wire.send(0x20, 0xC1)
    data = b"".join(output.data for output in wire.outputs)
    assert len(data) > len(encode(MachineReply(0x20, 0xC1)))
    assert data.endswith(b"\x03")


def test_split():
    """Two pieces with a gap."""
    wire = wire_with("split:0.3#1")
    assert wire.send(0x20, 0xC1) == []
    wire.look(after=0.29)
    assert len(wire.outputs) == 1
    wire.look(after=0.02)
    assert len(wire.outputs) == 2
    assert b"".join(output.data for output in wire.outputs).startswith(b"\x01")


def test_late():
    """The line holds it back: executed at once, and a retransmission is answered before the late one comes."""
    wire = at_38h("late:4@38h#1")
    assert close(wire) == []
    assert tc_of(wire) == 1
    assert len(close(wire)) == 1
    assert len(wire.look(after=4.0)) == 1


def test_stale_replies_come_first():
    """A good frame with another SEQ, or another command, and an older answer in it; then the right one. Or the same reply twice."""
    for spec in ("stale-seq@38h", "stale-cmd@38h"):
        wire = at_38h(spec)
        stale, right = close(wire)
        assert (stale.seq, stale.cmd) != (0x25, 0x38)
        assert stale.seq == 0x25 or stale.cmd == 0x38
        assert stale.data == b"R0"
        assert (right.seq, right.cmd) == (0x25, 0x38)
    first, second = wire_with("double#1").send(0x20, 0xC1)
    assert first == second


def test_silent():
    """From that request on nothing for a while."""
    wire = at_38h("silent:3@38h#1")
    assert close(wire) == []
    wire.look(after=2.9)
    assert wire.send(0x26, 0xC1) == []
    wire.look(after=0.1)
    assert wire.text(0x27, 0xC1).split(",")[3] == "0"


def test_somebody_else_was_there():
    """Between two of our frames."""
    fields = wire_with("foreign:777@C1h#1").text(0x20, 0xC1).split(",")
    assert (fields[3], fields[10]) == ("1", "777")


@pytest.mark.parametrize(
    ("kind", "executed", "answered"), [("cut-before", 0, 0), ("cut-executed", 1, 0), ("cut-after", 1, 1)]
)
def test_power_cut_around_the_commit(kind, executed, answered):
    """Before it, after it but before the answer, after the answer; the last SEQ is forgotten each time."""
    wire = at_38h(f"{kind}:1@38h#1")
    assert len(close(wire)) == answered
    assert tc_of(wire) == executed
    assert wire.send(0x26, 0xC1) == []
    wire.look(after=1.0)
    assert wire.text(0x27, 0xC1).split(",")[3] == str(executed)
    assert wire.text(0x28, 0x38, "C") == "E:No invoice open"


@pytest.mark.parametrize(
    ("kind", "executed", "answered"), [("unplug-before", 0, 0), ("unplug", 1, 0), ("unplug-after", 1, 1)]
)
def test_unplug_around_the_commit(kind, executed, answered):
    """The same three moments for the cable: the machine goes on living, with its invoice and its last SEQ."""
    wire = at_38h(f"{kind}:1@38h#1")
    assert len(close(wire)) == answered
    assert isinstance(wire.outputs[-1], Unplugged)
    assert tc_of(wire) == executed
    wire.look(after=1.0)
    assert close(wire)[0].data.startswith(b"1,1,FV")
    assert tc_of(wire) == 1
