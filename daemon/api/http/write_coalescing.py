"""Head and body of an answer in one packet: uvicorn writes them one after the other, and each write is a system call and a
packet of its own, a tenth of what a short request costs."""

from __future__ import annotations

import asyncio
from typing import Any

LARGE = 64 * 1024
"""What is larger is passed on as it is, uncopied, and a stream never piles up here."""


class WriteCoalescing(asyncio.Transport):
    """A transport whose small writes within one turn of the event loop leave together."""

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if len(self._held) + len(data) > LARGE:
            self.flush()
            self._transport.write(data)
        elif data:
            if not self._held:
                self._loop.call_soon(self.flush)
            self._held += data

    def flush(self) -> None:
        if self._held and not self._transport.is_closing():
            self._transport.write(bytes(self._held))
        self._held.clear()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def abort(self) -> None:
        self._transport.abort()

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)
