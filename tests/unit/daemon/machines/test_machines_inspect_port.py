import asyncio
from pathlib import Path

import pytest
from support.line.states import locked_line, silent_line
from support.line.terminal import Terminal

from bridge.frame import Decoder, MachineReply, Request, encode
from bridge.link import Timers
from common.language.reasons import PORT_USED_BY
from daemon.core.machine.state import PortReading, ServerLink, Silence
from daemon.machines.inspect_port import inspect

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
        found = await inspect(Path(terminal.path), timers=QUICK)
    finally:
        terminal.hang_up()
    assert isinstance(found, PortReading)
    return found, set(machine.commands)


NO_LINES = ("",) * 6


@pytest.mark.parametrize(
    ("link", "taxpayer", "error", "lines"),
    [
        (b"6,7,20260114120000,DIS", b"MAISON FASO", "", ("MAISON FASO",) * 6),
        (b"no session", b"MAISON FASO", "no session", ("MAISON FASO",) * 6),
        (b"E:Not activated", b"E:Not activated", "Not activated", NO_LINES),
        (None, None, "C2h", NO_LINES),
    ],
    ids=["all", "a server link that cannot be read", "not activated", "silence"],
)
async def test_only_what_reads_is_sent(
    link: bytes | None, taxpayer: bytes | None, error: str, lines: tuple[str, ...]
) -> None:
    """C1h, C2h and 2Bh, and nothing else; all of it is told. C1h was a machine's: what C2h says in a way of its own is told in its stead, one that is not activated may refuse C2h
    and 2Bh, or be silent, which ended the line, so that setup took the port for one where nobody answers."""
    found, query = await read(link, taxpayer)
    assert query == READS
    assert (found.state.nim, found.taxpayer) == ("EL02000015-1", lines)
    if error:
        assert error in found.link.error
        assert found.link == ServerLink(0, 0, "", "", found.link.error)
    else:
        assert (found.link.documents, found.link.state) == (7, "DIS")


@pytest.mark.parametrize(("answer", "why"), [(b"", "silent"), (b"OK\r\n", "stranger")])
async def test_what_does_not_speak_the_protocol_is_told_from_silence(answer: bytes, why: str) -> None:
    terminal = Terminal()
    terminal.react = lambda _: terminal.say(answer)
    try:
        found = await inspect(Path(terminal.path), timers=QUICK)
    finally:
        terminal.hang_up()
    assert isinstance(found, Silence)
    assert (found.why, bool(found.reason)) == (why, True)


async def test_a_device_server_that_hangs_up_is_busy() -> None:
    """It takes one connection at a time: another program has it, and no machine is missing."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        found = await inspect(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert isinstance(found, Silence)
    assert (found.why, "another program" in found.reason) == ("busy", True)


async def test_a_port_that_another_program_has_open_is_busy(tmp_path: Path) -> None:
    """Also where that program does not lock it."""
    with silent_line(tmp_path / "line") as line, locked_line(line) as pid:
        assert await inspect(line) == Silence(PORT_USED_BY(port=str(line), names=f"sleep ({pid})"), "busy")
