"""The pseudo-terminal behind a fixed path."""

from __future__ import annotations

import contextlib
import os
import termios
import tty
from pathlib import Path

_CHUNK = 4096
_OUTPUT_SPEED = 5  # in what tcgetattr gives


class Terminal:
    """Raw at both ends. Our own descriptor of the client's end stays open, or reading would fail as soon as a client
    closes (field notes, "Serial"). `plug` and `unplug` may be repeated; each plug is a new pseudo-terminal at the same path.

    `baud`: bytes to and from a client that has set another speed are rubbish; 0 does not look."""

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
        """FileExistsError when the path is something else than a link."""
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
        """The link goes first, unless somebody else has taken the path meanwhile."""
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
        """What does not fit is lost, as on a line whose other end does not listen."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._master, self._carried(data))

    def _carried(self, data: bytes) -> bytes:
        if self._speed is None or termios.tcgetattr(self._slave)[_OUTPUT_SPEED] == self._speed:
            return data
        return bytes(~byte & 0xFF | 0x80 for byte in data[::2])
