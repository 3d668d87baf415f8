"""Plans of faults: how they are written, when they strike, and what each of them does on the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.simulator.simulator_till import RICE, FakeClock, Wire, certification, is_nak, is_syn, opening

from bridge.frame import Garbage, MachineReply, Nak, Request, encode
from simulator.line.faults import KINDS, SPOILED_REPLY, SPOILED_REQUEST, FaultPlan
from simulator.line.session import LineSession, Unplugged
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions
from simulator.machine.working_state import Stage


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


def test_a_seed_gives_the_same_faults():
    """The same seed on the same traffic strikes the same frames; another seed others."""
    runs = [
        [dict(plan.strike(0x31)) for _ in range(300)]
        for plan in (FaultPlan("spoil=10%", 7), FaultPlan("spoil=10%", 7), FaultPlan("spoil=10%", 8))
    ]
    assert runs[0] == runs[1] != runs[2]


def test_spoil_draws_for_both_directions_at_its_rate():
    """3 % of requests and 3 % of replies, every short line fault among them."""
    plan = FaultPlan("spoil=3%", 5)
    for _ in range(20_000):
        plan.strike(0x31)
    requests = sum(plan.struck[kind] for kind in SPOILED_REQUEST)
    replies = sum(plan.struck[kind] for kind in SPOILED_REPLY)
    assert 500 < requests < 700
    assert 500 < replies < 700
    assert set(plan.struck) == {*SPOILED_REQUEST, *SPOILED_REPLY}


def test_rules_can_be_added_and_cleared():
    """Counted from when it was added."""
    plan = FaultPlan()
    plan.strike(0xC1)
    plan.add("nak#1")
    assert plan.strike(0xC1) == {"nak": ""}
    plan.clear()
    assert plan.strike(0xC1) == {}


# --- what each does ------------------------------------------------------------------------------------------


def test_drop_request():
    """Not executed, not answered; the repeated frame is both."""
    wire = at_38h("drop-request@38h#1")
    assert close(wire) == []
    assert tc_of(wire) == 0
    assert len(close(wire)) == 1
    assert tc_of(wire) == 1


def test_drop_reply():
    """Executed, not answered; the repeated frame brings the lost answer and certifies nothing."""
    wire = at_38h("drop-reply@38h#1")
    assert close(wire) == []
    assert tc_of(wire) == 1
    (reply,) = close(wire)
    assert reply.data.startswith(b"1,1,FV")
    assert tc_of(wire) == 1


@pytest.mark.parametrize("seed", range(40))
def test_flip_request(seed):
    """One flipped bit anywhere: not executed, at most NAK; the frame after it is heard again."""
    wire = wire_with("flip-request#1", seed)
    assert all(is_nak(event) for event in wire.send(0x20, 0xC1))
    found = wire.send(0x20, 0xC1)
    assert isinstance(found[-1], MachineReply), f"seed {seed}"


@pytest.mark.parametrize("seed", range(40))
def test_flip_reply(seed):
    """One flipped bit anywhere: never a good frame."""
    wire = wire_with("flip-reply#1", seed)
    assert not any(isinstance(event, MachineReply) for event in wire.send(0x20, 0xC1)), f"seed {seed}"
    assert wire.session.plan.struck == {"flip-reply": 1}


def test_nak():
    """A good frame is refused by the line; the same one again is executed."""
    wire = at_38h("nak@38h#1")
    assert close(wire) == [Nak()]
    assert tc_of(wire) == 0
    assert len(close(wire)) == 1


def test_split():
    """Two pieces with a gap."""
    wire = wire_with("split:0.3#1")
    assert wire.send(0x20, 0xC1) == []
    wire.look(after=0.29)
    assert len(wire.outputs) == 1
    wire.look(after=0.02)
    assert len(wire.outputs) == 2
    assert b"".join(output.data for output in wire.outputs).startswith(b"\x01")


def test_double():
    """The same reply twice."""
    first, second = wire_with("double#1").send(0x20, 0xC1)
    assert first == second


def test_late():
    """The line holds it back: executed at once, and a retransmission is answered before the late one comes."""
    wire = at_38h("late:4@38h#1")
    assert close(wire) == []
    assert tc_of(wire) == 1
    assert len(close(wire)) == 1
    assert len(wire.look(after=4.0)) == 1


def test_slow():
    """The machine itself takes the time: nothing is executed before, and no SYN comes."""
    wire = at_38h("slow:4@38h#1")
    assert close(wire) == []
    assert wire.look(after=3.9) == []
    assert tc_of(wire) == 0
    assert len(wire.look(after=0.1)) == 1


def test_syn_storm():
    """SYN every 20 ms, then the answer."""
    wire = wire_with("syn-storm:0.5#1")
    wire.send(0x20, 0xC1)
    found = wire.look(after=0.6)
    assert [is_syn(event) for event in found] == [True] * 24 + [False]


def test_work():
    """SYN every 100 ms, as a machine that is busy, then the answer."""
    wire = wire_with("work:0.5#1")
    wire.send(0x20, 0xC1)
    found = wire.look(after=0.6)
    assert [is_syn(event) for event in found] == [True] * 4 + [False]


def test_refuse():
    """`E:` in those words, and nothing is executed."""
    wire = at_38h("refuse:Not today@38h")
    (answer,) = close(wire)
    assert answer.data == b"E:Not today"
    assert tc_of(wire) == 0


def test_stale_replies_come_first():
    """A good frame with another SEQ, or another command, and an older answer in it; then the right one."""
    for spec in ("stale-seq@38h", "stale-cmd@38h"):
        wire = at_38h(spec)
        stale, right = close(wire)
        assert (stale.seq, stale.cmd) != (0x25, 0x38)
        assert stale.seq == 0x25 or stale.cmd == 0x38
        assert stale.data == b"R0"
        assert (right.seq, right.cmd) == (0x25, 0x38)


def test_stale_replies_on_the_very_first_frame():
    """With no older answer to send, they still are stale."""
    for spec in ("stale-seq", "stale-cmd"):
        wire = wire_with(spec)
        stale, right = wire.send(0x7F, 0xC1)
        assert (stale.seq, stale.cmd) != (right.seq, right.cmd) == (0x7F, 0xC1)


@pytest.mark.parametrize("seed", range(20))
def test_noise(seed):
    """Random bytes, then the reply whole."""
    wire = wire_with("noise#1", seed)
    data = b"".join(output.data for output in (wire.send(0x20, 0xC1), wire.outputs)[1])
    assert len(data) > len(encode(MachineReply(0x20, 0xC1)))
    assert data.endswith(b"\x03")


def test_nonsense():
    """A good frame whose data is rubbish, though the command was executed."""
    wire = at_38h("nonsense@38h#1")
    (reply,) = close(wire)
    assert not reply.data.startswith(b"1,1")
    assert tc_of(wire) == 1


def test_silent():
    """From that request on nothing for a while."""
    wire = at_38h("silent:3@38h#1")
    assert close(wire) == []
    wire.look(after=2.9)
    assert wire.send(0x26, 0xC1) == []
    wire.look(after=0.1)
    assert wire.text(0x27, 0xC1).split(",")[3] == "0"


def test_lose_invoice():
    """The machine answers, but has no invoice any more."""
    wire = at_38h("lose-invoice@38h#1")
    (reply,) = close(wire)
    assert reply.data == b"E:No invoice open"


def test_foreign():
    """Somebody else was there between two of our frames."""
    wire = wire_with("foreign:777@C1h#1")
    fields = wire.text(0x20, 0xC1).split(",")
    assert (fields[3], fields[10]) == ("1", "777")


def test_other_nim():
    """After the power cut another machine answers."""
    wire = wire_with("other-nim:EL09000009-1@C1h#1")
    assert wire.send(0x20, 0xC1) == []
    assert wire.text(0x20, 0xC1).startswith("EL09000009-1,")


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


def test_two_faults_on_one_frame():
    """A power cut that also takes the port away."""
    wire = at_38h("cut-executed:1@38h#1,unplug:2@38h#1")
    assert close(wire) == []
    assert isinstance(wire.outputs[-1], Unplugged)
    assert not wire.session.is_plugged(wire.now + 1.5)
    assert wire.session.machine.stage is Stage.IDLE


def test_every_kind_is_tried_above():
    """A new kind of fault gets a test."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kind in KINDS if not re.search(rf'["({{]{kind}[@#:="]', text)] == []


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_over_a_spoiled_line_a_patient_till_certifies_once(seed):
    """A naive till that repeats its frame until the right reply comes: three invoices over 20 % spoilt frames, each once."""
    wire = wire_with("spoil=20%", seed)
    seq = 0
    for number in range(3):
        for command, text in certification(f"F-{number}"):
            seq = (seq + 1) % 0x60
            request = Request(0x20 + seq, command, text.encode())
            assert not patient(wire, request).startswith(b"E:"), f"seed {seed}"
    assert tc_of(wire) == 3, f"seed {seed}"


def patient(wire: Wire, request: Request) -> bytes:
    for _ in range(30):
        found = [*wire.put(encode(request)), *wire.look(after=0.5)]
        for event in found:
            if isinstance(event, MachineReply) and (event.seq, event.cmd) == (request.seq, request.cmd):
                return event.data
        assert all(isinstance(event, MachineReply | Garbage | Nak) or is_syn(event) for event in found)
    raise AssertionError("thirty tries")


def test_items_are_not_doubled_by_retransmission():
    """Each 31h takes effect once, whatever is lost: the subtotal says so."""
    wire = wire_with("drop-reply@31h=50%", 3)
    patient(wire, Request(0x20, 0xC0, opening("F-1").encode()))
    for n in range(20):
        patient(wire, Request(0x21 + n, 0x31, RICE.encode()))
    assert patient(wire, Request(0x50, 0x33)).startswith(b"300000,")
