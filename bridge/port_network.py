"""A machine behind the network: raw TCP (`tcp://host:port`) and RFC 2217 (`rfc2217://host:port`, with baud rate and
purge).

An abandoned connection is reset, never closed normally: undelivered bytes would still reach the machine, perhaps a
minute later, when a new connection has already concluded that they never came."""

import asyncio
import contextlib
import socket
import struct
import threading
from urllib.parse import urlsplit

import serial

from bridge.port import DescriptorPort, open_port, unavailable

SCHEMES = ("tcp", "rfc2217")
CONNECT_SECONDS = 5.0
NEGOTIATION_SECONDS = 12.0
"""Longer than pyserial's own limits (connection, options, speed)."""
_CHUNK = 4096
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_KEEPALIVE = {socket.TCP_KEEPIDLE: 5, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}


def is_network(place: str) -> bool:
    return place.partition("://")[0] in SCHEMES


async def open_line(place: str, baudrate: int = 115_200) -> DescriptorPort:
    """The port at `place`: a tty, or a network address. Raises PortUnavailable."""
    if not is_network(place):
        return open_port(place, baudrate)
    try:
        if place.startswith("tcp://"):
            async with asyncio.timeout(CONNECT_SECONDS):
                return SocketPort(await _connect(place), place)
        async with asyncio.timeout(NEGOTIATION_SECONDS):
            return Rfc2217Port(await _negotiated(place, baudrate), place)
    except (OSError, ValueError) as error:  # TimeoutError is one
        raise unavailable(place, error) from error


class SocketPort(DescriptorPort):
    def __init__(self, connection: socket.socket, name: str) -> None:
        super().__init__(connection.fileno(), name)
        self._connection = connection

    def _release(self) -> None:
        self._connection.close()


class Rfc2217Port(SocketPort):
    """pyserial's client blocks: two threads copy its bytes to and from a socket pair."""

    def __init__(self, device: serial.SerialBase, name: str) -> None:
        ours, self._inner = socket.socketpair()
        ours.setblocking(False)
        super().__init__(ours, name)
        self._device = device
        self._is_abandoned = threading.Event()
        for work in (self._carry_in, self._carry_out):
            threading.Thread(target=work, name=f"{work.__name__} {name}", daemon=True).start()

    def _release(self) -> None:
        if self._is_abandoned.is_set():
            return
        self._is_abandoned.set()  # first: bytes still in the pair must not be sent any more
        super()._release()
        threading.Thread(target=self._hang_up, name=f"hang up {self._name}", daemon=True).start()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # its reader thread may have removed the socket
            self._device.close()

    def _carry_in(self) -> None:
        with self._inner, contextlib.suppress(OSError, TypeError, AttributeError):
            while data := self._device.read(1):
                self._inner.sendall(data + self._device.read(self._device.in_waiting))
            self._inner.shutdown(socket.SHUT_RDWR)

    def _carry_out(self) -> None:
        with contextlib.suppress(OSError, TypeError, AttributeError):
            while (data := self._inner.recv(_CHUNK)) and not self._is_abandoned.is_set():
                self._device.write(data)
        with contextlib.suppress(OSError):
            self._inner.shutdown(socket.SHUT_RDWR)


async def _connect(place: str) -> socket.socket:
    """Connects to the first of the name's addresses that accepts."""
    parts = urlsplit(place)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)
    failed: OSError | None = None
    for family, kind, protocol, _, address in found:
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        try:
            await loop.sock_connect(connection, address)
            _set_up(connection)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError):
                raise
            failed = error
        else:
            return connection
    raise failed or OSError(f"{parts.hostname} has no address")


def _set_up(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, True)
    for option, value in _KEEPALIVE.items():
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


async def _negotiated(place: str, baudrate: int) -> serial.SerialBase:
    """In a thread, for seconds. If the caller is cancelled, the connection is closed later."""
    opening = asyncio.get_running_loop().run_in_executor(None, _open_rfc2217, place, baudrate)
    try:
        return await asyncio.shield(opening)
    except BaseException:
        opening.add_done_callback(_close_late)
        raise


def _close_late(opened: asyncio.Future[serial.SerialBase]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        threading.Thread(target=opened.result().close, daemon=True).start()


def _open_rfc2217(place: str, baudrate: int) -> serial.SerialBase:
    # A server without DTR and RTS does not answer their options.
    device = serial.serial_for_url(f"{place}?ign_set_control", baudrate)
    _set_up(device._socket)  # noqa: SLF001  # pyserial has no public access to it, and a normal close is not enough
    return device
