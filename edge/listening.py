"""Listening sockets."""

from __future__ import annotations

import socket
from typing import Final

BACKLOG: Final = 512
RECEIVED: Final = 32 * 1024
"""What the kernel keeps of a connection unread, and so the most that TLS holds of it in one go."""


def bind(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of `host`, all on one port."""
    # Bytes where they will do: for text Python loads all that it knows of international names, for 127.0.0.1 as well.
    name = host.encode() if host.isascii() else host
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, protocol)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], listeners[0].getsockname()[1] if listeners[1:] else port, *address[2:]))
            listener.listen(BACKLOG)
            listener.setblocking(False)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners
