"""A receipt printer on the network or on a device of the box: takes bytes, or raises the reason why not.

Only the caller waits, within a time limit; an unfinished document is abandoned. The state is queried first (DLE EOT,
the only ESC/POS command answered at once); many adapters pass on no answer, and then it prints all the same."""

import asyncio
import contextlib
import errno
import os
import re
import socket
import stat
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from common.language.reasons import (
    PRINTER_COVER_OPEN,
    PRINTER_FAULT,
    PRINTER_NOT_A_DEVICE,
    PRINTER_OUT_OF_PAPER,
    PRINTER_TOO_SLOW,
    PRINTER_UNREACHABLE,
)
from common.language.system import reason
from daemon.core.errors import PrinterFailed

ASK_OFFLINE: Final = b"\x10\x04\x02"
ASK_PAPER: Final = b"\x10\x04\x04"
COVER_OPEN: Final = 0x04
PAPER_ENDED_OFFLINE: Final = 0x20
PRINTER_ERROR: Final = 0x40
PAPER_END: Final = 0x60
"""Bits of the answers: DLE EOT 2: the cover, a stop by the end of paper, an error; DLE EOT 4: the paper itself."""

STATE_PATIENCE: Final = 0.7
"""Seconds for an answer to a state command; a printer that knows it answers within milliseconds."""
DEFAULT_PORT: Final = 9100
ESC_POS: Final = re.compile(r"ESC[/-]?POS", re.IGNORECASE)


class ReceiptPrinter:
    """Prints one document at a time; `address` is `tcp://host:port` or the path of a device."""

    def __init__(self, address: str, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._turn = asyncio.Lock()

    async def print(self, data: bytes) -> None:
        """Returns when the printer has received everything. Raises PrinterFailed."""
        try:
            async with asyncio.timeout(self._timeout), self._turn:
                await (self._send if "://" in self._address else self._write)(data)
        except TimeoutError:
            raise PrinterFailed(PRINTER_TOO_SLOW) from None
        except OSError as error:
            raise PrinterFailed(PRINTER_UNREACHABLE(value=reason(error))) from error

    async def check(self) -> None:
        """Raises PrinterFailed if it could not print now."""
        await self.print(b"")

    async def _send(self, data: bytes) -> None:
        url = urlsplit(self._address)
        reader, writer = await asyncio.open_connection(url.hostname, url.port or DEFAULT_PORT)
        try:
            await _refuse_trouble(reader, writer)
            writer.write(data)
            await writer.drain()
            writer.write_eof()
            await _until_taken(writer)
        finally:
            writer.transport.abort()  # an abandoned document must not be printed later

    async def _write(self, data: bytes) -> None:
        """Writes what the device accepts; never blocks the loop."""
        device = _open_device(Path(self._address))
        try:
            while data:
                try:
                    data = data[os.write(device, data) :]
                except BlockingIOError:
                    await asyncio.sleep(0.02)  # there is no event for room in the device
        finally:
            os.close(device)


def _open_device(path: Path) -> int:
    if not stat.S_ISCHR(path.stat().st_mode):
        raise PrinterFailed(PRINTER_NOT_A_DEVICE)
    return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)


def usb_printers(folder: Path = Path("/sys/class/usbmisc")) -> list[str]:
    """USB printers that name ESC/POS in their IEEE 1284 id; any other kind would print the commands as text."""
    found = []
    for printer in sorted(folder.glob("lp*")):
        with contextlib.suppress(OSError):
            if ESC_POS.search((printer / "device/ieee1284_id").read_text("ascii", "replace")):
                found.append(f"/dev/usb/{printer.name}")
    return found


async def _until_taken(writer: asyncio.StreamWriter) -> None:
    """Waits until the printer has acknowledged every byte: bytes in the kernel would be lost with the connection.
    Raises ConnectionResetError if it was cut before."""
    link: socket.socket = writer.get_extra_info("socket")
    queued = 1
    while queued:
        queued = 0 if writer.is_closing() else _unacknowledged(link)
        await asyncio.sleep(0.01)  # a reset empties the queue too: the loop has to see it first
        if writer.is_closing():
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))


def _unacknowledged(link: socket.socket) -> int:
    """Bytes in the kernel's queue (SIOCOUTQ of Linux)."""
    import fcntl  # noqa: PLC0415  Linux only
    import struct  # noqa: PLC0415
    import termios  # noqa: PLC0415

    with contextlib.suppress(OSError):
        count: int = struct.unpack("i", fcntl.ioctl(link.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0]
        return count
    return 0


async def _refuse_trouble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    offline = await _query(reader, writer, ASK_OFFLINE)
    if offline & COVER_OPEN:
        raise PrinterFailed(PRINTER_COVER_OPEN)
    paper = await _query(reader, writer, ASK_PAPER) if offline else 0
    if paper & PAPER_END or offline & PAPER_ENDED_OFFLINE:
        raise PrinterFailed(PRINTER_OUT_OF_PAPER)
    if offline & PRINTER_ERROR:
        raise PrinterFailed(PRINTER_FAULT)


async def _query(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, command: bytes) -> int:
    """One byte of state; 0 without an answer (a real state always has bits 1 and 4 set)."""
    writer.write(command)
    try:
        async with asyncio.timeout(STATE_PATIENCE):
            answer = await reader.read(1)
    except TimeoutError:
        return 0
    return answer[0] if answer else 0
