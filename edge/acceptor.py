"""Where TCP connections come in: accepted here and not by the loop, so that each is counted before a byte of it is read.

Running out of file descriptors is told once: unknown connections are cut to make room, and accepting goes on a moment later.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

AT_ONCE = 32
"""Accepted in one go of the loop."""
PAUSE = 0.2
"""Seconds without accepting, when there was no descriptor for the next one."""
SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Take = Callable[[socket.socket, str], None]


class Acceptor:
    """`take` gets each connection with its peer's address; `relieve` is called when there is no room for another."""

    def __init__(self, listener: socket.socket, take: Take, relieve: Callable[[], None]) -> None:
        self._listener = listener
        self._take = take
        self._relieve = relieve
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._scarce = False
        self._loop.add_reader(listener.fileno(), self._accept)

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener.fileno())

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                if error.errno in SCARCE:
                    self._wait(error)
                    return
                continue  # the peer is gone already (ECONNABORTED and its like)
            self._take(connection, address[0])
        self._scarce = False

    def _wait(self, error: OSError) -> None:
        """The connection stays in the kernel's queue meanwhile."""
        if not self._scarce:
            log.error("connections.out_of_descriptors", reason=error.strerror)
        self._scarce = True
        self._relieve()
        self._loop.remove_reader(self._listener.fileno())
        self._pause = self._loop.call_later(PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener.fileno(), self._accept)


def refuse(connection: socket.socket, answer: bytes) -> None:
    """Says so as far as that costs nothing, and is gone."""
    with contextlib.suppress(OSError):
        connection.setblocking(False)
        if answer:
            connection.send(answer)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1 << 16)  # unread bytes would turn the end into a reset, and take the answer with it
    connection.close()
