from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.line.states import chatty_line, locked_line, silent_line
from support.line.terminal import Terminal
from support.processor import within

from bridge.frame import Decoder, MachineReply, Request, encode
from bridge.link import Timers
from daemon.core.machine.state import PortReading, ServerLink, Silence
from daemon.machines.inspect_port import look

pytestmark = pytest.mark.quick_timers

STATE = b"EL02000015-1,00084440Y,20260115100000,7,5,2,,,,,," + b",".join([b"18.00"] * 16)
READS = {0xC1, 0xC2, 0x2B}
QUICK = Timers(tries=2, first_byte=0.1, syn_gap=0.1, byte_gap=0.1)


class Scripted:
    """A machine that answers each command with what the table says, and writes down what it was asked."""

    def __init__(self, terminal: Terminal, answers: dict[int, bytes | None]) -> None:
        self.commands: list[int] = []
        self._answers = answers
        self._decoder = Decoder()
        self._terminal = terminal
        terminal.react = self._hear

    def _hear(self, data: bytes) -> None:
        self._decoder.receive(data)
        while isinstance(event := self._decoder.next_event(), Request):
            self.commands.append(event.cmd)
            if (answer := self._answers[event.cmd]) is not None:
                self._terminal.say(encode(MachineReply(event.seq, event.cmd, answer)))


async def read(link: bytes | None, taxpayer: bytes | None) -> tuple[PortReading, set[int]]:
    """What is found on a machine that answers C2h and 2Bh so (None: not at all), and what it was asked."""
    terminal = Terminal()
    machine = Scripted(terminal, {0xC1: STATE, 0xC2: link, 0x2B: taxpayer})
    try:
        found = await look(Path(terminal.path), timers=QUICK)
    finally:
        terminal.hang_up()
    assert isinstance(found, PortReading)
    return found, set(machine.commands)


async def test_only_what_reads_is_sent() -> None:
    """C1h, C2h and 2Bh, and nothing else; all of it is told."""
    found, query = await read(b"6,7,20260114120000,DIS", b"MAISON FASO")
    assert query == READS
    assert (found.state.nim, found.link.documents, found.taxpayer[0]) == ("EL02000015-1", 7, "MAISON FASO")


async def test_a_server_link_that_cannot_be_read_makes_no_stranger_of_a_machine() -> None:
    """C1h was a machine's: what C2h says in a way of its own is told in its stead."""
    found, _ = await read(b"no session", b"MAISON FASO")
    assert "no session" in found.link.error
    assert found.link == ServerLink(0, 0, "", "", found.link.error)
    assert found.taxpayer[0] == "MAISON FASO"


async def test_a_machine_that_knows_neither_server_nor_taxpayer() -> None:
    """One that is not activated may refuse C2h and 2Bh: it is a machine all the same, and its own words are kept."""
    found, _ = await read(b"E:Not activated", b"E:Not activated")
    assert found.link == ServerLink(0, 0, "", "", "Not activated")
    assert found.taxpayer == ("",) * 6


async def test_a_machine_that_is_silent_at_what_it_does_not_know() -> None:
    """Setup took the port for one where nobody answers: the silence at C2h or 2Bh ended the line."""
    found, _ = await read(None, None)
    assert found.state.nim == "EL02000015-1"
    assert "C2h" in found.link.error
    assert found.taxpayer == ("",) * 6


async def test_nobody_and_somebody_else(tmp_path: Path) -> None:
    """Told apart, and in bounded time also where somebody talks without end."""
    with silent_line(tmp_path / "silent") as line:
        found = await look(line, timers=QUICK)
        assert isinstance(found, Silence)
        assert (found.why, found.reason) == ("silent", "the machine does not answer")
    with chatty_line(tmp_path / "chatty") as line:
        with within(2):
            found = await look(line, timers=QUICK, patience=0.5)
        assert isinstance(found, Silence)
        assert found.why == "stranger"
        found = await look(line, timers=QUICK, patience=0.01)
        assert isinstance(found, Silence)
        assert found.reason == "the machine does not come to an end"
    found = await look(tmp_path / "missing")
    assert isinstance(found, Silence)
    assert (found.why, found.busy) == ("missing", False)


async def test_a_port_that_another_program_has_open_is_left_alone(tmp_path: Path) -> None:
    """It is named, with its number, and not a byte is sent in between."""
    with silent_line(tmp_path / "line") as line, locked_line(line) as pid:
        found = await look(line, timers=QUICK)
    assert found == Silence(f"{line}: it is used by sleep ({pid})", "busy")


async def test_a_device_server_that_hangs_up_is_busy() -> None:
    """It takes one connection at a time: another program has it, and no machine is missing."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        found = await look(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert isinstance(found, Silence)
    assert (found.why, "another program" in found.reason) == ("busy", True)
