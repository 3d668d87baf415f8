"""Listening sockets, and the names and addresses of this box on the network."""

import ipaddress
import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

BACKLOG: Final = 4096
"""Linux's maximum (`somaxconn`): a connection beyond it is tried again after a second."""
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group id."""

PROC_NET = Path("/proc/self/net")
LABELS = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.ASCII)
GLOBAL_SCOPE = "00"
V6_FIELDS = 6

Address = IPv4Address | IPv6Address


def bind(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of `host`, all on one port. The OSError names the address."""
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
    # Bytes if possible: for text Python loads its tables of international names, even for 127.0.0.1.
    name = host.encode() if host.isascii() else host
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def bind_unix(path: Path) -> socket.socket:
    """A listening Unix socket for the owner and the group of its folder; replaces an existing one."""
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
    """The address by a descriptor of its folder: an address has at most 107 bytes, a path may have more."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def peer_user(connection: socket.socket) -> int:
    """User id of the process at the other end of a Unix socket, from the kernel."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[1])


def in_url(host: str) -> str:
    """The host in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether the host is this computer only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def box_names(host: str, allowed_hosts: Iterable[str]) -> tuple[str, ...]:
    """Names for the certificate of a server on `host`: host names first, then addresses; each once."""
    names = ["localhost", *host_names(), *(name.lower().rstrip(".") for name in allowed_hosts)]
    addresses: list[Address] = [ip_address("127.0.0.1"), ip_address("::1")]
    listening = address_of(host)
    if listening is None:
        names.append(host.lower())
    elif listening.is_unspecified:
        addresses += box_addresses()
    else:
        addresses.append(listening)
    dns = [name for name in names if LABELS.fullmatch(name) and address_of(name) is None]
    return tuple(dict.fromkeys([*dns, *map(str, addresses)]))


def host_names() -> tuple[str, str]:
    """The box's own name, and its name in mDNS (Avahi)."""
    own = socket.gethostname().lower()
    return own, f"{own.partition('.')[0]}.local"


def address_of(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def box_addresses(net: Path = PROC_NET) -> list[Address]:
    """Addresses that other computers can use; empty if the system does not list them."""
    found = [*_v4(_lines(net / "fib_trie")), *_v6(_lines(net / "if_inet6"))]
    return [address for address in dict.fromkeys(found) if not address.is_loopback and not address.is_link_local]


def _v4(lines: list[str]) -> Iterator[Address]:
    """A leaf of the routing table with the mark LOCAL in the next line is an address of this box."""
    for leaf, kind in pairwise(lines):
        if kind.split() == ["/32", "host", "LOCAL"]:
            yield ip_address(leaf.split()[-1])


def _v6(lines: list[str]) -> Iterator[Address]:
    for line in lines:
        fields = line.split()
        if len(fields) == V6_FIELDS and fields[3] == GLOBAL_SCOPE:
            yield IPv6Address(int(fields[0], 16))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("ascii").splitlines()
    except OSError:
        return []
