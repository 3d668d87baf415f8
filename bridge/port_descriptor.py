"""Bytes over a descriptor on the event loop: what a tty and a socket have in common."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable

from bridge.errors import PortVanished
from common.language.reasons import HUNG_UP, PORT_VANISHED

_CHUNK = 4096


class DescriptorPort(ABC):
    """`attach` once; then bytes and, at most once, the loss of the device are delivered by the event loop.

    Nothing is delivered after `close`, which may be called in any state and any number of times.
    """

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
        self._release()

    @abstractmethod
    def _release(self) -> None:
        """Give the device back; called by every `close`."""

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
