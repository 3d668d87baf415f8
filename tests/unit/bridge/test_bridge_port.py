"""The serial port on a real pseudo-terminal with the real pyserial: bytes, locks, and every way to lose it."""

import asyncio
import errno
import fcntl
import os
import random
import selectors
import subprocess
import termios
from collections.abc import AsyncIterator
from contextlib import closing

import pytest
import serial
from support.line.naive_frames import naive_encode
from support.line.ready import ready
from support.line.scripted_line import IDLE, PATIENT, QUICK, Journal
from support.line.terminal import Terminal

from bridge import port as port_module
from bridge.errors import PortUnavailable, PortVanished
from bridge.link import Link
from bridge.port import SerialPort, open_port

EVERY_BYTE = bytes(range(256))


class Listener:
    def __init__(self, port: SerialPort) -> None:
        self.received = bytearray()
        self.losses: list[Exception] = []
        self._news = asyncio.Event()
        port.attach(self._on_bytes, self._on_lost)

    def _on_bytes(self, data: bytes) -> None:
        self.received += data
        self._news.set()

    def _on_lost(self, error: Exception) -> None:
        self.losses.append(error)
        self._news.set()

    async def news(self) -> None:
        async with asyncio.timeout(30):
            await self._news.wait()
        self._news.clear()

    async def gets(self, count: int) -> bytes:
        while len(self.received) < count:
            await self.news()
        return bytes(self.received)


@pytest.fixture
async def terminal() -> AsyncIterator[Terminal]:
    end = Terminal()
    yield end
    end.hang_up()


@pytest.fixture
async def port(terminal: Terminal) -> AsyncIterator[SerialPort]:
    opened = open_port(terminal.path, 115_200)
    yield opened
    opened.close()


async def test_every_byte_passes_unchanged_both_ways(terminal: Terminal, port: SerialPort) -> None:
    """The line is raw: no byte is swallowed, doubled, translated or taken for a control character."""
    listener = Listener(port)
    port.write(EVERY_BYTE)
    terminal.say(EVERY_BYTE)
    assert await terminal.gets(256) == EVERY_BYTE
    assert await listener.gets(256) == EVERY_BYTE
    assert not listener.losses


async def test_the_line_is_set_as_the_protocol_wants_it(terminal: Terminal) -> None:
    """115 200 bit/s, 8 data bits, no parity, 1 stop bit, no flow control; a break is no signal, where it was one before."""
    before = os.open(terminal.path, os.O_RDWR | os.O_NOCTTY)
    attributes = termios.tcgetattr(before)
    attributes[0] |= termios.BRKINT
    termios.tcsetattr(before, termios.TCSANOW, attributes)
    with closing(open_port(terminal.path)) as port:
        iflag, _, cflag, lflag, ispeed, ospeed, cc = termios.tcgetattr(port._fd)
        is_blocking = os.get_blocking(port._fd)
    os.close(before)
    assert ispeed == ospeed == termios.B115200
    assert cflag & termios.CSIZE == termios.CS8
    assert not cflag & (termios.PARENB | termios.CSTOPB | termios.CRTSCTS)
    assert not iflag & (termios.BRKINT | termios.IXON | termios.IXOFF | termios.ICRNL | termios.PARMRK)
    assert not lflag & (termios.ECHO | termios.ICANON | termios.ISIG)
    assert cc[termios.VMIN] in {1, b"\x01"}
    assert not is_blocking


async def test_writing_never_blocks_and_loses_nothing(terminal: Terminal, port: SerialPort) -> None:
    """What the system's buffer does not take now follows in order when there is room."""
    Listener(port)
    terminal.ignore()
    data = random.Random(5).randbytes(200_000)
    for start in range(0, len(data), 1000):
        port.write(data[start : start + 1000])
    assert port._backlog
    terminal.listen()
    assert await terminal.gets(len(data)) == data
    assert not port._backlog


async def test_what_waits_to_be_written_is_not_overtaken(terminal: Terminal, port: SerialPort) -> None:
    """Room that comes before the loop has looked belongs to what was written first."""
    Listener(port)
    terminal.ignore()
    data = random.Random(6).randbytes(200_000)
    port.write(data)
    assert port._backlog
    while not ready(port._fd, timeout=0.001, to=selectors.EVENT_WRITE):
        terminal.received += os.read(terminal.master, 4096)
    port.write(EVERY_BYTE)
    terminal.listen()
    assert await terminal.gets(len(data) + 256) == data + EVERY_BYTE


async def test_a_device_pulled_out_while_nothing_happens_is_one_error(terminal: Terminal, port: SerialPort) -> None:
    """The loss is reported once, as PortVanished with the path; writing and closing after it do nothing."""
    listener = Listener(port)
    terminal.hang_up()
    await listener.news()
    port.write(b"into the void")
    port.close()
    port.close()
    port.write(b"again")
    await asyncio.sleep(0.02)
    assert [type(loss) for loss in listener.losses] == [PortVanished]
    assert terminal.path in str(listener.losses[0])


@pytest.mark.parametrize("size", [1, 200_000])
async def test_a_device_pulled_out_while_writing_is_one_error(terminal: Terminal, port: SerialPort, size: int) -> None:
    """Whether the write or the read notices it first, and with bytes still waiting: one error, not from inside `write`."""
    listener = Listener(port)
    terminal.ignore()
    if size > 1:
        port.write(bytes(size))
    terminal.hang_up()
    port.write(b"x")
    assert not listener.losses
    await listener.news()
    await asyncio.sleep(0.02)
    assert [type(loss) for loss in listener.losses] == [PortVanished]


async def test_nothing_is_told_after_close(terminal: Terminal, port: SerialPort) -> None:
    """Neither bytes nor a loss that was noticed just before."""
    listener = Listener(port)
    terminal.say(b"late")
    terminal.hang_up()
    port.write(b"x")
    port.close()
    await asyncio.sleep(0.02)
    assert not listener.losses
    assert not listener.received


async def test_a_port_in_use_is_busy_until_it_is_closed(terminal: Terminal, port: SerialPort) -> None:
    """A second program gets an error, and the port is free again at once after the first has closed it."""
    with pytest.raises(PortUnavailable, match="another program") as busy:
        open_port(terminal.path)
    assert busy.value.why == "busy"
    port.close()
    open_port(terminal.path).close()


async def test_another_programs_lock_makes_it_busy_and_leaves_it_alone(terminal: Terminal) -> None:
    """A pyserial program that holds the port keeps it, with its settings."""
    with serial.Serial(terminal.path, 9600, exclusive=True) as other:
        with pytest.raises(PortUnavailable) as busy:
            open_port(terminal.path)
        assert busy.value.why == "busy"
        assert termios.tcgetattr(other.fd)[4] == termios.B9600


async def test_programs_that_do_not_ask_are_locked_out_too(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real device TIOCEXCL keeps off a plain `open`, and `close` takes that back."""
    monkeypatch.setattr(port_module, "_UNIX98_PTY_MAJORS", ())
    os.fchmod(terminal.slave, 0o666)

    assert opened_by_stranger(terminal.path) == ""
    port = open_port(terminal.path)
    try:
        assert "busy" in opened_by_stranger(terminal.path)
    finally:
        port.close()
    assert opened_by_stranger(terminal.path) == ""


def opened_by_stranger(path: str) -> str:
    """What a shell without privileges (root may always) has to complain about when it opens the port."""
    user = 65534 if os.getuid() == 0 else None
    command = ["/bin/sh", "-c", 'exec 3<>"$0"', path]
    run = subprocess.run(
        command, user=user, env={"LC_ALL": "C"}, capture_output=True, text=True, check=False, timeout=30
    )
    return run.stderr


async def test_a_pseudo_terminal_is_not_locked_past_our_death(terminal: Terminal, port: SerialPort) -> None:
    """Its other end stays open when we are killed, and would keep the flag: our next start must not find it."""
    exclusive = fcntl.ioctl(port._fd, 0x80045440, b"\0" * 4)  # TIOCGEXCL
    assert exclusive == b"\0" * 4


@pytest.mark.parametrize(
    ("path", "why", "text"),
    [
        ("/dev/mcf-not-there", "missing", "no such device"),
        *((path, "other", "not a serial port") for path in ("/dev/null", "/etc/hostname", "/dev")),
        ("/dev/null/x", "other", "[Nn]ot a directory"),
    ],
)
async def test_what_is_no_serial_port_is_told_from_one_that_is_missing(path: str, why: str, text: str) -> None:
    """With the path, in a sentence a technician understands; the descriptor of what turns out not to be usable is closed."""
    before = os.listdir("/proc/self/fd")  # noqa: PTH208  # names are all that is needed
    with pytest.raises(PortUnavailable, match=f"^{path}: .*{text}") as unavailable:
        open_port(path)
    assert unavailable.value.why == why
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208  # as above


async def test_a_port_that_cannot_be_locked_is_free_again(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the next try, at once."""

    def fails(_: int) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(port_module.os, "major", fails)
        with pytest.raises(PortUnavailable, match="does not respond"):
            open_port(terminal.path)
    open_port(terminal.path).close()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (serial.SerialException(errno.EACCES, "could not open port"), "permission"),
        (serial.SerialException(errno.ENODEV, "could not open port"), "missing"),
        (serial.SerialException(errno.EAGAIN, "Could not exclusively lock port"), "busy"),
        (OSError(errno.EBUSY, "busy"), "busy"),
        (termios.error(errno.EIO, "Input/output error"), "other"),
        (serial.SerialException("Port is already open."), "other"),
        (ValueError("Invalid baud rate: 'x'"), "other"),
    ],
)
def test_every_lower_error_of_opening_is_mapped(error: Exception, why: str) -> None:
    """Each kind that pyserial and the system raise becomes PortUnavailable with its reason."""
    mapped = port_module.unavailable("/dev/x", error)
    assert isinstance(mapped, PortUnavailable)
    assert mapped.why == why


async def test_a_device_that_vanishes_in_the_middle_of_a_command_ends_it(terminal: Terminal, port: SerialPort) -> None:
    """PortVanished at once, with `sent`; after it comes back, a new port on it works again."""
    link = Link(port, PATIENT, Journal())
    terminal.react = lambda _: asyncio.get_running_loop().call_soon(terminal.hang_up)
    with pytest.raises(PortVanished) as lost:
        await link.exchange(0x38, b"15000.00")
    assert lost.value.sent
    back = Terminal()
    again = Link(open_port(back.path), QUICK, Journal())
    back.react = lambda raw: back.say(naive_encode(raw[2], raw[3], b"OK", IDLE))
    assert (await again.exchange(0xC1)).data == b"OK"
    again.close()
    back.hang_up()
