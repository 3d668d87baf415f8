"""The way in: each connection is counted as it is accepted, waits its turn, shakes hands within a deadline, and is given to its protocol."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Final

from edge.acceptor import Acceptor, refuse
from edge.admission import Admission, ConnectionLimits, Slot

HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 5.0
RELIEVED: Final = 32
"""Unknown connections that are cut when there is no descriptor left."""

Make = Callable[[Slot], asyncio.Protocol]


class Gate:
    """`make` gives a connection's protocol, `refusal` what is said to one that gets no place (nothing where TLS is spoken). `dropped` gets
    a protocol that may never be told of its end."""

    def __init__(
        self,
        limits: ConnectionLimits,
        make: Make,
        dropped: Callable[[asyncio.Protocol], None],
        *,
        tls: ssl.SSLContext | None,
        refusal: Callable[[], bytes],
    ) -> None:
        self._admission = Admission(limits)
        self._make = make
        self._dropped = dropped
        self._tls = tls
        self._refusal = refusal
        self._acceptors: list[Acceptor] = []
        self._welcoming: set[asyncio.Task[None]] = set()

    def open(self, listeners: Iterable[socket.socket]) -> None:
        """Who is refused from then on costs neither a handshake nor a read."""
        self._acceptors = [Acceptor(listener, self._take, self._relieve) for listener in listeners]

    def close(self) -> None:
        """Those on their way in are let go."""
        for acceptor in self._acceptors:
            acceptor.close()
        for task in tuple(self._welcoming):
            task.cancel()

    def _take(self, connection: socket.socket, host: str) -> None:
        loop = asyncio.get_running_loop()
        slot = self._admission.enter(host, loop.time())
        if slot is None:
            refuse(connection, b"" if self._tls else self._refusal())
            return
        task = loop.create_task(self._welcome(connection, slot))
        slot.cut = task.cancel
        self._welcoming.add(task)
        task.add_done_callback(self._welcoming.discard)

    async def _welcome(self, connection: socket.socket, slot: Slot) -> None:
        """Up to the end of the handshake; a deadline for it, since uvloop's of a minute is an open door."""
        protocol = self._make(slot)
        try:
            if slot.wait:
                await asyncio.sleep(slot.wait)
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS if self._tls else None,
            )
        except (OSError, RuntimeError):  # a handshake that failed, or a peer that is gone
            slot.leave()
            connection.close()
        except asyncio.CancelledError:
            slot.leave()
            connection.close()
            # Where it was made just now, uvloop closes it without telling its protocol, which would be waited for at the stop.
            self._dropped(protocol)
            raise

    def _relieve(self) -> None:
        self._admission.relieve(RELIEVED)
