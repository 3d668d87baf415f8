"""A line that can be cut: a port on this box that leads to another, or to nothing."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from types import TracebackType
from typing import Self

PIECE = 65_536


class CutLine:
    """Carries bytes both ways until `cut`, which ends what is open and refuses what comes; `mend` lets new ones through."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                end, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(end,), daemon=True).start()

    def _carry(self, end: socket.socket) -> None:
        with end, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._to)) as other:
            with self._lock:
                if self._is_cut:
                    return
                self._open |= {end, other}
            try:
                _both_ways(end, other)
            finally:
                with self._lock:
                    self._open -= {end, other}


def _both_ways(end: socket.socket, other: socket.socket) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(end, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, end)
        while True:
            for key, _ in selector.select():
                piece = key.fileobj.recv(PIECE)  # type: ignore[union-attr]  # a socket
                if not piece:
                    return
                key.data.sendall(piece)
