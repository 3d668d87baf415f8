"""Listening sockets."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

BACKLOG: Final = 512
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group."""


def bind(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of `host`, all on one port. OSError names the address."""
    listeners: list[socket.socket] = []
    try:
        for family, address in addresses(host, port):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], listeners[0].getsockname()[1] if listeners[1:] else port, *address[2:]))
            listener.listen(BACKLOG)
            listener.setblocking(False)
    except OSError as error:
        for listener in listeners:
            listener.close()
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    return listeners


def addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    # Bytes where they will do: for text Python loads all that it knows of international names, for 127.0.0.1 as well.
    name = host.encode() if host.isascii() else host
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def bind_unix(path: Path) -> socket.socket:
    """A listening Unix socket for the owner and the group of its folder, in place of the last one."""
    fresh = path.with_suffix(".new")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fresh.unlink(missing_ok=True)
        with unix_address(fresh) as address:
            listener.bind(address)
        fresh.chmod(0o660)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        fresh.replace(path)
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {path}: {error.strerror or error}") from error
    return listener


@contextmanager
def unix_address(path: Path) -> Iterator[str]:
    """By a descriptor of its folder: an address has 107 bytes, a path may have more."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def peer_user(connection: socket.socket) -> int:
    """Who is at the other end of a Unix socket, as the kernel has it."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[1])


def is_loopback(host: str) -> bool:
    """Whether only this computer can be meant."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
