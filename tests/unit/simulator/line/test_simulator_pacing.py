"""Ten bits a byte in both directions, in invented time."""

import pytest
from support.simulator.simulator_till import certification

from bridge.frame import Request, encode
from simulator.line.session import LineSession, Sent
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions
from simulator.process.host import PacedLine

BYTE = 10 / 115_200


def left(line: PacedLine, now: float) -> list[float]:
    return [output.at for output in line.left(now)]


def test_a_reply_is_there_with_its_last_byte():
    """Counted from the time the machine was ready, not from the time the host came to it; --baud 0: all is there at once."""
    line = PacedLine(115_200)
    line.leave(Sent(10.0, b"x" * 200))
    assert left(line, 10.0 + 199 * BYTE) == []
    assert left(line, 11.0) == pytest.approx([10.0 + 200 * BYTE])
    line = PacedLine(0)
    line.enter(b"x" * 100, 10.0)
    assert list(line.arrived(10.0)) == [(10.0, b"x" * 100)]
    line.leave(Sent(10.0, b"y" * 100))
    assert list(line.left(10.0)) == [Sent(10.0, b"y" * 100)]


def test_a_whole_invoice_takes_its_bytes_time_and_not_more():
    """A host that is 3 ms late is absorbed: bytes × 10 / baud, to the microsecond."""
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
