"""The far end of a real pseudo-terminal, on the test's own event loop."""

import asyncio
import os
import tty
from collections.abc import Callable


class Terminal:
    """`path` is what a program opens; bytes it writes come to `received`, and to `react` when that is set.

    The slave side is kept open, as a simulator does, until `hang_up`.
    """

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        self.path = os.ttyname(self.slave)
        self.received = bytearray()
        self.react: Callable[[bytes], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._news = asyncio.Event()
        self.listen()

    def listen(self) -> None:
        self._loop.add_reader(self.master, self._read)

    def ignore(self) -> None:
        self._loop.remove_reader(self.master)

    def say(self, data: bytes) -> None:
        os.write(self.master, data)

    def hang_up(self) -> None:
        """As a USB device that is pulled out."""
        if self._is_open:
            self._is_open = False
            self.ignore()
            os.close(self.slave)
            os.close(self.master)

    async def gets(self, count: int, seconds: float = 60.0) -> bytes:
        """Wait until that many bytes have come."""
        async with asyncio.timeout(seconds):
            while len(self.received) < count:
                self._news.clear()
                await self._news.wait()
        return bytes(self.received)

    def _read(self) -> None:
        data = os.read(self.master, 65536)
        self.received += data
        self._news.set()
        if self.react:
            self.react(data)
