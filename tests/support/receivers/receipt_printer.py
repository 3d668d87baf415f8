"""A receipt printer on a socket: it answers for its state, prints what comes, or does what goes wrong with printers."""

import socket
import struct
import threading
import time
from typing import Self

from support.paper.escpos import Printed, printed

FINE, COVER_OPEN, NO_PAPER, NO_PAPER_SENSOR = b"\x12", b"\x16", b"\x32", b"\x72"
"""Answers to DLE EOT 2 and 4: a state byte has bits 1 and 4 set, and bit 7 not."""


class ReceiptPrinter:
    """`offline` and `paper` answer DLE EOT 2 and 4, None says nothing, as behind an adapter; `takes` bytes and then no more
    until it is None again (`hangs` is set then), or with `resets` cuts the connection there."""

    def __init__(self) -> None:
        self.offline: bytes | None = FINE
        self.paper: bytes | None = FINE
        self.takes: int | None = None
        self.resets = False
        self.jobs: list[bytes] = []
        self.done, self.hangs = threading.Event(), threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.address = f"tcp://127.0.0.1:{self._socket.getsockname()[1]}"
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def reset(self) -> None:
        """As new, once it is through with all that was sent to it: a document without a waiting reader is not the next one's."""
        with socket.create_connection(self._socket.getsockname()) as last:
            last.shutdown(socket.SHUT_WR)
            last.settimeout(60)
            last.recv(1)
        self.offline, self.paper, self.takes, self.resets = FINE, FINE, None, False
        self.jobs.clear()
        self.done.clear()
        self.hangs.clear()

    def wait(self) -> Printed:
        """The document that came, once it is whole."""
        assert self.done.wait(60), "nothing was printed"
        self.done.clear()
        return printed(self.jobs[-1])

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link:
                link.settimeout(10)
                try:
                    self._job(link)
                except OSError:
                    continue

    def _job(self, link: socket.socket) -> None:
        data = b""
        while part := self._receive(link, len(data)):
            data += part
            for command, answer in ((b"\x10\x04\x02", self.offline), (b"\x10\x04\x04", self.paper)):
                if data == command:
                    data = b""
                    if answer is not None:
                        link.sendall(answer)
            data = data.removeprefix(b"\x10\x04\x02").removeprefix(b"\x10\x04\x04")
        if data:
            self.jobs.append(data)
            self.done.set()

    def _receive(self, link: socket.socket, had: int) -> bytes:
        if self.takes is not None and had >= self.takes:
            if self.resets:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raise ConnectionAbortedError
            self.hangs.set()
            deadline = time.monotonic() + 10
            while self.takes is not None and time.monotonic() < deadline and not self._closing.wait(0.02):
                pass
            return b""
        return link.recv(1024 if self.takes is None else 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(20)
