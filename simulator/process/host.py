"""One blocking loop: a session on a pseudo-terminal behind a fixed path, with the control socket beside it. Bytes take
their time on a real line: ten bits each, in both directions, by absolute deadlines.

The fiscal memory on disk: the state, replaced as a whole and durable before the answer leaves, and beside it the log of
certified invoices, for tests."""

import contextlib
import os
import select
import socket
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import msgspec

from simulator.control import Control
from simulator.line.replay import Replay
from simulator.line.session import LineSession, Output, Paused, Sent
from simulator.machine.fiscal_memory import CertifiedInvoice, Snapshot
from simulator.machine.machine import SimulatedMachine

_BITS_PER_BYTE = 10  # start, eight data, stop
_PIECE = 0.05  # seconds; a reply is passed on in pieces of at most that line time
_STEP = 0.000001
_MOST = 0.0002
_SURELY = 0.00004
_LOOKED_BACK = 32

_CHUNK = 4096
_OUTPUT_SPEED = 5  # index in the result of tcgetattr

_SLACK = Path("/proc/self/timerslack_ns")
_WAKING = 0.00004  # seconds; initial value

_LOG_SUFFIX = ".log"


class Lateness:
    """The host's lateness in seconds. A real line has none, so it is compensated, but never by more than occurred:
    nothing is faster than its line.

    `least`: minimum of the last values, limited to what any host needs; it is subtracted from late observations.
    `usual`: limit of three values in four; a waiter wakes that much earlier, and then busy-waits 0.2 ms at most."""

    def __init__(self, usual: float) -> None:
        self.usual = usual
        self._lately: deque[float] = deque([0.0], maxlen=_LOOKED_BACK)

    @property
    def least(self) -> float:
        return min(_SURELY, *self._lately)

    def learn(self, late: float) -> None:
        self._lately.append(max(0.0, late))
        step = 3 * _STEP if late > self.usual else -_STEP
        self.usual = min(max(0.0, self.usual + step), _MOST)


class PacedLine:
    """Sans-I/O. `baud` 0 does not pace. The host's lateness does not accumulate: each deadline is relative to the
    previous one, or to the time at which the sender was ready."""

    def __init__(self, baud: int) -> None:
        self._byte_time = _BITS_PER_BYTE / baud if baud else 0.0
        self._piece = max(1, int(_PIECE / self._byte_time)) if baud else 0
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._leaving: deque[tuple[float, Output]] = deque()
        self._in_busy_until = self._out_busy_until = float("-inf")

    @property
    def is_paced(self) -> bool:
        return self._byte_time > 0

    def enter(self, data: bytes, now: float) -> None:
        """The client has written; the last byte arrives after the line's time for all."""
        self._in_busy_until = max(self._in_busy_until, now) + len(data) * self._byte_time
        self._arriving.append((self._in_busy_until, data))

    def arrived(self, now: float) -> Iterator[tuple[float, bytes]]:
        """Arrived data, each with the time at which it was complete."""
        while self._arriving and self._arriving[0][0] <= now:
            yield self._arriving.popleft()

    def leave(self, output: Output) -> None:
        """Queues output; other events stay in order with the bytes."""
        if not isinstance(output, Sent):
            self._leaving.append((max(self._out_busy_until, output.at), output))
            return
        data = output.data
        start = max(self._out_busy_until, output.at)
        step = self._piece or len(data)
        for offset in range(0, len(data), step):
            piece = data[offset : offset + step]
            due = start + (offset + len(piece)) * self._byte_time
            self._leaving.append((due, Sent(due, piece)))
        self._out_busy_until = start + len(data) * self._byte_time

    def left(self, now: float) -> Iterator[Output]:
        """Output that the client may see by `now`."""
        while self._leaving and self._leaving[0][0] <= now:
            yield self._leaving.popleft()[1]

    def next_at(self) -> float | None:
        times = [queue[0][0] for queue in (self._arriving, self._leaving) if queue]
        return min(times, default=None)

    def clear(self) -> None:
        """The cable is unplugged: bytes on the line are lost, other events stay."""
        self._arriving.clear()
        self._leaving = deque(entry for entry in self._leaving if not isinstance(entry[1], Sent))


class Terminal:
    """Raw at both ends. Our own descriptor of the client's end stays open, or reads would fail as soon as a client
    closes (field notes, "Serial"). `plug` and `unplug` may be repeated; each plug makes a new pseudo-terminal at the
    same path. `baud`: with a client at another speed, bytes in both directions are garbled; 0 does not check."""

    def __init__(self, link: Path, baud: int = 0) -> None:
        self.link = link
        self._speed = getattr(termios, f"B{baud}") if baud else None
        self._master = self._slave = -1
        self._target = ""

    @property
    def is_plugged(self) -> bool:
        return self._master >= 0

    def fileno(self) -> int:
        return self._master

    def plug(self) -> None:
        """Raises FileExistsError if the path is not a link."""
        if self.is_plugged:
            return
        if self.link.exists() and not self.link.is_symlink():
            raise FileExistsError(f"{self.link} exists and is not a link")
        self._master, self._slave = os.openpty()
        tty.setraw(self._master)
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self._target = os.ttyname(self._slave)
        fresh = self.link.with_name(f".{self.link.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self._target)
        fresh.replace(self.link)

    def unplug(self) -> None:
        """Removes the link first, unless another process has taken the path."""
        if not self.is_plugged:
            return
        with contextlib.suppress(OSError):
            if str(self.link.readlink()) == self._target:
                self.link.unlink()
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1

    def read(self) -> bytes:
        try:
            return self._carried(os.read(self._master, _CHUNK))
        except BlockingIOError:
            return b""

    def write(self, data: bytes) -> None:
        """Bytes that do not fit are lost, as on a line without a listener."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._master, self._carried(data))

    def _carried(self, data: bytes) -> bytes:
        if self._speed is None or termios.tcgetattr(self._slave)[_OUTPUT_SPEED] == self._speed:
            return data
        return bytes(~byte & 0xFF | 0x80 for byte in data[::2])


@dataclass
class Host:
    """Runs until there is a byte on the descriptor `wakeup`.

    The system wakes a process late; a line is never late. So the host wakes earlier and passes a reply on when its last
    byte would arrive, to the microsecond, and dates a request back by the minimum time of a wakeup. Longer delays, and
    the pseudo-terminal's own time, stay visible: no answer comes before its line could have brought it."""

    session: LineSession | Replay
    terminal: Terminal
    line: PacedLine
    _: KW_ONLY
    wakeup: int
    control: Control | None = None
    _stopping: bool = field(default=False, init=False)
    waking: Lateness = field(default_factory=lambda: Lateness(_WAKING), init=False)
    ready: Lateness = field(default_factory=lambda: Lateness(_WAKING), init=False)

    def run(self) -> None:
        with contextlib.suppress(OSError):
            _SLACK.write_text("1")  # otherwise every sleep is 50 µs too long, half a byte at 115 200 bit/s
        while not self._stopping:
            self._work()
            if not self._stopping:
                self._wait()

    def _work(self) -> None:
        now = time.monotonic() + self.ready.usual
        if not self.terminal.is_plugged and self.session.is_plugged(now):
            self.terminal.plug()
            self._tell({"event": "plugged"})
        for at, data in self.line.arrived(now):
            self.session.receive(data, at)
        for output in self.session.poll(now):
            self.line.leave(output)
        for output in self.line.left(now):
            self._perform(output)

    def _perform(self, output: Output) -> None:
        if isinstance(output, Sent):
            if self.line.is_paced:
                self.ready.learn(time.monotonic() - output.at + self.ready.usual)
                while time.monotonic() < output.at:
                    pass
            if self.terminal.is_plugged:
                self.terminal.write(output.data)
        elif isinstance(output, Paused):
            frame, when, direction = output.point
            self._tell({"event": "paused", "frame": frame, "when": when, "direction": direction})
        else:
            self.line.clear()
            self.terminal.unplug()
            self._tell({"event": "unplugged"})

    def _wait(self) -> None:
        """Until there are bytes, orders, a signal, or due output."""
        ours: list[int | socket.socket] = [self.wakeup]
        if self.terminal.is_plugged:
            ours.append(self.terminal.fileno())
        clients = self.control.sockets() if self.control else []
        began, timeout = time.monotonic(), self._timeout()
        ready, _, _ = select.select([*ours, *clients], [], [], timeout)
        now = time.monotonic()
        if not ready and timeout:
            self.waking.learn(now - began - timeout)
        if self.terminal.fileno() in ready:
            self.line.enter(self.terminal.read(), now - self.waking.least)
        if self.wakeup in ready:
            os.read(self.wakeup, 1)
            self._stopping = True
        if self.control:
            self.control.serve(ready)

    def _timeout(self) -> float | None:
        times = [self.line.next_at(), self.session.wake_at()]
        if not self.terminal.is_plugged and self.session.plugged_at != float("inf"):
            times.append(self.session.plugged_at)
        due = min((at for at in times if at is not None), default=None)
        return None if due is None else max(0.0, due - self.ready.usual - time.monotonic())

    def _tell(self, event: dict[str, object]) -> None:
        if self.control:
            self.control.tell(msgspec.json.encode(event) + b"\n")


class StateFileError(Exception):
    pass


class StateFile:
    """`FILE` is authoritative; `FILE.log` is truncated to it at the start, if a kill came in between."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_path = path.with_name(path.name + _LOG_SUFFIX)
        self._fresh = path.with_name(f".{path.name}.new")
        self._revision = -1
        self._log = os.open(self._log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)

    def load(self, machine: SimulatedMachine) -> None:
        """Loads the state into the machine; afterwards its changes are stored. Raises StateFileError."""
        snapshot = self._read()
        if snapshot is not None:
            machine.restore(snapshot)
        machine.fiscal.log.extend(self._read_log(machine.fiscal.tc))
        machine.fiscal.on_certified = self._append

    def keep(self, machine: SimulatedMachine) -> None:
        if machine.fiscal.revision == self._revision:
            return
        descriptor = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(machine.snapshot()))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._fresh.replace(self._path)
        os.fsync(self._directory)
        self._revision = machine.fiscal.revision

    def close(self) -> None:
        os.close(self._log)
        os.close(self._directory)

    def _read(self) -> Snapshot | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Snapshot)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise StateFileError(f"{self._path} is not a state of this simulator: {error}") from error

    def _read_log(self, tc: int) -> list[CertifiedInvoice]:
        lines = self._log_path.read_bytes().splitlines(keepends=True)
        entries = []
        size = 0
        for line in lines:
            try:
                entry = msgspec.json.decode(line, type=CertifiedInvoice)
            except msgspec.DecodeError:
                break
            if not line.endswith(b"\n") or entry.tc > tc:
                break
            entries.append(entry)
            size += len(line)
        os.ftruncate(self._log, size)
        return entries

    def _append(self, entry: CertifiedInvoice) -> None:
        os.write(self._log, msgspec.json.encode(entry) + b"\n")
