"""A serial port on the event loop; the only file that knows pyserial, termios and the ways a device vanishes.

pyserial opens, locks and configures; bytes then go by `os.read` and `os.write` on its descriptor, because its own
calls wait with `select` and fail in three different ways when the device is gone (field notes, "Serial").
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import termios
from collections.abc import Callable

import serial

from bridge.errors import PortUnavailable, PortVanished, Why

_CHUNK = 4096
_UNIX98_PTY_MAJORS = range(136, 144)
_REASONS: dict[int, tuple[Why, str]] = {
    errno.ENOENT: ("missing", "there is no such device (unplugged?)"),
    errno.ENODEV: ("missing", "there is no such device (unplugged?)"),
    errno.ENXIO: ("missing", "there is no such device (unplugged?)"),
    errno.EACCES: ("permission", "no permission to open it (is this user in its group, often dialout?)"),
    errno.EPERM: ("permission", "no permission to open it (is this user in its group, often dialout?)"),
    errno.EBUSY: ("busy", "another program is using it"),
    errno.EAGAIN: ("busy", "another program is using it"),
    errno.EIO: ("other", "the device does not respond (input/output error)"),
    errno.ENOTTY: ("other", "this is not a serial port"),
    errno.EISDIR: ("other", "this is not a serial port"),
}


class SerialPort:
    """`attach` once; then bytes and, at most once, the loss of the device are delivered by the event loop.

    Nothing is delivered after `close`, which may be called in any state and any number of times.
    """

    def __init__(self, device: serial.Serial) -> None:
        self._device = device
        self._fd: int = device.fd
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
        """Never blocks: what does not fit into the system's buffer now follows when there is room."""
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
        if not self._device.is_open:
            return
        with contextlib.suppress(OSError, termios.error):
            fcntl.ioctl(self._fd, termios.TIOCNXCL)
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(self._fd, termios.TCOFLUSH)  # else close may wait half a minute for a stuck line
        with contextlib.suppress(OSError):
            self._device.close()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._vanish(str(error))
            return
        if not data:
            self._vanish("the line hung up")
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
        error = PortVanished(f"{self._device.port} vanished: {detail}")
        self._loop.call_soon(self._deliver_loss, error)  # not from inside the caller's own write

    def _deliver_loss(self, error: PortVanished) -> None:
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(error)

    def _stop(self) -> None:
        if self._usable:
            self._usable = False
            self._backlog.clear()
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)


def open_port(path: str, baudrate: int = 115_200) -> SerialPort:
    """8 data bits, no parity, 1 stop bit, raw, locked against other programs. PortUnavailable when it cannot be had."""
    try:
        device = serial.Serial(path, baudrate, timeout=0, write_timeout=1, exclusive=True)
    except (OSError, ValueError, termios.error) as error:
        raise _unavailable(path, error) from error
    try:
        _make_raw(device.fd)
        _lock_out_others(device.fd)
        return SerialPort(device)
    except (OSError, termios.error) as error:
        device.close()
        raise _unavailable(path, error) from error


def _make_raw(fd: int) -> None:
    """What pyserial leaves: a break is no signal, and an empty read means hung up, never "nothing yet" (VMIN 1)."""
    attributes = termios.tcgetattr(fd)
    attributes[0] &= ~termios.BRKINT
    attributes[6][termios.VMIN] = 1
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def _lock_out_others(fd: int) -> None:
    """The `exclusive` of pyserial is only advisory; TIOCEXCL also keeps off programs that do not ask.

    Not on a pseudo-terminal: its flag outlives us as long as the simulator keeps its end open, and after a kill
    would lock out our own next start.
    """
    if not _is_pseudo_terminal(fd):
        fcntl.ioctl(fd, termios.TIOCEXCL)


def _is_pseudo_terminal(fd: int) -> bool:
    return os.major(os.fstat(fd).st_rdev) in _UNIX98_PTY_MAJORS


def _unavailable(path: str, error: Exception) -> PortUnavailable:
    number = _errno(error)
    why, text = _REASONS.get(number, ("other", str(error)))
    return PortUnavailable(path, why, text)


def _errno(error: BaseException | None) -> int:
    """Of the first error in the chain that has one: pyserial wraps `termios.error`, whose number is its first argument."""
    while error is not None:
        number = error.args[0] if error.args else None
        if isinstance(number, int):
            return number
        error = error.__cause__ or error.__context__
    return 0
