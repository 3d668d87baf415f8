"""A serial port on the event loop; the only file that knows termios, and with `port_network` pyserial.

pyserial opens, locks and configures; bytes then go by `os.read` and `os.write` on its descriptor, because its own
calls wait with `select` and fail in three different ways when the device is gone (field notes, "Serial").
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import termios

import serial

from bridge.errors import PortUnavailable, Why
from bridge.port_descriptor import DescriptorPort
from common.language.reasons import PORT_BUSY, PORT_IO_ERROR, PORT_MISSING, PORT_NOT_SERIAL, PORT_PERMISSION

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
}


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
    """8 data bits, no parity, 1 stop bit, raw, locked against other programs. PortUnavailable when it cannot be had."""
    try:
        device = serial.Serial(path, baudrate, exclusive=True)
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
