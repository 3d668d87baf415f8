"""The loop that blocks, on a real pseudo-terminal: nothing is quicker than its line."""

from __future__ import annotations

import os
import threading
import time

from support.simulator.simulator_process import Serial

from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions
from simulator.process.host import Host, PacedLine, Terminal

BAUD = 115_200
WARM_UP = 3
EXCHANGES = 30
READ_STATE = 0xC1


def test_what_a_busy_hour_has_taught_makes_no_answer_early(tmp_path):
    """A simulator that was woken late for long, on a host that is quiet again: thirty exchanges take what their bytes take, or more."""
    reader, writer = os.pipe()
    terminal, session = Terminal(tmp_path / "port"), LineSession(SimulatedMachine(SimulatorOptions()))
    terminal.plug()
    host = Host(session, terminal, PacedLine(BAUD), wakeup=reader)
    for _ in range(1000):
        host.waking.learn(0.005)
        host.ready.learn(0.005)
    thread = threading.Thread(target=host.run)
    thread.start()
    try:
        with Serial(terminal.link) as client:
            for seq in range(0x20, 0x20 + WARM_UP):
                assert client.ask(seq, READ_STATE, patience=60)
            moved = session.bytes_in + session.bytes_out
            began = time.monotonic()
            for seq in range(0x40, 0x40 + EXCHANGES):
                assert client.ask(seq, READ_STATE, patience=60)
            took = time.monotonic() - began
            moved = session.bytes_in + session.bytes_out - moved
    finally:
        os.write(writer, b"\0")
        thread.join()
        terminal.unplug()
        os.close(reader)
        os.close(writer)
    assert took >= moved * 10 / BAUD
