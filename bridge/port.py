"""A serial port on the event loop, and the common part of a tty and a socket: bytes over a descriptor. The only file
with termios, and with `port_network` the only one with pyserial."""

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import termios
from abc import ABC, abstractmethod
from collections.abc import Callable

import serial

from bridge.errors import PortUnavailable, PortVanished, Why
from common.language.reasons import (
    ADDRESS_SILENT,
    CONNECTION_REFUSED,
    HUNG_UP,
    NAME_UNKNOWN,
    NETWORK_UNREACHABLE,
    PORT_BUSY,
    PORT_IO_ERROR,
    PORT_MISSING,
    PORT_NOT_SERIAL,
    PORT_PERMISSION,
    PORT_VANISHED,
)

_CHUNK = 4096
_UNIX98_PTY_MAJORS = range(136, 144)
_REASONS: dict[int, tuple[Why, str]] = {
    errno.ENOENT: ("missing", PORT_MISSING),
    errno.ENODEV: ("missing", PORT_MISSING),
    errno.ENXIO: ("missing", PORT_MISSING),
    errno.EACCES: ("permission", PORT_PERMISSION),
    errno.EPERM: ("permission", PORT_PERMISSION),
    errno.EBUSY: ("busy", PORT_BUSY),
    errno.EAGAIN: ("busy", PORT_BUSY),
    errno.EIO: ("other", PORT_IO_ERROR),
    errno.ENOTTY: ("other", PORT_NOT_SERIAL),
    errno.EISDIR: ("other", PORT_NOT_SERIAL),
    errno.ECONNREFUSED: ("missing", CONNECTION_REFUSED),
    errno.EHOSTUNREACH: ("missing", NETWORK_UNREACHABLE),
    errno.ENETUNREACH: ("missing", NETWORK_UNREACHABLE),
    errno.ETIMEDOUT: ("missing", ADDRESS_SILENT),
}


class DescriptorPort(ABC):
    """`attach` once; then the event loop delivers bytes and, at most once, the loss of the device. Nothing is delivered
    after `close`, which may be called in any state and any number of times."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._backlog = bytearray()
        self._on_bytes: Callable[[bytes], None] | None = None
        self._on_lost: Callable[[Exception], None] | None = None
        self._usable = True

    def attach(self, on_bytes: Callable[[bytes], None], on_lost: Callable[[Exception], None]) -> None:
        self._on_bytes = on_bytes
        self._on_lost = on_lost
        self._loop.add_reader(self._fd, self._read)

    def write(self, data: bytes) -> None:
        """Never blocks: bytes that do not fit into the system's buffer are written later."""
        if not self._usable:
            return
        if self._backlog:
            self._backlog += data
            return
        written = self._write_some(data)
        if written < len(data):
            self._backlog += data[written:]
            self._loop.add_writer(self._fd, self._write_backlog)

    def close(self) -> None:
        self._stop()
        self._on_bytes = self._on_lost = None
        self._release()

    @abstractmethod
    def _release(self) -> None:
        """Releases the device; called by every `close`."""

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._vanish(str(error))
            return
        if not data:
            self._vanish(HUNG_UP)
        elif self._on_bytes is not None:
            self._on_bytes(data)

    def _write_backlog(self) -> None:
        del self._backlog[: self._write_some(self._backlog)]
        if not self._backlog:
            self._loop.remove_writer(self._fd)

    def _write_some(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self._vanish(str(error))
            return len(data)

    def _vanish(self, detail: str) -> None:
        self._stop()
        error = PortVanished(PORT_VANISHED(port=self._name, cause=detail))
        self._loop.call_soon(self._deliver_loss, error)  # not from inside the caller's own write

    def _deliver_loss(self, error: PortVanished) -> None:
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(error)

    def _stop(self) -> None:
        if self._usable:
            self._usable = False
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)


class SerialPort(DescriptorPort):
    def __init__(self, device: serial.Serial) -> None:
        super().__init__(device.fd, str(device.port))
        self._device = device

    def _release(self) -> None:
        if not self._device.is_open:
            return
        with contextlib.suppress(OSError, termios.error):
            fcntl.ioctl(self._fd, termios.TIOCNXCL)
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(self._fd, termios.TCOFLUSH)  # else close may wait half a minute for a stuck line
        with contextlib.suppress(OSError):
            self._device.close()


def open_port(path: str, baudrate: int = 115_200) -> SerialPort:
    """8 data bits, no parity, 1 stop bit, raw, locked against other programs. Raises PortUnavailable."""
    try:
        device = serial.Serial(path, baudrate, exclusive=True)
    except (OSError, ValueError, termios.error) as error:
        raise unavailable(path, error) from error
    try:
        _make_raw(device.fd)
        _lock_out_others(device.fd)
        return SerialPort(device)
    except (OSError, termios.error) as error:
        device.close()
        raise unavailable(path, error) from error


def _make_raw(fd: int) -> None:
    """Beyond pyserial: a break is no signal, and an empty read means hung up, never "nothing yet" (VMIN 1)."""
    attributes = termios.tcgetattr(fd)
    attributes[0] &= ~termios.BRKINT
    attributes[6][termios.VMIN] = 1
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def _lock_out_others(fd: int) -> None:
    """The `exclusive` of pyserial is only advisory; TIOCEXCL also excludes programs that do not check it. Not on a
    pseudo-terminal: there the flag outlives us with the simulator's end, and would exclude our next start."""
    if os.major(os.fstat(fd).st_rdev) not in _UNIX98_PTY_MAJORS:
        fcntl.ioctl(fd, termios.TIOCEXCL)


def unavailable(place: str, error: Exception) -> PortUnavailable:
    """By the first known error in the chain: pyserial wraps that of the system or of termios."""
    cause: BaseException | None = error
    while cause is not None:
        number = errno.ETIMEDOUT if isinstance(cause, TimeoutError) else cause.args[0] if cause.args else None
        if isinstance(cause, socket.gaierror):
            return PortUnavailable(place, "missing", NAME_UNKNOWN)
        if isinstance(number, int) and number in _REASONS:
            return PortUnavailable(place, *_REASONS[number])
        cause = cause.__cause__ or cause.__context__
    return PortUnavailable(place, "other", str(error))
