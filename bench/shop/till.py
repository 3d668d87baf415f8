"""Tills at an HTTP endpoint, as light as they can be: the load shares its cores with what is measured.

A request is one `send` of bytes made beforehand, an answer is found by its content-length.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

PATIENCE = 120.0


class TillRefused(Exception):
    """The endpoint did not do what it was asked for."""


@dataclass(frozen=True)
class Endpoint:
    port: int
    path: str
    key: str = ""

    def request(self, body: bytes) -> bytes:
        lines = (
            f"POST {self.path} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self.key}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def answer_of(received: bytes) -> bytes | None:
    """The body of a whole answer of status 2xx, None while it is still arriving."""
    head, found, body = received.partition(b"\r\n\r\n")
    if not found:
        return None
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    if len(body) < int(length):
        return None
    if not head.startswith(b"HTTP/1.1 2"):
        raise TillRefused(f"{head.partition(chr(13).encode())[0].decode()}: {body.decode()[:300]}")
    return body


class Till:
    """One client: the next request when the answer to the last one is there."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket = endpoint.connect()

    def post(self, body: bytes) -> float:
        """Seconds from the first byte of the request to the last one of its answer."""
        request = self._endpoint.request(body)
        began = time.perf_counter()
        self._socket.sendall(request)
        received = b""
        while True:
            received += self._socket.recv(65536)
            ended = time.perf_counter()  # before the till looks at it, which is its own business
            if answer_of(received) is not None:
                return ended - began

    def close(self) -> None:
        self._socket.close()


@dataclass
class _TillClient:
    socket: socket.socket
    endpoint: Endpoint
    bodies: Iterator[bytes]
    name: str
    received: bytes = b""

    def send(self) -> None:
        self.received = b""
        self.socket.sendall(self.endpoint.request(next(self.bodies)))


@dataclass
class Crowd:
    """Many clients in one loop. `done` holds (when, name of the client) of every answer, in seconds of `perf_counter`."""

    done: list[tuple[float, str]] = field(default_factory=list)
    _clients: list[_TillClient] = field(default_factory=list)

    def join(self, endpoint: Endpoint, bodies: Iterator[bytes], name: str = "") -> None:
        self._clients.append(_TillClient(endpoint.connect(), endpoint, bodies, name))

    def run(self, enough: Callable[[], bool]) -> None:
        """Until `enough` says so after an answer; requests under way are then still answered and count no more."""
        with selectors.DefaultSelector() as selector:
            for client in self._clients:
                selector.register(client.socket, selectors.EVENT_READ, client)
                client.send()
            waiting = len(self._clients)
            finishing = False
            while waiting:
                ready = selector.select(PATIENCE)
                if not ready:
                    raise TillRefused(f"no answer within {PATIENCE} s")
                for chosen, _ in ready:
                    client = chosen.data
                    client.received += client.socket.recv(65536)
                    if answer_of(client.received) is None:
                        continue
                    if not finishing:
                        self.done.append((time.perf_counter(), client.name))
                        finishing = enough()
                    if finishing:
                        waiting -= 1
                    else:
                        client.send()

    def run_for(self, seconds: float) -> None:
        ends = time.perf_counter() + seconds
        self.run(lambda: time.perf_counter() >= ends)

    def run_until(self, count: int) -> None:
        self.run(lambda: len(self.done) >= count)

    def close(self) -> None:
        for client in self._clients:
            client.socket.close()


def rate(times: Sequence[float], warm_up: int) -> float:
    """Answers a second, from the end of the warm-up to the last one."""
    counted = times[warm_up:]
    if len(counted) < 2:
        raise TillRefused(f"{len(times)} answers are too few for a rate: something else takes this box")
    return (len(counted) - 1) / (counted[-1] - counted[0])
