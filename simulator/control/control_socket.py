"""The control socket of a running simulator: for any number of clients, inside the simulator's one loop."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_CHUNK = 65_536
_LINE_MOST = 65_536


class _ControlClient:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()
        self.waiting = bytearray()


class Control:
    """`obey` answers one line. Events go to every client. The host selects on `readers` and `writers`, and passes the
    ready sockets to `serve`."""

    def __init__(self, path: Path, obey: Callable[[bytes], bytes]) -> None:
        self._path = path
        self._obey = obey
        self._clients: dict[socket.socket, _ControlClient] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen()

    def readers(self) -> list[socket.socket]:
        return [self._listener, *self._clients]

    def writers(self) -> list[socket.socket]:
        return [connection for connection, client in self._clients.items() if client.waiting]

    def serve(self, readable: Iterable[Any], writable: Iterable[Any]) -> None:
        """Handles sockets that `select` found ready; others are ignored."""
        for ready in readable:
            if ready is self._listener:
                self._accept()
            elif client := self._clients.get(ready):
                self._take(client)
        for ready in writable:
            if client := self._clients.get(ready):
                self._flush(client)

    def tell(self, event: bytes) -> None:
        for client in list(self._clients.values()):
            client.waiting += event
            self._flush(client)

    def close(self) -> None:
        for client in list(self._clients.values()):
            self._drop(client)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            self._clients[connection] = _ControlClient(connection)

    def _take(self, client: _ControlClient) -> None:
        try:
            data = client.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.received += data
        while (end := client.received.find(b"\n")) >= 0:
            line = bytes(client.received[:end])
            del client.received[: end + 1]
            client.waiting += self._obey(line)
        if data and len(client.received) <= _LINE_MOST:
            self._flush(client)
        else:
            self._drop(client)

    def _flush(self, client: _ControlClient) -> None:
        try:
            sent = client.connection.send(client.waiting) if client.waiting else 0
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
            return
        del client.waiting[:sent]

    def _drop(self, client: _ControlClient) -> None:
        self._clients.pop(client.connection, None)
        client.connection.close()
