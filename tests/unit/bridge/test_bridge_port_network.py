"""A port over the network: what reaches the machine, what never does after the end, and how each failure is reported."""

import asyncio
import contextlib
import gc
import os
import socket
import struct
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.line.network import ser2net
from support.line.states import raw_terminal
from support.ports import free_port

from bridge import port_network
from bridge.errors import LinkEnded, PortUnavailable, PortVanished
from bridge.link import Link
from bridge.machine import handshake
from bridge.port_network import Rfc2217Port, is_network, open_line

# pyserial 3.5 drops its socket and its thread where the other end goes.
drops = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)


class Ears:
    """What a port delivered."""

    def __init__(self, port):
        self.data = b""
        self.lost = asyncio.get_running_loop().create_future()
        port.attach(self._hear, self.lost.set_result)

    def _hear(self, data):
        self.data += data


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def read_to_the_end(connection, received):
    while data := connection.recv(65536):
        received += data


def connected_to(server):
    """This process's socket whose peer it is."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(descriptor.name))) as found:
            if found.getpeername() == server.getsockname():
                return found.dup()
    raise AssertionError("nothing is connected")


def place(server):
    return f"tcp://127.0.0.1:{server.getsockname()[1]}"


@drops
@pytest.mark.parametrize(("scheme", "telnet"), [("tcp", False), ("rfc2217", True)])
async def test_a_machine_behind_ser2net_answers(tmp_path, machine, scheme, telnet):
    """Through a real device server, raw and by RFC 2217, the machine tells its state; and again after a new connection."""
    with ser2net(tmp_path, machine.link, telnet=telnet) as port:
        for _ in range(2):
            assert await asyncio.wait_for(nim_at(f"{scheme}://127.0.0.1:{port}"), 60) == machine.nim
        gc.collect()  # what pyserial dropped is told here, and not in the next test


def is_probed(port):
    """Whether the system's keepalive runs on the connection to that port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()]
    return any(row[2].endswith(f":{port:04X}") and row[5].startswith("02:") for row in rows)


async def nim_at(place):
    """ser2net frees its tty a moment after a client has gone, and hangs up on who comes earlier, also in the middle of the greeting."""
    while True:
        try:
            link = Link(await open_line(place))
            try:
                nim = (await handshake(link)).nim
                assert is_probed(int(place.rpartition(":")[2]))
                return nim
            finally:
                link.close()
        except (LinkEnded, PortUnavailable):
            await asyncio.sleep(0.1)


async def test_bytes_that_telnet_would_take_for_its_own_pass(tmp_path):
    """FFh is an escape of telnet: it arrives once, as itself, in both directions."""
    with raw_terminal(tmp_path / "far") as far, ser2net(tmp_path, tmp_path / "far", telnet=True) as port:
        line = await open_line(f"rfc2217://127.0.0.1:{port}")
        ears = Ears(line)
        line.write(b"\xff\x01\xff\xff\x03")
        sent = b""
        while len(sent) < 5:
            sent += await asyncio.to_thread(os.read, far, 100)
        os.write(far, b"\x16\xff\xff\x03")
        await heard(ears, 4)
        line.close()
        assert (sent, ears.data) == (b"\xff\x01\xff\xff\x03", b"\x16\xff\xff\x03")


async def test_a_byte_that_comes_alone_is_not_held_up(tmp_path):
    """A SYN says that the machine is at work: it is heard at once, not with the next byte."""
    with raw_terminal(tmp_path / "far") as far, ser2net(tmp_path, tmp_path / "far", telnet=True) as port:
        line = await open_line(f"rfc2217://127.0.0.1:{port}")
        ears = Ears(line)
        os.write(far, b"\x16")
        await heard(ears, 1)
        line.close()
        assert ears.data == b"\x16"


async def heard(ears, count):
    """Waits for that many bytes, ten seconds at most."""
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if len(ears.data) >= count:
            break


async def test_what_was_not_delivered_dies_with_the_connection(server):
    """A 38h that waits in the system's buffers when the link is given up never reaches the machine: the other end, however late it
    reads, finds a reset, not the rest."""
    line = await open_line(place(server))
    Ears(line)
    near, _ = server.accept()
    with near:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.write(b"x" * 20_000_000)
        line.write(b"the 38h")
        line.close()
        await asyncio.sleep(0.2)
        received = bytearray()
        with pytest.raises(ConnectionResetError):
            read_to_the_end(near, received)
        assert b"38h" not in received


class StuckDevice:
    """pyserial's client of a device server that takes no more bytes for a while. `written` is what it took."""

    in_waiting = 0

    def __init__(self):
        self.written = []
        self.is_at_it, self.goes_on, self._closed = threading.Event(), threading.Event(), threading.Event()

    def write(self, data):
        self.is_at_it.set()
        assert self.goes_on.wait(60)
        self.written.append(data)

    def read(self, _):
        assert self._closed.wait(60)
        return b""

    def close(self):
        assert self.goes_on.wait(60)
        self._closed.set()


async def test_what_waits_for_a_device_server_dies_with_the_link():
    """A 38h that was written while the bytes before it were still on their way, and the link given up: it is never sent."""
    device = StuckDevice()
    threads = set(threading.enumerate())
    line = Rfc2217Port(device, "rfc2217://box:2217")
    Ears(line)
    line.write(b"an item")
    assert await asyncio.to_thread(device.is_at_it.wait, 60)
    line.write(b"the 38h")
    line.close()
    stuck = [thread for thread in set(threading.enumerate()) - threads if "rfc2217" in thread.name]
    assert [thread.daemon for thread in stuck] == [True] * 3  # else they would keep the process from its end
    device.goes_on.set()
    for thread in stuck:
        await asyncio.to_thread(thread.join, 60)
    assert device.written == [b"an item"]


async def test_a_device_server_that_lost_its_power_is_noticed_within_eleven_seconds(server):
    """By probes on a quiet line, where the kernel would wait for two hours; and a close neither waits nor delivers."""
    line = await open_line(place(server))
    with connected_to(server) as connection:
        of_tcp = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_NODELAY)
        idle, every, count, is_at_once = (connection.getsockopt(socket.IPPROTO_TCP, option) for option in of_tcp)
        lingers = connection.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    line.close()
    assert (idle + every * count, bool(is_at_once), struct.unpack("ii", lingers)) == (11, True, (1, 0))


async def test_a_server_that_hangs_up_is_a_loss(server, monkeypatch):
    """A connection that was taken over, politely or not, is a port that vanished; reported once."""
    reads, read = [], os.read
    monkeypatch.setattr("bridge.port.os.read", lambda *arguments: reads.append(arguments) or read(*arguments))
    for linger in (None, struct.pack("ii", 1, 0)):
        line = await open_line(place(server))
        ears = Ears(line)
        near, _ = server.accept()
        if linger:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        near.close()
        assert isinstance(await asyncio.wait_for(ears.lost, 60), PortVanished)
        line.write(b"ignored")
        seen = len(reads)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(reads) == seen  # nobody listens there any more, be it closed or not
        line.close()


@drops
async def test_an_rfc2217_server_that_hangs_up_is_a_loss(tmp_path, machine):
    with ser2net(tmp_path, machine.link, telnet=True) as port:
        ears = Ears(await open_line(f"rfc2217://127.0.0.1:{port}"))
    assert isinstance(await asyncio.wait_for(ears.lost, 60), PortVanished)
    gc.collect()  # what pyserial dropped is told here, and not in the next test


def sockets():
    """How many this process has open."""
    return sum(Path("/proc/self/fd", each).is_socket() for each in os.listdir("/proc/self/fd"))  # noqa: PTH208  names are all that is needed


@pytest.mark.parametrize("scheme", ["tcp", "rfc2217"])
async def test_nobody_listens(scheme):
    """Or nobody knows the name; what is a path is no place of the network. No socket stays open."""
    before = sockets()
    with pytest.raises(PortUnavailable, match="connection refused") as caught:
        await open_line(f"{scheme}://127.0.0.1:{free_port()}")
    assert (caught.value.why, sockets()) == ("missing", before)
    with pytest.raises(PortUnavailable, match="unknown host name"):
        await open_line(f"{scheme}://no-such-machine.invalid:4001")
    assert [is_network(place) for place in (f"{scheme}://a:1", "/dev/ttyS0", "http://a:1")] == [True, False, False]


async def test_a_server_that_never_takes_us(monkeypatch):
    """A backlog that is full, as an address that swallows everything: an error after a while, and the loop goes on meanwhile."""
    monkeypatch.setattr(port_network, "CONNECT_SECONDS", 0.3)
    with socket.socket() as deaf, socket.socket() as one, socket.socket() as two:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for filling in (one, two):
            filling.setblocking(False)
            filling.connect_ex(deaf.getsockname())
        before = sockets()
        with pytest.raises(PortUnavailable, match="does not answer") as caught:
            await open_line(f"tcp://127.0.0.1:{deaf.getsockname()[1]}")
        assert (caught.value.why, sockets()) == ("missing", before)


async def test_a_raw_server_is_no_rfc2217(tmp_path, machine):
    """The wrong word in the configuration is said to be that, and costs bounded time."""
    with ser2net(tmp_path, machine.link) as port, pytest.raises(PortUnavailable, match="RFC2217"):
        await open_line(f"rfc2217://127.0.0.1:{port}")


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_connection_that_comes_when_nobody_waits_for_it_any_more_is_closed(monkeypatch, is_taken):
    """The device server answers after the caller has gone: it has one place, which the next try needs. One that is refused then is no error."""
    may_go_on, closed = threading.Event(), threading.Event()

    def opened_late(*_):
        assert may_go_on.wait(60)
        if not is_taken:
            raise OSError("refused")
        return SimpleNamespace(close=closed.set)

    broken = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    monkeypatch.setattr(port_network, "_open_rfc2217", opened_late)
    monkeypatch.setattr(port_network, "NEGOTIATION_SECONDS", 0.01)
    with pytest.raises(PortUnavailable, match="does not answer"):
        await open_line("rfc2217://127.0.0.1:4001")
    may_go_on.set()
    if is_taken:
        assert await asyncio.to_thread(closed.wait, 60)
    await asyncio.get_running_loop().shutdown_default_executor()
    await asyncio.sleep(0.01)
    assert closed.is_set() is is_taken
    assert broken == []


async def test_a_late_close_holds_up_no_stop():
    """It may wait for a device server that is gone, while the process ends."""
    closed, opened = threading.Event(), asyncio.get_running_loop().create_future()
    opened.set_result(SimpleNamespace(close=closed.wait))
    before = set(threading.enumerate())
    port_network._close_late(opened)
    (thread,) = set(threading.enumerate()) - before
    closed.set()
    thread.join()
    assert thread.daemon
