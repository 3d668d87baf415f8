"""Ten bits a byte in both directions, in invented time."""

from __future__ import annotations

import pytest
from support.simulator.simulator_till import certification

from bridge.frame import Request, encode
from simulator.line.session import LineSession, Paused, Point, Sent, Unplugged
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions
from simulator.process.host import Lateness, PacedLine

BYTE = 10 / 115_200


def left(line: PacedLine, now: float) -> list[float]:
    return [output.at for output in line.left(now)]


def test_a_request_arrives_with_its_last_byte():
    """Not before bytes × 10 / baud, and at exactly that time however late the host looks."""
    line = PacedLine(115_200)
    line.enter(b"x" * 100, 10.0)
    assert list(line.arrived(10.0 + 99 * BYTE)) == []
    ((at, data),) = line.arrived(11.0)
    assert at == pytest.approx(10.0 + 100 * BYTE)
    assert len(data) == 100


def test_two_writes_follow_each_other():
    """The second waits for the line."""
    line = PacedLine(115_200)
    line.enter(b"x" * 100, 10.0)
    line.enter(b"y" * 100, 10.0)
    assert [at for at, _ in line.arrived(11.0)] == pytest.approx([10.0 + 100 * BYTE, 10.0 + 200 * BYTE])


def test_a_reply_is_there_with_its_last_byte():
    """Counted from the time the machine was ready, not from the time the host came to it."""
    line = PacedLine(115_200)
    line.leave(Sent(10.0, b"x" * 200))
    assert left(line, 10.0 + 199 * BYTE) == []
    assert left(line, 11.0) == pytest.approx([10.0 + 200 * BYTE])


def test_a_slow_line_hands_over_pieces():
    """At 1 200 bit/s the first bytes of a long reply come early, so that no first-byte timer runs out."""
    line = PacedLine(1200)
    line.leave(Sent(0.0, b"x" * 200))
    times = left(line, 60.0)
    assert len(times) > 10
    assert times[0] <= 0.05
    assert times[-1] == pytest.approx(200 * 10 / 1200)


def test_without_pace_all_is_at_once():
    """--baud 0."""
    line = PacedLine(0)
    line.enter(b"x" * 100, 10.0)
    assert list(line.arrived(10.0)) == [(10.0, b"x" * 100)]
    line.leave(Sent(10.0, b"y" * 100))
    assert list(line.left(10.0)) == [Sent(10.0, b"y" * 100)]


def test_what_is_not_bytes_keeps_its_place():
    """A pause after a reply is told when the reply is through; an unplugged cable loses what was on it."""
    line = PacedLine(115_200)
    paused = Paused(10.0, Point(1, "after", "out"))
    line.leave(Sent(10.0, b"x" * 100))
    line.leave(paused)
    assert list(line.left(10.0 + 50 * BYTE)) == []
    assert list(line.left(11.0))[-1] == paused
    line.leave(Sent(20.0, b"x" * 100))
    line.leave(Unplugged(20.0))
    line.enter(b"z", 20.0)
    line.clear()
    assert [type(output) for output in line.left(30.0)] == [Unplugged]
    assert list(line.arrived(30.0)) == []


def test_next_at_is_the_first_deadline():
    """What the host may sleep until."""
    line = PacedLine(115_200)
    assert line.next_at() is None
    line.enter(b"x" * 100, 10.0)
    line.leave(Sent(10.0, b"x" * 50))
    assert line.next_at() == pytest.approx(10.0 + 50 * BYTE)


def test_a_whole_invoice_takes_its_bytes_time_and_not_more():
    """Six commands over a paced line with a host that is always 3 ms late on the machine's side: the lateness is absorbed,
    and the exchange takes bytes × 10 / baud to the microsecond."""
    session, line = LineSession(SimulatedMachine(SimulatorOptions())), PacedLine(115_200)
    now = start = 50.0
    bytes_moved = 0
    for seq, (command, text) in enumerate(certification("F-1"), 0x20):
        request = encode(Request(seq, command, text.encode()))
        line.enter(request, now)
        late = now + len(request) * BYTE + 0.003
        for at, data in line.arrived(late):
            session.receive(data, at)
        for output in session.poll(late):
            line.leave(output)
        (reply,) = line.left(late + 1.0)
        bytes_moved += len(request) + len(reply.data)
        now = reply.at
    assert now - start == pytest.approx(bytes_moved * BYTE, abs=1e-6)


def test_somebody_gets_up_earlier_by_what_usually_suffices():
    """A host that wakes up 60 µs late, one time in ten even 5 ms: the usual is the 60 µs."""
    lateness = Lateness(0.00004)
    for count in range(1000):
        lateness.learn(0.005 if count % 10 == 0 else 0.00006)
    assert lateness.usual == pytest.approx(0.00006, abs=0.000015)


def test_only_the_least_lateness_of_late_is_taken_off():
    """After a busy hour one quick waking is enough: nothing is taken for later than that any more. A host that was never late has none."""
    lateness = Lateness(0.00004)
    assert lateness.least == 0.0
    for _ in range(100):
        lateness.learn(0.00004)
    assert lateness.least == 0.00004
    lateness.learn(0.00003)
    lateness.learn(0.00004)
    assert lateness.least == 0.00003


def test_a_busy_host_stays_late():
    """More than a fifth of a millisecond is never made up for, nor more than 40 µs taken off: a bench on a loaded box must show it."""
    lateness = Lateness(0.00004)
    for _ in range(1000):
        lateness.learn(0.005)
    assert (lateness.usual, lateness.least) == pytest.approx((0.0002, 0.00004))
